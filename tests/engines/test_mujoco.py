"""The mujoco engine against gymnasium.make(...).step, bit by bit, on all eleven tasks; divergence, failures."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest
from faults import wait_until
from mujoco.batch import SimulationError
from small import tiny_request

from evergait.engines import Episodes
from evergait.engines.mujoco.engine import MujocoEngine
from evergait.engines.mujoco.library import library
from evergait.engines.mujoco.simulation import Simulation
from evergait.engines.mujoco.tasks import RULES
from evergait.tasks import Task, make, parse_task
from evergait.tasks.base import apply_to_environment
from evergait.tasks.quiet import quiet


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


SEEDS = np.arange(3, dtype=np.uint32)


@pytest.fixture(params=["Hopper-v5", "Ant-v5"], ids=["batch", "contact batch"])
def simulation(request: pytest.FixtureRequest) -> Simulation:
    made = Simulation(Task(request.param), 4, 2)
    made.reset(SEEDS)
    return made


def actions(simulation: Simulation) -> np.ndarray:
    return np.zeros((simulation.n, simulation._env.model.nu), np.float32)


@pytest.mark.parametrize("poison", [1e9, 1e11, np.nan])
def test_divergence_stays_in_its_slot_and_ends_with_its_episode(simulation: Simulation, poison: float) -> None:
    simulation.at.qvel[1] = poison
    with quiet(), np.errstate(all="ignore"):
        simulation.step(actions(simulation))
    assert simulation.diverged().tolist() == [False, True, False]
    simulation.restart(np.array([1], np.int32), SEEDS[1:2])
    assert simulation.diverged().tolist() == [False, False, False]
    fresh = Simulation(simulation.task, 3, 1)
    assert np.array_equal(fresh.reset(SEEDS)[1], simulation.observe()[1])
    for _ in range(3):
        seen = simulation.step(actions(simulation))[0]
        assert np.array_equal(fresh.step(actions(simulation))[0][1], seen[1])


def test_what_a_request_leaves_behind_changes_no_other() -> None:
    """Environments are used again; Pusher and Reacher draw goals, which theirs keep."""
    engine = MujocoEngine()
    for task in ("Pusher-v5", "Reacher-v5", "Hopper-v5", "Hopper-v5@gravity=0.5"):
        asked = tiny_request(task, n_rows=6, horizon=20)
        fresh = MujocoEngine().run(asked, 1).returns
        for n_threads in (2, 1, 2):
            engine.run(replace(asked, seed=asked.seed + 7, healthy_bonus=0.5), n_threads)
            assert np.array_equal(engine.run(asked, n_threads).returns, fresh)


def test_a_failed_simulation_counts_as_diverged(simulation: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SimulationError(np.array([2]), "out of memory")

    monkeypatch.setattr(simulation._batch, "step", fail)
    simulation.step(actions(simulation))
    assert simulation.diverged().tolist() == [False, False, True]


def test_quiet_is_only_quiet_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>"
    )

    def diverge() -> bool:
        data = mujoco.MjData(model)
        data.qvel[:] = np.nan
        mujoco.mj_step(model, data)
        return (tmp_path / "MUJOCO_LOG.TXT").exists()

    with quiet(), quiet():
        assert not diverge()
    assert library().mju_getLogConfig().file
    assert diverge()


def test_threads_end_with_a_request(episodes: Callable[..., Episodes]) -> None:
    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    engine, before = MujocoEngine(), threads()
    for _ in range(3):
        engine.run(episodes("Ant-v5", horizon=2), 5)
    wait_until(lambda: threads() <= before)
