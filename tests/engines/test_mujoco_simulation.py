"""Divergence, failures and silence of the batched simulation."""

from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest
from faults import wait_until
from mujoco.batch import SimulationError

from evergait.engines import Episodes
from evergait.engines.mujoco.engine import MujocoEngine
from evergait.engines.mujoco.library import library
from evergait.engines.mujoco.simulation import Simulation
from evergait.tasks import Task
from evergait.tasks.quiet import quiet

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
