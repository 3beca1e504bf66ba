"""Engines by name."""

import pytest

from evergait.engines import available, engine_for, make_engine
from evergait.tasks import Task, parse_task
from evergait.types import EvergaitError


def test_names_make_engines() -> None:
    for name in available():
        assert make_engine(name).name == name
    with pytest.raises(EvergaitError, match="did you mean 'mujoco'"):
        make_engine("mujocco")
    with pytest.raises(EvergaitError, match="did you mean 'auto'"):
        engine_for(Task("Hopper-v5"), "auto1")


def test_auto_takes_the_first_that_can() -> None:
    assert engine_for(Task("Humanoid-v5")).name == "mujoco"
    assert engine_for(Task("Hopper-v5")).name in ("planar", "mujoco")
    assert engine_for(Task("CartPole-v1")).name == "gymnasium"
    assert engine_for(Task("Hopper-v5"), "gymnasium").name == "gymnasium"


def test_nobody_simulates_what_nobody_can() -> None:
    with pytest.raises(EvergaitError, match="the mujoco engine does not know 'CartPole-v1'"):
        engine_for(Task("CartPole-v1"), "mujoco")
    with pytest.raises(EvergaitError, match="cannot vary mass"):
        engine_for(parse_task("CartPole-v1@heavy"))
