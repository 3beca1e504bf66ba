"""Names of tasks and streams."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergait.core.errors import EvergaitError
from evergait.tasks import PAPER_ORDERS, STREAMS, Task, Variant, parse_stream, parse_task, spaces

factors = st.floats(0.01, 100)


@given(st.builds(Variant, factors, factors, factors, factors, factors, factors))
def test_a_tasks_name_reads_back(variant: Variant) -> None:
    task = Task("Hopper-v5", variant)
    assert parse_task(task.name) == task


def test_named_variants_combine() -> None:
    assert parse_task("Hopper-v5@moon,friction=0.5").variant == Variant(gravity=0.1654, friction=0.5)


def test_streams_have_names_letters_or_tasks() -> None:
    assert parse_stream(["hsw"]) == parse_stream(["H>S>W"]) == parse_stream(["Hopper-v5", "Swimmer-v5", "Walker2d-v5"])
    assert len(set(PAPER_ORDERS)) == 6
    assert all(parse_stream([name]) == stream for name, stream in STREAMS.items())


@pytest.mark.parametrize(
    ("name", "n_observations", "n_actions", "half_range"),
    [
        ("Hopper-v5", 11, 3, 1.0),
        ("Humanoid-v5", 348, 17, 0.4),
        ("InvertedPendulum-v5", 4, 1, 3.0),
        ("CartPole-v1", 4, 2, 1),
    ],
)
def test_spaces(name: str, n_observations: int, n_actions: int, half_range: float) -> None:
    space = spaces(Task(name))
    assert (space.n_observations, space.n_actions) == (n_observations, n_actions)
    assert space.action_half_range == pytest.approx([half_range] * n_actions)
    assert space.discrete == (name == "CartPole-v1")


class Camera(gymnasium.Env[object, object]):
    """What a policy of flat vectors cannot see."""

    observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = gymnasium.spaces.Box(-1, 1, (2,))


class Switches(gymnasium.Env[object, object]):
    """What a policy of flat vectors cannot do."""

    observation_space = gymnasium.spaces.Box(-1, 1, (3,))
    action_space = gymnasium.spaces.MultiBinary(4)


@pytest.mark.parametrize(
    ("made", "what"), [(Camera, "its observations are Box"), (Switches, "its actions are MultiBinary")]
)
def test_what_a_policy_cannot_serve_is_refused(made: type, what: str) -> None:
    gymnasium.register(f"{made.__name__}-v0", entry_point=made)  # type: ignore[arg-type]
    try:
        with pytest.raises(EvergaitError, match=f"task '{made.__name__}-v0': {what}"):
            spaces(Task(f"{made.__name__}-v0"))
    finally:
        del gymnasium.registry[f"{made.__name__}-v0"]
