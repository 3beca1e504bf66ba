"""SIGKILL at any moment, and at every system call: the same command again ends with the same bytes.

Ctrl-C, SIGTERM and a closed terminal: a safe point within seconds, a word on how to go on, nothing left behind.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from faults import Forks, evergait, processes_with, session, shared_memory, tree, wait_until, write_counts
from small import tiny_config

from evergait.commands.study import run_study
from evergait.config import Config, Evaluation
from evergait.methods import Naive
from evergait.store.phases import PhaseStore
from evergait.training.phases import plan_phases
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


SECONDS = 10.0
"""Within which a command must have ended."""


def stop(
    process: subprocess.Popen[str], numbers: tuple[int, ...], chance: random.Random, longest: float = 0.5
) -> tuple[str, float]:
    """Send signals to the whole group, as a terminal does, some moments after training has begun."""
    assert process.stdout
    said = process.stdout.readline()
    while "starts" not in said and "goes on" not in said:
        assert said, "it ended before it began to train"
        said = process.stdout.readline()
    time.sleep(chance.uniform(0, longest))
    begun = time.monotonic()
    for number in numbers:
        os.killpg(process.pid, number)
        time.sleep(chance.uniform(0, 0.2))
    output, _ = process.communicate(timeout=60)
    return output, time.monotonic() - begun


CONFIGS = {
    "threads": tiny_config(generations=100_000, pairs=4),
    "processes": tiny_config(
        stream=("CartPole-v1",), engine="gymnasium", generations=100_000, pairs=4, method=Naive(), horizon=20
    ),
}
SIGNALS = [
    (signal.SIGINT,),
    (signal.SIGTERM,),
    (signal.SIGINT, signal.SIGINT),
    (signal.SIGTERM, signal.SIGTERM),
    (signal.SIGINT, signal.SIGTERM),
    (signal.SIGHUP,),
]


def leaves_nothing_behind(output: str, mark: str, shared: set[str]) -> None:
    """What was stopped says how to go on, and neither a process nor shared memory of it is left."""
    assert "run the same command again to go on" in output
    assert "Traceback" not in output
    wait_until(lambda: not processes_with(mark), 5)
    wait_until(lambda: shared_memory() <= shared, 10)  # neighbours come and go


def stop_once(folder: Path, config: Config, numbers: tuple[int, ...], chance: random.Random) -> float:
    (folder / "c.toml").write_text(config.to_toml())
    mark, shared = str(uuid.uuid4()), shared_memory()
    arguments = ("train", "--config", folder / "c.toml", "--out", folder / "run", "--threads", 2)
    process = evergait(*arguments, env={"EVERGAIT_MARK": mark}, start_new_session=True)
    try:
        ledgers = (folder / "run").glob  # once one is written, there is something to lose
        wait_until(lambda: any(ledger.stat().st_size for ledger in ledgers("phases/*/ledger.jsonl")))
        output, seconds = stop(process, numbers, chance)
        assert process.returncode in {128 + number for number in numbers}, output
        assert seconds < SECONDS
        leaves_nothing_behind(output, mark, shared)
    finally:
        for pid in processes_with(mark):
            os.kill(pid, signal.SIGKILL)
        process.wait()
    assert list((folder / "run").glob("phases/*/checkpoint.safetensors"))
    assert not list((folder / "run").rglob(".*"))
    return seconds


@pytest.mark.parametrize(
    ("engine", "numbers"), [("threads", SIGNALS[1]), ("processes", SIGNALS[2]), ("threads", SIGNALS[5])]
)
def test_a_run_stops_at_a_safe_point(tmp_path: Path, engine: str, numbers: tuple[int, ...]) -> None:
    stop_once(tmp_path, CONFIGS[engine], numbers, random.Random(1))


def handles(process: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (caught,) = (line.split()[1] for line in lines if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (number - 1) & 1)


def stops_without_a_checkpoint(folder: Path, config: Config) -> str:
    """Stop a run that has begun a phase and not trained in it."""
    (folder / "c.toml").write_text(config.to_toml())
    process = evergait("train", "--config", folder / "c.toml", "--out", folder / "run", start_new_session=True)
    try:
        wait_until(lambda: process.poll() is not None or handles(process.pid, signal.SIGTERM))
        time.sleep(1.0)
        process.terminate()
        output, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 143, output
    assert "run the same command again to go on" in output
    return output


def test_a_run_that_waits_for_another_says_so_and_stops(tmp_path: Path) -> None:
    store, config = PhaseStore(tmp_path / "run" / "phases"), CONFIGS["threads"]
    with store.writing(plan_phases(config)[0].identity) as writer:
        assert writer
        output = stops_without_a_checkpoint(tmp_path, config)
    assert "waiting for another process, which trains phase" in output


def test_a_run_stops_before_its_first_generation(tmp_path: Path) -> None:
    evaluation = Evaluation(every=1, episodes=1000, random_policies=1000)
    stops_without_a_checkpoint(tmp_path, tiny_config(engine="mujoco", evaluation=evaluation))


@pytest.mark.prove
def test_a_run_stops_at_many_moments(tmp_path: Path) -> None:
    chance, seconds = random.Random(0), []
    for i in range(8):
        for numbers in SIGNALS:
            folder = tmp_path / f"{i}{numbers}"
            folder.mkdir()
            seconds.append(stop_once(folder, list(CONFIGS.values())[i % 2], numbers, chance))
    write_counts("signals", len(seconds), 0, f"longest {max(seconds):.1f} s from the first signal to the end")


@pytest.mark.parametrize("n_stops", [1, pytest.param(20, marks=pytest.mark.prove)])
def test_a_stopped_run_goes_on_with_the_same_bits(tmp_path: Path, n_stops: int) -> None:
    evaluation = Evaluation(every=50, episodes=2, random_policies=2)
    config = tiny_config(generations=100 * n_stops, pairs=4, horizon=20, evaluation=evaluation)
    train(config, tmp_path / "whole", threads=1)
    (tmp_path / "c.toml").write_text(config.to_toml())
    chance, n_stopped = random.Random(2), 0
    arguments = ("train", "--config", tmp_path / "c.toml", "--out", tmp_path / "run", "--threads", 1)
    while n_stopped < n_stops:
        process = evergait(*arguments, start_new_session=True)
        stop(process, SIGNALS[n_stopped % 2], chance, 0.05)
        assert process.returncode in (130, 143)
        n_stopped += 1
    train(config, tmp_path / "run", threads=1)
    assert tree(tmp_path / "run") == tree(tmp_path / "whole")
    if n_stops > 1:
        write_counts("signals-resumed", n_stopped, 0, "one run, stopped and resumed; every file compared")


def test_a_study_stops_with_all_its_processes(tmp_path: Path, study: Path) -> None:
    jobs, numbers = 2, SIGNALS[3]
    study.write_text(study.read_text().replace("generations = 6", "generations = 100000"))
    mark, shared = str(uuid.uuid4()), shared_memory()
    arguments = ("study", "run", study, "--out", tmp_path / "out", "--jobs", jobs, "--threads", 2)
    process = evergait(*arguments, env={"EVERGAIT_MARK": mark}, start_new_session=True)
    try:
        wait_until(lambda: len(list(tmp_path.glob("out/phases/*/ledger.jsonl"))) == jobs)
        time.sleep(1.0)
        for number in numbers:
            os.killpg(process.pid, number)
            time.sleep(0.05)
        output, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 128 + numbers[0], output
        leaves_nothing_behind(output, mark, shared)
    finally:
        for pid in processes_with(mark):
            os.kill(pid, signal.SIGKILL)
        process.wait()
    assert len(list(tmp_path.glob("out/phases/*/checkpoint.safetensors"))) == jobs
    assert not (tmp_path / "out" / "running.json").exists()


def test_a_signal_after_the_last_safe_point_is_not_forgotten() -> None:
    """It must not take effect inside a write, and must not be lost after it."""
    code = """
import os, signal
from evergait.core.signals import Stop, stop_at_safe_points
try:
    with stop_at_safe_points():
        os.kill(os.getpid(), signal.SIGTERM)
        print("written", flush=True)
except Stop as stop:
    raise SystemExit(stop.exit_code)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (143, "written\n")


def test_a_signal_inside_a_finalizer_is_neither_lost_nor_a_traceback() -> None:
    """Python ignores exceptions there, and would print them."""
    code = """
import os, signal
from evergait.core.signals import Stop, interruptible, stop_at_safe_points
class Ends:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
try:
    with stop_at_safe_points():
        with interruptible():
            Ends()
            print("goes on", flush=True)
        with interruptible():
            print("not reached")
except Stop as stop:
    raise SystemExit(stop.exit_code)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (143, "goes on\n", "")
