"""Names of tasks and streams; variants change what they name and nothing else."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergait.core.errors import EvergaitError
from evergait.engines.mujoco.engine import MujocoEngine
from evergait.tasks import PAPER_ORDERS, STREAMS, Task, Variant, make, parse_stream, parse_task, spaces
from evergait.tasks.base import apply_to_environment, apply_to_model
from evergait.tasks.process import registration

factors = st.floats(0.01, 100)


@given(st.builds(Variant, factors, factors, factors, factors, factors, factors))
def test_a_tasks_name_reads_back(variant: Variant) -> None:
    task = Task("Hopper-v5", variant)
    assert parse_task(task.name) == task


@pytest.mark.parametrize("field", ["gravity", "friction", "mass", "strength", "reset_noise", "observation_noise"])
def test_a_variant_is_checked_however_it_is_made(field: str) -> None:
    positive = field in ("friction", "mass", "strength")
    bound = "above 0" if positive else "of at least 0"
    wrong: list[Any] = [-1.0, np.nan, np.inf, None, "heavy", [1.0, 2.0], *([0.0] if positive else [])]
    for value in wrong:
        with pytest.raises(EvergaitError, match=f"variant: {field} is .*; it must be a finite number {bound}"):
            Variant(**{field: value})
        with pytest.raises(EvergaitError, match=f"task .*: {field} is '.*'; it must be a finite number {bound}"):
            parse_task(f"Hopper-v5@{field}={value}".replace("[1.0, 2.0]", "[1.0"))
    named = Task("Hopper-v5", Variant(**{field: np.float64(2)})).name
    assert named == Task("Hopper-v5", Variant(**{field: 2})).name == f"Hopper-v5@{field}=2.0"


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


def hop(x: float) -> float:
    return x


def skip(x: float) -> float:
    return x + 1


def shifted(by: float) -> Callable[[float], float]:
    return lambda x: x + by


def recursive(by: int) -> Callable[[int], int]:
    def down(n: int) -> int:
        return down(n - by) if n > 0 else n

    return down


def made(by: int) -> type:
    class Made:
        def step(self) -> int:
            return by

    return Made


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1.0, 2.0),
        (np.array([1.0]), np.array([1000.0])),
        (np.zeros(4), np.zeros((2, 2))),
        (np.float32(1), np.float32(9)),
        (hop, skip),
        (shifted(1), shifted(2)),
        (partial(hop, x=1.0), partial(hop, x=9.0)),
        ({1: "a", "b": 2}, {1: "a", "b": 3}),
        ({"deep": [np.int64(1)]}, {"deep": [np.int64(2)]}),
        ({1, 2}, {1, 3}),
        (*(lambda x: x, lambda x: -x),),  # on one line
        ((lambda *, by=1: by), (lambda *, by=2: by)),
        (recursive(1), recursive(2)),
        (SimpleNamespace(of=hop), SimpleNamespace(of=skip)),
        (made(1), made(2)),
        (np, pytest),
    ],
)
def test_options_that_differ_are_told_apart(one: Any, other: Any) -> None:
    def digest(option: Any, place: Any = Switches, wrapped: Any = None) -> str:
        wrapper = gymnasium.envs.registration.WrapperSpec("W", "mine:W", {"scale": wrapped})
        gymnasium.register("Slope-v0", place, kwargs={"option": option}, additional_wrappers=(wrapper,))
        try:
            return registration(Task("Slope-v0"))
        finally:
            del gymnasium.registry["Slope-v0"]

    assert digest(one) == digest(one if one is np else deepcopy(one)) != digest(other)
    assert digest(1, wrapped=one) != digest(1, wrapped=other)
    assert digest(1, partial(dict, one)) != digest(1, partial(dict, other))


def test_options_are_the_same_in_every_process() -> None:
    text = (
        "from evergait.core.plugins import content\n"
        "print(content([{'front', 'back', 'left'}, lambda x: (lambda y: y + x), {'a': frozenset('abc')}]))"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", text], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert len(told[0]) > 50


def test_an_option_that_nothing_tells_apart_is_refused() -> None:
    gymnasium.register("Slope-v0", Switches, kwargs={"lock": threading.Lock()})  # type: ignore[arg-type]
    try:
        with pytest.raises(EvergaitError, match="task 'Slope-v0': an option that it was registered with cannot be"):
            registration(Task("Slope-v0"))
    finally:
        del gymnasium.registry["Slope-v0"]


def changed_fields(variant: Variant, name: str = "Hopper-v5") -> set[str]:
    stock, varied = make(Task(name)).unwrapped.model, make(Task(name)).unwrapped.model  # type: ignore[attr-defined]
    apply_to_model(variant, varied)
    fields = {field for field in dir(stock) if isinstance(getattr(stock, field), np.ndarray)}
    changed = {field for field in fields if not np.array_equal(getattr(stock, field), getattr(varied, field))}
    return changed | ({"gravity"} if not np.array_equal(stock.opt.gravity, varied.opt.gravity) else set())


def test_the_stock_variant_changes_no_bit() -> None:
    assert changed_fields(Variant(reset_noise=2.0, observation_noise=0.1)) == set()


def test_gravity_and_friction_change_one_field_each() -> None:
    assert changed_fields(Variant(gravity=0.5)) == {"gravity"}
    assert changed_fields(Variant(friction=0.5)) == {"geom_friction"}


def test_strength_changes_gears_and_what_follows_from_them() -> None:
    assert changed_fields(Variant(strength=0.5)) == {"actuator_gear", "actuator_acc0"}


def test_mass_changes_inertias_and_inverse_weights() -> None:
    changed = changed_fields(Variant(mass=2.0))
    assert {"body_mass", "body_inertia", "body_subtreemass", "body_invweight0", "dof_invweight0"} <= changed
    assert not changed & {"geom_friction", "actuator_gear", "qpos0", "body_pos", "geom_size"}
    heavy = make(Task("HalfCheetah-v5")).unwrapped.model  # type: ignore[attr-defined]
    before = heavy.dof_invweight0.copy(), heavy.dof_armature.copy(), heavy.body_subtreemass.copy()
    apply_to_model(Variant(mass=2.0), heavy)
    assert np.allclose(heavy.body_subtreemass, 2 * before[2])
    assert (heavy.dof_invweight0 < before[0]).all()
    assert np.array_equal(heavy.dof_armature, before[1])


def test_reset_noise_scales_the_initial_state() -> None:
    stock, still = make(Task("Hopper-v5")), make(Task("Hopper-v5"))
    apply_to_environment(Variant(reset_noise=0.0), still)
    start = still.unwrapped.init_qpos  # type: ignore[attr-defined]
    still.reset(seed=0)
    stock.reset(seed=0)
    assert np.array_equal(still.unwrapped.data.qpos, start)  # type: ignore[attr-defined]
    assert not np.array_equal(stock.unwrapped.data.qpos, start)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["Reacher-v5", "Pusher-v5"])
def test_reset_noise_is_refused_where_there_is_no_scale(name: str) -> None:
    assert "cannot vary reset_noise" in MujocoEngine().refuses(parse_task(f"{name}@reset_noise=2"))
    assert MujocoEngine().refuses(parse_task(f"{name}@moon,ice,heavy,weak,noisy")) == ""


def test_a_name_that_no_file_can_hold_is_refused() -> None:
    with pytest.raises(EvergaitError, match="is not UTF-8"):
        parse_task("caf\udce9.toml")
