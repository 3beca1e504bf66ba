"""A cluster gives the bits of one machine, whatever dies, and leaves nothing behind."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import tiny_config, tiny_request, tiny_study

from evergait.cli import main
from evergait.commands.study import LOCAL, run_study
from evergait.config import Config
from evergait.core.errors import EvergaitError
from evergait.core.versions import own_versions
from evergait.engines import Episodes, get_engine
from evergait.training.observer import Observer, Position
from evergait.training.run import Run, train
from evergait.workers import Ray

CONFIG = tiny_config(generations=3, pairs=24)


@pytest.fixture(scope="module")
def local_hash(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train(CONFIG, tmp_path_factory.mktemp("local") / "run", threads=1).theta_sha256


def strike_one(members: list[Any], number: signal.Signals = signal.SIGKILL) -> Any:
    """Send a signal to the first that lives; others may have been killed before, and not been missed yet."""
    for member in members:
        with contextlib.suppress(ProcessLookupError):
            os.kill(member.process, number)
            return member
    return None


def at_length() -> Episodes:
    """Rows that take about a second, so that something can happen to an actor meanwhile."""
    return tiny_request("HalfCheetah-v5", n_rows=48, horizon=300)


class EachGeneration(Observer):
    """An observer that does something after every generation."""

    def __init__(self, act: Callable[[int], None]) -> None:
        self.act, self.n_done = act, 0

    def generation_done(self, at: Position, seen: object) -> None:
        self.n_done += 1
        self.act(self.n_done)


def test_three_nodes_and_one_give_the_same_bits(cluster: Any, tmp_path: Path, local_hash: str) -> None:
    for share, n_nodes in ((3, 1), (1, 3)):
        workers = cluster.workers(share=share)
        run = train(CONFIG, tmp_path / str(n_nodes), threads=1, workers=workers)
        assert run.theta_sha256 == local_hash
        traffic = workers.traffic()
        assert (traffic.n_workers, traffic.n_nodes, traffic.n_lost) == (n_nodes, n_nodes, 0)
        assert traffic.n_chunks > traffic.n_requests > 6


def test_only_counters_and_theta_travel(cluster: Any) -> None:
    workers = cluster.workers()
    asked = tiny_request(n_rows=600, horizon=3)
    before = workers.traffic()
    workers.run("mujoco", asked)
    after = workers.traffic()
    once = asked.theta.nbytes + asked.pair.nbytes + asked.sign.nbytes + asked.seed.nbytes
    sent = after.n_bytes_sent - before.n_bytes_sent
    assert 0 < sent <= after.n_nodes * (once + 4000)  # the rest is names, layers, bounds
    received = after.n_bytes_received - before.n_bytes_received
    n_chunks = after.n_chunks - before.n_chunks
    assert 600 * 13 <= received <= 600 * 13 + 600 * n_chunks


def test_actors_and_a_node_die_and_a_node_joins(cluster: Any, tmp_path: Path, local_hash: str) -> None:
    workers = cluster.workers()
    n_lost_before = workers.traffic().n_lost
    small = tiny_request(n_rows=12, horizon=3)

    def act(n_done: int) -> None:
        assert strike_one(workers.crew.ready)
        if n_done == 2:
            cluster.remove_node()
        if n_done == 4:
            cluster.add_node()
            deadline = time.monotonic() + 90
            while workers.traffic().n_nodes < 3 and time.monotonic() < deadline:
                workers.run("mujoco", small)
                time.sleep(0.2)
            newest = cluster.nodes[-1].node_id
            assert newest in {member.node for member in workers.crew.ready}
            number = workers._number
            workers.run("mujoco", tiny_request(n_rows=300, horizon=3))
            assert [m.node for m in workers.crew.ready if m.node == newest and m.request > number]

    run = train(CONFIG, tmp_path / "run", threads=1, workers=workers, observers=[EachGeneration(act)])
    assert run.theta_sha256 == local_hash
    assert workers.traffic().n_lost - n_lost_before >= 5  # six and a node, but the last death need not be noticed


Strike = Callable[..., list[Any]]


@pytest.fixture
def strike() -> Iterator[Strike]:
    """Kills an actor, or does worse, as soon as it is at work; whom it was will be in the list."""
    threads = []

    def start(workers: Any, number: signal.Signals = signal.SIGKILL) -> list[Any]:
        struck: list[Any] = []

        def act() -> None:
            while not struck:
                time.sleep(0.05)
                if member := strike_one([member for member in workers.crew.ready if member.chunks], number):
                    struck.append(member)

        threads.append(threading.Thread(target=act, daemon=True))
        threads[-1].start()
        return struck

    yield start
    for thread in threads:
        thread.join(10)


def test_what_an_actor_was_at_is_done_again(cluster: Any, strike: Strike) -> None:
    workers = cluster.workers()
    asked = at_length()
    before = workers.traffic().n_redone
    strike(workers)
    outcome = workers.run("mujoco", asked)
    assert workers.traffic().n_redone > before
    assert np.array_equal(outcome.returns, get_engine("mujoco").run(asked, 2).returns)


def test_there_is_a_limit(cluster: Any, strike: Strike, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = cluster.workers()
    monkeypatch.setattr(workers, "options", replace(workers.options, retries=0))
    strike(workers)
    with pytest.raises(EvergaitError, match=r"were lost 1 times .* workers.retries is 0; the last time: .*died"):
        workers.run("mujoco", at_length())


def test_an_actor_that_hangs_holds_nobody_up_and_is_used_again_when_it_wakes(
    cluster: Any, strike: Strike, caplog: pytest.LogCaptureFixture
) -> None:
    workers = cluster.workers(patience_seconds=1.0)
    asked = at_length()
    struck, before = strike(workers, signal.SIGSTOP), workers.traffic()
    outcome = workers.run("mujoco", asked)
    (hung,) = struck
    assert np.array_equal(outcome.returns, get_engine("mujoco").run(asked, 2).returns)
    assert f"have not answered for some time (process {hung.process} on " in caplog.text
    after = workers.traffic()
    assert after.n_redone > before.n_redone
    assert after.n_lost == before.n_lost

    small, number = tiny_request(n_rows=60, horizon=3), hung.request
    assert len(workers.run("mujoco", small).returns) == 60
    assert (hung.request, hung.is_behind) == (number, True)  # nobody waits for it a second time
    os.kill(hung.process, signal.SIGCONT)
    deadline = time.monotonic() + 60
    while hung.request == number:
        assert time.monotonic() < deadline
        outcome = workers.run("mujoco", small)  # answers of before are ignored
        assert np.array_equal(outcome.returns, get_engine("mujoco").run(small, 1).returns)
    assert not hung.is_behind


def test_an_actor_that_hangs_can_be_ended(cluster: Any, strike: Strike) -> None:
    workers = cluster.workers(patience_seconds=1.0)
    struck = strike(workers, signal.SIGSTOP)
    workers.run("mujoco", at_length())
    cluster.free()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{struck[0].process}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_answers_that_nobody_needs_are_ignored(cluster: Any) -> None:
    from evergait.workers.chunks import Chunk, Chunks
    from evergait.workers.ray.crew import Answer, Member
    from evergait.workers.ray.workers import _Request

    workers = cluster.workers()
    future: Future[bytes] = Future()
    future.set_result(b"nonsense")
    request = _Request(7, "planar", None, 0, Chunks(9, 1, 1), 9)
    workers._hear(Answer(Member(None), Chunk(0, 9), future), request)  # of an actor that was given up
    slow, chunk = workers.crew.ready[0], Chunk(0, 9, is_needed=False)
    slow.chunks.append(chunk)
    workers._hear(Answer(slow, chunk, future), request)  # of one that was too late
    assert not request.parts
    assert chunk not in slow.chunks


def test_other_versions_are_refused(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.free()
    theirs = own_versions()["mujoco"]
    monkeypatch.setattr("evergait.workers.ray.crew.own_versions", lambda: {**own_versions(), "mujoco": "9.9.9"})
    with pytest.raises(EvergaitError, match=f"mujoco is 9.9.9 here and {theirs} on .*install the same versions"):
        cluster.workers()


def test_machines_with_other_elementary_functions_do_not_simulate_what_depends_on_them(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = cluster.workers()
    monkeypatch.setattr("evergait.workers.ray.crew.libm_fingerprint", lambda: "another processor")
    with pytest.raises(EvergaitError, match=r"no machine can be used: .* with them the mujoco engine"):
        workers.run("mujoco", tiny_request(n_rows=4))
    assert len(workers.run("planar", tiny_request(n_rows=4)).returns) == 4


def test_studies_run_on_a_cluster_one_phase_at_a_time_or_several(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(tiny_study(generations=2, replay=False))
    hashes = []
    for name, jobs, kind in (("local", 1, LOCAL), ("one", 1, None), ("two", 2, None)):
        cluster.free()
        workers = kind or Ray(address=cluster.address)
        choices: dict[str, Any] = {"jobs": jobs, "threads": 1, "workers": workers, "artifacts": False}
        results = run_study(tmp_path / "s.toml", tmp_path / name, seeds=1, **choices)
        hashes.append([entry.run.theta_sha256 for entry in results.entries])
    assert hashes[0] == hashes[1] == hashes[2]


def test_the_command_line_joins_and_tells_what_travelled(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.free()
    config: Config = tiny_config(generations=2)
    (tmp_path / "c.toml").write_text(config.to_toml())
    arguments = ["train", "--config", str(tmp_path / "c.toml"), "--out", str(tmp_path / "run"), "--workers", "ray"]
    assert main([*arguments, "--workers.address", cluster.address]) == 0
    assert "workers: 3 on 3 nodes; per generation " in capsys.readouterr().out
    local = train(config, tmp_path / "local", threads=1)
    assert Run.load(tmp_path / "run").theta_sha256 == local.theta_sha256
