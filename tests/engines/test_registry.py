"""Engines by name."""

import pytest

from evergait.core.errors import EvergaitError
from evergait.engines import available, engine_name, make_engine
from evergait.tasks import Task, parse_task


def test_names_make_engines() -> None:
    for name in available():
        assert make_engine(name).name == name
    with pytest.raises(EvergaitError, match="did you mean 'mujoco'"):
        make_engine("mujocco")


def test_auto_takes_the_first_that_can() -> None:
    assert engine_name("auto", Task("Humanoid-v5")) == "mujoco"
    assert engine_name("auto", Task("Hopper-v5")) in ("planar", "mujoco")
    assert engine_name("auto", Task("CartPole-v1")) == "gymnasium"
    assert engine_name("gymnasium", Task("Hopper-v5")) == "gymnasium"


def test_nobody_simulates_what_nobody_can() -> None:
    with pytest.raises(EvergaitError, match="the mujoco engine does not know 'CartPole-v1'"):
        engine_name("mujoco", Task("CartPole-v1"))
    with pytest.raises(EvergaitError, match="cannot vary mass"):
        engine_name("auto", parse_task("CartPole-v1@heavy"))
