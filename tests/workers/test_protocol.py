"""One suite for every kind of workers: the same rows give the same bits, in the same order.

On the way every row is handed out once, in shrinking ranges, and again when it is lost.
"""

import importlib
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import tiny_config, tiny_request

from evergait.core.errors import EvergaitError
from evergait.core.versions import difference, own_versions
from evergait.engines import Outcome, get_engine
from evergait.tasks import Task
from evergait.tasks.robot_file import Reward, RobotFile
from evergait.training.run import train
from evergait.workers import Local, LocalWorkers, Ray, Workers, WorkersChoice
from evergait.workers.chunks import Chunk, Chunks
from evergait.workers.wire import pack_request, unpack_request


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


def drain(chunks: Chunks, n_threads: int, n_all: int) -> list[Chunk]:
    return list(iter(lambda: chunks.take(n_threads, n_all), None))


@given(st.integers(1, 3000), st.integers(1, 64), st.integers(1, 8), st.integers(1, 200))
def test_ranges_cover_all_rows_in_order_and_shrink(n_rows: int, smallest: int, n_threads: int, n_workers: int) -> None:
    taken = drain(Chunks(n_rows, smallest, 3), n_threads, n_threads * n_workers)
    edges = [taken[0].begin, *(chunk.end for chunk in taken)]
    assert [chunk.begin for chunk in taken] == edges[:-1]
    assert (edges[0], edges[-1]) == (0, n_rows)
    sizes = [chunk.n_rows for chunk in taken]
    assert sizes == sorted(sizes, reverse=True)
    assert all(size >= smallest * n_threads for size in sizes[:-1])


def test_no_rows_are_one_empty_range() -> None:
    (chunk,) = drain(Chunks(0, 8, 3), 1, 2)
    assert (chunk.begin, chunk.end) == (0, 0)


def test_a_lost_range_comes_next_and_not_for_ever() -> None:
    chunks = Chunks(100, 10, retries=2)
    first, second = chunks.take(1, 2), chunks.take(1, 2)
    assert first
    assert second
    for _ in range(2):
        chunks.give_back(first, "the node left")
        assert chunks.n_left == 100 - second.end + first.end
        assert chunks.take(1, 2) is first
    chunks.give_back(second, "the node left", is_at_fault=False)
    assert (chunks.take(1, 2), second.n_losses) == (second, 0)
    with pytest.raises(EvergaitError, match=r"rows 0 to 33 were lost 3 times .* workers.retries is 2.*the node left"):
        chunks.give_back(first, "the node left")


def test_versions_that_differ_are_both_named() -> None:
    here = own_versions()
    assert set(here) == {"Python", "evergait", "mujoco", "numpy", "gymnasium"}
    assert difference(here, here, "there") == ""
    other = {**here, "mujoco": "9.9.9"}
    assert difference(here, other, "node7") == f"mujoco is {here['mujoco']} here and 9.9.9 on node7"
    assert "numpy" in difference(here, {}, "node7")


def test_kinds_are_found_by_name() -> None:
    assert WorkersChoice.members == {"local": Local, "ray": Ray}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"actor_threads": 0}, "workers.actor_threads: is 0; it must be at least 1"),
        ({"retries": -1}, "workers.retries: is -1"),
        ({"poll_seconds": 0.0}, "workers.poll_seconds: is 0.0; it must be above 0"),
        ({"start_seconds": 1e300}, "workers.start_seconds: is 1e\\+300; it must be above 0, and at most 1e\\+06"),
        ({"address": "ray://host:10001"}, "it must be empty, auto or HOST:PORT"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(EvergaitError, match=message):
        Ray(**options).start(1)  # type: ignore[arg-type]


def test_missing_ray_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EvergaitError, match=r"pip install 'evergait\[ray\]'"):
        Ray().start(1)


EXAMPLE = Path(__file__).parents[2] / "examples" / "robot"


def test_a_robots_files_must_be_the_same_on_every_machine(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    robot, model = tmp_path / "crawler.toml", tmp_path / "crawler.xml"
    request = tiny_request(str(robot), n_rows=2)
    sent = pack_request("planar", request)
    engine, episodes = unpack_request(sent)
    assert (engine, episodes.task) == ("planar", request.task)
    xml = model.read_text()
    model.write_text(xml.replace('gear="10"', 'gear="11"'))  # as a stale copy on another machine
    with pytest.raises(EvergaitError, match=r"crawler.toml: it or its model is another one on .* copy the files"):
        unpack_request(sent)
    model.write_text(xml)
    assert unpack_request(sent)[0] == "planar"
    robot.unlink()
    with pytest.raises(EvergaitError, match=r"crawler.toml: is missing .*a robot's files must be on every machine"):
        unpack_request(sent)


ENVIRONMENT = """import gymnasium
class Mine(gymnasium.Env):
    gain = 1.0
def still(env, action, speed):
    return 0.0
"""


@pytest.mark.parametrize("how", ["name", "class", "reward"])
def test_the_code_of_others_must_be_the_same_on_every_machine(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"envs_by_{how}"
    for name, text in (("here", ENVIRONMENT), ("there", ENVIRONMENT.replace("1.0", "2.0")), ("nowhere", "")):
        (tmp_path / name).mkdir()
        if text:
            (tmp_path / name / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "here")
    monkeypatch.setattr("importlib.metadata.packages_distributions", dict)  # which takes a second
    request, task = tiny_request(n_rows=2), f"By-{how}-v0"
    if how == "reward":
        task = str(tmp_path / "still.toml")
        shutil.copy(EXAMPLE / "crawler.xml", tmp_path)
        RobotFile("crawler.xml", reward=Reward(function=f"{module}:still")).save(task)
    else:
        place = f"{module}:Mine" if how == "name" else importlib.import_module(module).Mine
        gymnasium.register(task, place)
    sent = pack_request("gymnasium", replace(request, task=Task(task)))
    gymnasium.registry.pop(task, None)
    for where, words in (("here", ""), ("there", r"is \w{12}"), ("nowhere", "is missing")):
        sys.modules.pop(module, None)
        monkeypatch.setattr(sys, "path", [str(tmp_path / where), *(x for x in sys.path if str(tmp_path) not in x)])
        importlib.invalidate_caches()
        if not words:
            assert unpack_request(sent)[1].task.id == task
            gymnasium.registry.pop(task, None)
            continue
        with pytest.raises(
            EvergaitError, match=rf"its code, the Python module '{module}', {words} on .* must be \w{{12}}"
        ):
            unpack_request(sent)
    sys.modules.pop(module, None)


def test_a_class_that_another_machine_cannot_import_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    script: Any = type("Script", (gymnasium.Env,), {"__module__": "__main__"})
    gymnasium.register("Script-v0", script)
    monkeypatch.setattr(sys.modules["__main__"], "Script", script, raising=False)
    sent = pack_request("gymnasium", replace(tiny_request(n_rows=2), task=Task("Script-v0")))
    monkeypatch.delattr(sys.modules["__main__"], "Script")
    del gymnasium.registry["Script-v0"]
    with pytest.raises(
        EvergaitError, match=r"task 'Script-v0': its class is in the module '__main__', which cannot be"
    ):
        unpack_request(sent)


def test_other_tasks_travel_by_their_name() -> None:
    assert unpack_request(pack_request("planar", tiny_request("Hopper-v5", n_rows=2)))[1].task.id == "Hopper-v5"
