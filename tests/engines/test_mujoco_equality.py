"""The mujoco engine's simulation against gymnasium.make(...).step, bit by bit, on all eleven tasks."""

import gymnasium
import numpy as np
import pytest

from evergait.engines.mujoco.simulation import Simulation
from evergait.engines.mujoco.tasks import RULES
from evergait.tasks import Task, make, parse_task
from evergait.tasks.variants import apply_to_environment


def bits(x: object) -> np.ndarray:
    return np.atleast_1d(np.asarray(x, np.float64)).view(np.uint64)


def count_differing_bits(task: Task, seeds: list[int], n_steps: int, n_threads: int) -> int:
    """Random actions, one scale per episode so that some fall at once and some live long, in both simulators."""
    n, space = len(seeds), make(task).action_space
    simulation = Simulation(task, n + 3, n_threads)
    random = np.random.default_rng(seeds[0])
    scales = random.uniform(0, 1.5, (n, 1)).astype(np.float32)
    envs: list[gymnasium.Env] = []
    for _ in seeds:
        env = make(task)
        apply_to_environment(task.variant, env)
        envs.append(env)
    seen = simulation.reset(np.array(seeds, np.uint32))
    differing = sum(
        int((bits(env.reset(seed=s)[0]) != bits(row)).sum()) for env, s, row in zip(envs, seeds, seen, strict=True)
    )
    alive = np.ones(n, bool)
    for _ in range(n_steps):
        actions = scales * random.uniform(space.low, space.high, (n, space.shape[0])).astype(np.float32)  # type: ignore[attr-defined, index]
        seen, rewards, terminated, truncated = simulation.step(actions)
        for i in np.flatnonzero(alive):
            observation, reward, over, cut, _ = envs[i].step(actions[i])
            differing += int((bits(observation) != bits(seen[i])).sum() + (bits(reward) != bits(rewards[i])).sum())
            differing += int(over != terminated[i]) + int(cut != truncated[i])
            alive[i] = not (over or cut)
        if not alive.any():
            break
    return differing


@pytest.mark.parametrize("name", RULES)
def test_equals_gymnasium(name: str) -> None:
    assert count_differing_bits(Task(name), [0, 1, 2**32 - 1, 7], 120, 2) == 0


@pytest.mark.parametrize("name", ["Hopper-v5@moon,ice", "HalfCheetah-v5@heavy,weak", "Humanoid-v5@heavy,reset_noise=4"])
def test_variants_equal_gymnasium(name: str) -> None:
    assert count_differing_bits(parse_task(name), [5, 6], 60, 1) == 0


@pytest.mark.prove
def test_a_thousand_episodes_equal_gymnasium() -> None:
    n_episodes, differing = 0, {}
    for index, name in enumerate(RULES):
        seeds = list(range(1000 * index, 1000 * index + 92))
        differing[name] = count_differing_bits(Task(name), seeds, 1000, 2)
        n_episodes += len(seeds)
        print(f"{name}: {len(seeds)} episodes, {differing[name]} values with differing bits", flush=True)
    print(f"{n_episodes} episodes, {sum(differing.values())} values with differing bits")
    assert n_episodes >= 1000
    assert sum(differing.values()) == 0
