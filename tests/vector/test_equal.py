"""Every step equals that of as many environments of Gymnasium's own: observations, rewards, endings, infos."""

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import evergait.vector
from evergait.core.arrays import Array
from evergait.engines.mujoco.tasks import RULES
from evergait.engines.planar.robot import TASKS
from evergait.tasks.quiet import quiet
from evergait.vector.planar import PlanarRobots

MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)
TINY = 2e-10
LIMIT = 40  # steps: so that there are truncations too


def theirs(identifier: str, n: int, mode: AutoresetMode, **options: Any) -> Any:
    with quiet():
        return SyncVectorEnv([lambda: gymnasium.make(identifier, **options)] * n, autoreset_mode=mode)


def numbers(data: Any, name: str = "") -> Iterator[tuple[str, Array]]:
    """Every array in what a step returns, by where it is."""
    if isinstance(data, dict):
        for key in sorted(data):
            yield from numbers(data[key], f"{name}.{key}")
    elif isinstance(data, tuple):
        for i, part in enumerate(data):
            yield from numbers(part, f"{name}[{i}]")
    elif data.dtype == object:
        for i, part in enumerate(data):
            if part is not None:
                yield from numbers(part, f"{name}[{i}]")
    else:
        yield name, data


def assert_close(mine: Any, right: Any, where: str) -> None:
    pairs = list(numbers(mine)), list(numbers(right))
    assert [name for name, _ in pairs[0]] == [name for name, _ in pairs[1]], where
    for (name, one), (_, other) in zip(*pairs, strict=True):
        assert one.dtype == other.dtype, (where, name)
        if one.dtype == bool:
            assert (one == other).all(), (where, name)
        else:
            assert np.abs(one - other).max(initial=0.0) < TINY * max(1.0, np.abs(other).max(initial=0.0)), (where, name)


def follow(identifier: str, mode: AutoresetMode, n_steps: int, n: int, limit: int, **options: Any) -> None:
    """Step both side by side. Robots are chaotic, so Gymnasium's are put where ours are before every step."""
    ours = evergait.vector.make(identifier, n, autoreset_mode=mode, max_episode_steps=limit, engine="planar", **options)
    bounds: Any = ours.action_space
    reference = theirs(identifier, n, mode, max_episode_steps=limit, **options)
    for env in reference.envs:
        env.unwrapped.model.opt.tolerance = 1e-15  # at its own, MuJoCo's solver stops at 1e-8
    assert isinstance(ours.robots, PlanarRobots)
    random = np.random.default_rng(1)
    scale = random.uniform(0.1, 1.2, (n, 1))  # beyond the bounds too, which only the control cost sees
    assert_close(ours.reset(seed=3), reference.reset(seed=3), "reset")
    for step in range(n_steps // n):
        for i, env in enumerate(reference.envs):
            env.unwrapped.data.qpos[:] = ours.robots.arrays.position[i]
            env.unwrapped.data.qvel[:] = ours.robots.arrays.velocity[i]
        action = (random.uniform(-1, 1, ours.action_space.shape) * scale * bounds.high).astype(np.float32)
        assert_close(ours.step(action), reference.step(action), f"step {step}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("identifier", sorted(TASKS))
def test_planar_robots_equal_gymnasium_to_rounding(identifier: str, mode: AutoresetMode) -> None:
    follow(identifier, mode, n_steps=1000, n=7, limit=LIMIT)


@pytest.mark.parametrize(
    ("identifier", "options"),
    [
        ("Walker2d-v5", {"terminate_when_unhealthy": False, "exclude_current_positions_from_observation": False}),
        ("Hopper-v5", {"healthy_reward": 3.0, "ctrl_cost_weight": 0.5, "healthy_z_range": (1.0, 1.3)}),
        ("Swimmer-v5", {"frame_skip": 2, "exclude_current_positions_from_observation": False}),
        ("HalfCheetah-v5", {"forward_reward_weight": 2.0, "reset_noise_scale": 0.3}),
    ],
)
def test_options_of_the_environment_are_followed(identifier: str, options: dict[str, Any]) -> None:
    follow(identifier, AutoresetMode.NEXT_STEP, n_steps=300, n=5, limit=LIMIT, **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("identifier", sorted(RULES))
def test_the_mujoco_engine_equals_gymnasium_bit_for_bit(identifier: str, mode: AutoresetMode) -> None:
    match(identifier, mode, n_steps=300, n=5, limit=LIMIT)


def match(identifier: str, mode: AutoresetMode, n_steps: int, n: int, limit: int) -> None:
    ours = evergait.vector.make(identifier, n, autoreset_mode=mode, max_episode_steps=limit, engine="mujoco")
    bounds: Any = ours.action_space
    reference = theirs(identifier, n, mode, max_episode_steps=limit)
    random = np.random.default_rng(1)
    assert data_equivalence(ours.reset(seed=3), reference.reset(seed=3), exact=True)
    for step in range(n_steps // n):
        action = random.uniform(-1, 1, ours.action_space.shape).astype(np.float32)
        action *= bounds.high
        mine, right = ours.step(action), reference.step(action)
        assert data_equivalence(mine[:4], right[:4], exact=True), step
        assert sorted(mine[4]) == sorted(right[4])
        for (name, one), (_, other) in zip(numbers(mine[4]), numbers(right[4]), strict=True):
            assert one.dtype == other.dtype, (step, name)
            assert (one == other).all(), (step, name)


@pytest.mark.prove
@pytest.mark.parametrize("identifier", sorted(RULES))
def test_a_million_steps(identifier: str) -> None:
    check: Callable[..., None] = follow if identifier in TASKS else match
    check(identifier, AutoresetMode.NEXT_STEP, n_steps=1_000_000, n=16, limit=1000)
