"""One suite for every kind of workers: the same rows give the same bits, in the same order."""

import gymnasium
import numpy as np
import pytest
from small import tiny_config, tiny_request

from evergait.core.errors import EvergaitError
from evergait.engines import Outcome, get_engine
from evergait.training.run import train
from evergait.workers import LocalWorkers, Workers, WorkersChoice

pytestmark = pytest.mark.xdist_group("ray")


@pytest.fixture(params=list(WorkersChoice.members))
def workers(request: pytest.FixtureRequest) -> Workers:
    if request.param == "local":
        return LocalWorkers(2)
    found: Workers = request.getfixturevalue("cluster").workers()
    return found


def same(a: Outcome, b: Outcome) -> bool:
    names = ("returns", "lengths", "diverged", "statistics")
    pairs = [(getattr(a, name), getattr(b, name)) for name in names]
    return all(x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in pairs)


def test_keeps_the_protocol(workers: Workers) -> None:
    assert isinstance(workers, Workers)
    assert workers.name in WorkersChoice.members
    assert workers.n_threads >= 1
    assert workers.traffic().n_requests >= 0


@pytest.mark.parametrize("n_rows", [0, 1, 7, 200])
def test_outcomes_are_those_of_the_engine_in_row_order(workers: Workers, n_rows: int) -> None:
    asked = tiny_request(n_rows=n_rows, horizon=30, gather_statistics=True)
    assert same(workers.run("mujoco", asked), get_engine("mujoco").run(asked, 1))


def test_engines_and_tasks_take_turns(workers: Workers) -> None:
    for task in ("Reacher-v5", "Hopper-v5", "Reacher-v5"):
        for engine in ("mujoco", "planar"):
            asked = tiny_request(task, n_rows=20, horizon=10)
            if not get_engine(engine).refuses(asked.task):
                assert same(workers.run(engine, asked), get_engine(engine).run(asked, 1))


def test_an_environment_of_ones_own_is_known_everywhere(workers: Workers) -> None:
    place = "gymnasium.envs.classic_control.pendulum:PendulumEnv"
    if "Mine-v0" not in gymnasium.registry:
        gymnasium.register("Mine-v0", place, max_episode_steps=7)
    outcome = workers.run("gymnasium", tiny_request("Mine-v0", n_rows=6))
    assert outcome.lengths.tolist() == [7] * 6


def test_what_an_engine_complains_of_arrives_as_it_is(workers: Workers) -> None:
    asked = tiny_request("Ant-v5", n_rows=40)
    with pytest.raises(EvergaitError) as local:
        get_engine("planar").run(asked, 1)
    with pytest.raises(EvergaitError) as error:
        workers.run("planar", asked)
    assert str(error.value) == str(local.value)
    assert workers.traffic().n_redone == 0
    after = tiny_request(n_rows=30, horizon=5)  # and they go on working
    assert same(workers.run("mujoco", after), get_engine("mujoco").run(after, 1))


def test_training_gives_the_same_bits(workers: Workers, tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.mktemp("bits")
    ours = train(tiny_config(), out / "ours", threads=1, workers=workers)
    assert ours.theta_sha256 == train(tiny_config(), out / "local", threads=1).theta_sha256
