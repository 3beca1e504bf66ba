"""Every step equals that of as many environments of Gymnasium's own: observations, rewards, endings, infos."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
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
MEASURED = Path(__file__).parents[2] / "docs" / "vector.json"


@dataclass
class Agreement:
    """What two that were stepped side by side have shown."""

    steps: int = 0
    terminated: int = 0
    truncated: int = 0
    largest: float = 0.0
    """Difference of two numbers, relative to the largest entry where that is above 1."""
    where: str = ""

    def compare(self, mine: Any, right: Any, where: str) -> None:
        pairs = list(numbers(mine)), list(numbers(right))
        assert [name for name, _ in pairs[0]] == [name for name, _ in pairs[1]], where
        for (name, one), (_, other) in zip(*pairs, strict=True):
            assert one.dtype == other.dtype, (where, name)
            if one.dtype == bool:
                assert (one == other).all(), (where, name)
                continue
            apart = np.abs(one - other).max(initial=0.0) / max(1.0, np.abs(other).max(initial=0.0))
            assert np.isfinite(apart), (where, name)
            if apart > self.largest:
                self.largest, self.where = float(apart), f"{where}{name}"

    def step(self, mine: Any, right: Any) -> None:
        self.compare(mine, right, f"step {self.steps}")
        _, rewards, terminated, truncated, _ = mine
        self.steps += len(rewards)
        self.terminated += int(terminated.sum())
        self.truncated += int(truncated.sum())


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


def follow(identifier: str, mode: AutoresetMode, n_steps: int, n: int, limit: int, **options: Any) -> Agreement:
    """Step both side by side. Robots are chaotic, so Gymnasium's are put where ours are before every step."""
    ours = evergait.vector.make(identifier, n, autoreset_mode=mode, max_episode_steps=limit, engine="planar", **options)
    bounds: Any = ours.action_space
    reference = theirs(identifier, n, mode, max_episode_steps=limit, **options)
    for env in reference.envs:
        env.unwrapped.model.opt.tolerance = 1e-15  # at its own, MuJoCo's solver stops at 1e-8
    assert isinstance(ours.robots, PlanarRobots)
    random = np.random.default_rng(1)
    scale = random.uniform(0.1, 1.2, (n, 1))  # beyond the bounds too, which only the control cost sees
    agreement = Agreement()
    agreement.compare(ours.reset(seed=3), reference.reset(seed=3), "reset")
    while agreement.steps < n_steps:
        for i, env in enumerate(reference.envs):
            env.unwrapped.data.qpos[:] = ours.robots.arrays.position[i]
            env.unwrapped.data.qvel[:] = ours.robots.arrays.velocity[i]
        action = (random.uniform(-1, 1, ours.action_space.shape) * scale * bounds.high).astype(np.float32)
        agreement.step(ours.step(action), reference.step(action))
    assert agreement.largest < TINY, agreement
    return agreement


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


def match(identifier: str, mode: AutoresetMode, n_steps: int, n: int, limit: int) -> Agreement:
    """Step both side by side, from the same seeds on, and never touch them."""
    ours = evergait.vector.make(identifier, n, autoreset_mode=mode, max_episode_steps=limit, engine="mujoco")
    bounds: Any = ours.action_space
    reference = theirs(identifier, n, mode, max_episode_steps=limit)
    random, agreement = np.random.default_rng(1), Agreement()
    agreement.compare(ours.reset(seed=3), reference.reset(seed=3), "reset")
    while agreement.steps < n_steps:
        action = random.uniform(-1, 1, ours.action_space.shape).astype(np.float32)
        action *= bounds.high
        agreement.step(ours.step(action), reference.step(action))
        assert agreement.largest == 0.0, agreement
    return agreement


@pytest.mark.agree
@pytest.mark.parametrize("identifier", sorted(RULES))
def test_a_million_steps(identifier: str) -> None:
    """Half of them in each autoreset mode; docs/vector.md shows what is recorded here."""
    record(identifier, [])
    check = follow if identifier in TASKS else match
    record(identifier, [check(identifier, mode, n_steps=500_000, n=16, limit=1000) for mode in MODES])


def record(identifier: str, agreements: list[Agreement]) -> None:
    measured = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    proof = measured.setdefault("proof", {})
    proof.pop(identifier, None)
    if agreements:
        counts = {name: sum(getattr(one, name) for one in agreements) for name in ("steps", "terminated", "truncated")}
        engine = "planar" if identifier in TASKS else "mujoco"
        proof[identifier] = {"engine": engine, **counts, "largest": max(one.largest for one in agreements)}
    measured["versions"] = {"gymnasium": gymnasium.__version__, "mujoco": mujoco.__version__}
    MEASURED.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")
