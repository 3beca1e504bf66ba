"""SIGKILL at any moment, and at every system call: the same command again ends with the same bytes."""

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
from faults import Forks, evergait, session, tree, wait_until, write_counts
from small import tiny_config

from evergait.commands.study import run_study
from evergait.config import Config
from evergait.training.run import Run, train

BEFORE, AFTER, TORN = -1, -2, -3


def saved(out: Path) -> dict[str, int]:
    """How far every phase is in the store."""
    files = out.rglob("progress.json")
    return {file.parent.name: json.loads(file.read_text())["generation"] for file in files}


def kill_at_random_moments(forks: Forks, command: tuple[object, ...], seconds: float, chance: random.Random) -> int:
    """The same command again and again, each time killed after at most so many seconds, until it ends by itself.

    What was saved is never lost again, which the bytes at the end do not tell. The seconds grow a little each time: on
    a crowded machine a process would otherwise never get anywhere.
    """
    out, before = Path(str(command[2])), dict[str, int]()
    n_killed = 0
    while True:
        process = forks.start(*command)  # type: ignore[arg-type]
        deadline = time.monotonic() + chance.uniform(0, seconds * 1.1**n_killed)
        while time.monotonic() < deadline and not forks.is_over(process):
            time.sleep(0.001)
        forks.kill(process)
        code = forks.wait(process)
        if code == 0:
            return n_killed
        assert code == -signal.SIGKILL
        n_killed += 1
        now = saved(out)
        assert all(now[phase] >= generation for phase, generation in before.items())
        before = now


@pytest.mark.parametrize("n_kills", [8, pytest.param(200, marks=pytest.mark.prove)])
def test_training(forks: Forks, long_config: Config, undisturbed: Path, tmp_path: Path, n_kills: int) -> None:
    (tmp_path / "c.toml").write_text(long_config.to_toml())
    expected, chance = tree(undisturbed), random.Random(n_kills)
    n_killed = n_runs = 0
    while n_killed < n_kills:
        out = tmp_path / str(n_runs)
        n_killed += kill_at_random_moments(forks, ("train", tmp_path / "c.toml", out), 0.5, chance)
        assert tree(out) == expected
        n_runs += 1
    if n_kills >= 200:
        write_counts("kill-training", n_killed, 0, f"{n_runs} runs, every file compared with the undisturbed run's")


@pytest.mark.parametrize("n_kills", [3, pytest.param(200, marks=pytest.mark.prove)])
def test_study(forks: Forks, study: Path, tmp_path: Path, n_kills: int) -> None:
    run_study(study, tmp_path / "whole", threads=1, artifacts=False)
    expected, chance = tree(tmp_path / "whole"), random.Random(n_kills)
    n_killed = n_runs = 0
    while n_killed < n_kills:
        out = tmp_path / str(n_runs)
        n_killed += kill_at_random_moments(forks, ("study", study, out, 1), 0.8, chance)
        assert tree(out) == expected
        n_runs += 1
    if n_kills >= 200:
        write_counts("kill-study", n_killed, 0, f"{n_runs} studies of 6 phases, one process each")


@pytest.mark.prove
def test_study_with_two_jobs(forks: Forks, study: Path, tmp_path: Path) -> None:
    """Sometimes only the process that the user sees dies: then its children must notice, and let go of their locks."""
    study.write_text(study.read_text().replace("generations = 6", "generations = 60"))
    run_study(study, tmp_path / "whole", threads=1, artifacts=False)
    expected, chance = tree(tmp_path / "whole"), random.Random(0)
    leaders: list[int] = []
    n_killed = n_runs = 0
    while n_killed < 20:
        out = tmp_path / str(n_runs)
        n_runs += 1
        code = 1
        while code:
            process = forks.start("study", study, out, 2)
            time.sleep(chance.uniform(0, 6))
            if chance.random() < 0.5:
                os.kill(process, signal.SIGKILL)
            else:
                forks.kill(process)
            code = forks.wait(process)
            n_killed += code != 0
            leaders.append(process)
        assert tree(out) == expected
    wait_until(lambda: not any(map(session, leaders)))
    write_counts("kill-study-jobs", n_killed, 0, f"{n_runs} studies, two jobs; the parent alone or all at once")


@pytest.mark.parametrize("kind", [BEFORE, AFTER, TORN])
@pytest.mark.parametrize("share", [12, pytest.param(1, marks=pytest.mark.prove)])
def test_every_system_call_is_the_last_one_once(
    forks: Forks, small: tuple[Config, Path], calls: tuple[int, dict[str, bytes]], tmp_path: Path, kind: int, share: int
) -> None:
    (_, path), (n_calls, expected) = small, calls
    assert n_calls > 60  # three checkpoints, the result, config.toml, run.json, folders and locks
    n_tried = 0
    for nth in range(1 + n_calls % share, n_calls + 1, share):
        out = tmp_path / f"{nth}"
        assert forks.run("train", path, out, fault=(out, nth, kind)) == -signal.SIGKILL
        assert forks.run("train", path, out) == 0, f"call {nth} of {n_calls}: {Path(f'{out}.error').read_text()}"
        assert tree(out) == expected, f"call {nth} of {n_calls}"
        n_tried += 1
    if share == 1:
        name = {BEFORE: "before", AFTER: "after", TORN: "torn"}[kind]
        which = "; only a write has a middle" if kind == TORN else ""
        write_counts(f"kill-call-{name}", n_tried, 0, f"all {n_calls} calls that change a file{which}")


@pytest.mark.parametrize("n_runs", [4, pytest.param(30, marks=pytest.mark.prove)])
def test_runs_that_start_at_once_share_their_phases(tmp_path: Path, n_runs: int) -> None:
    """Half of the runs learn one second task, half another; the first phase is common to all."""
    first, *seconds = "InvertedPendulum-v5", "Reacher-v5", "InvertedDoublePendulum-v5"
    configs = [tiny_config(stream=(first, second), tasks=(first, *seconds)) for second in seconds]
    for i, config in enumerate(configs):
        (tmp_path / f"{i}.toml").write_text(config.to_toml())
    store = tmp_path / "store"
    processes = [
        evergait("train", "--config", tmp_path / f"{i % 2}.toml", "--store", store, "--threads", 1, "--out", out)
        for i, out in enumerate(tmp_path / f"run{i}" for i in range(n_runs))
    ]
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * n_runs, outputs
    assert "".join(outputs).count("starts") == 3
    assert "".join(outputs).count("goes on") == 0
    assert len(list(store.iterdir())) == 3
    for i, config in enumerate(configs):
        train(config, tmp_path / f"alone{i}", threads=1)
        for phase in Run.load(tmp_path / f"alone{i}").phases:
            assert tree(phase.path) == tree(store / phase.name)
    assert len({Run.load(tmp_path / f"run{i}", store).theta_sha256 for i in range(n_runs)}) == 2
    if n_runs == 30:
        write_counts("many-runs", n_runs, 0, "60 phases asked for, 3 different ones, 3 trained")
