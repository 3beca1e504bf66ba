"""What the gymnasium engine's processes leave behind: errors that speak, and nothing else."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from faults import children, shared_memory, wait_until

from evergait.core.errors import EvergaitError
from evergait.engines import Episodes, Limits
from evergait.engines.gymnasium.engine import GymnasiumEngine
from evergait.tasks import Task, parse_task
from evergait.tasks.process import Channel, Process, stop

Make = Callable[..., Episodes]
HERE = Path(__file__).parent.parent / "support"


@pytest.fixture(autouse=True)
def _careless_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("EVERGAIT_TRUSTED_MODULES", "careless_environments")


def gone(pids: list[int]) -> bool:
    def state(pid: int) -> str:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return "gone"

    return all(state(pid) in ("gone", "Z") for pid in pids)


def test_nothing_is_left_after_close(episodes: Make) -> None:
    shared, before = shared_memory(), children()
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    engine = GymnasiumEngine()
    engine.run(episodes("CartPole-v1"), 2)
    assert len(children()) == len(before) + 2
    engine.close()
    assert children() == before
    wait_until(lambda: shared_memory() <= shared, 10)  # neighbours come and go
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
    assert engine.run(episodes("CartPole-v1", n_rows=1), 1).lengths[0] > 0  # usable again
    del engine
    assert children() == before


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("raise", ["seed 103", "ZeroDivisionError: the joint is missing"]),
        ("hang", ["seed 103", "more than 1 s"]),
        ("die", ["seed 103", "exit code 7"]),
    ],
)
def test_broken_environments_are_reported(episodes: Make, fault: str, words: list[str]) -> None:
    before = children()
    engine = GymnasiumEngine(Limits(episode=1.0 if fault == "hang" else 60.0))
    with pytest.raises(EvergaitError) as caught:
        engine.run(episodes(f"careless_environments:Broken-{fault}-v0"), 2)
    for word in words:
        assert word in str(caught.value)
    assert children() == before
    assert engine.run(episodes(f"careless_environments:Broken-{fault}-v0", n_rows=2), 2).lengths.tolist() == [3, 3]
    engine.close()


def test_processes_know_environments_that_the_parent_registered(episodes: Make) -> None:
    gymnasium.register("Mended-v0", "careless_environments:Broken")
    engine = GymnasiumEngine()
    assert engine.run(episodes("Mended-v0"), 1).returns.tolist() == [3.0] * 12
    engine.close()
    del gymnasium.registry["Mended-v0"]


def test_processes_die_with_a_killed_parent_even_when_they_hang() -> None:
    script = f"""
import sys; sys.path[:0] = [{str(HERE.parent / "engines")!r}, {str(HERE)!r}]
from conftest import make_episodes
from evergait.engines.gymnasium.engine import GymnasiumEngine
GymnasiumEngine().run(make_episodes("careless_environments:Broken-hang-v0"), 2)
"""
    parent = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 30
    while len(workers := children(parent.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(2.0)  # one is in its hang by now
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    while not gone(workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(workers) == 2
    assert gone(workers)


@pytest.mark.parametrize("how", ["_signal_on_close", "_watch"])
def test_every_kind_of_lifeline_ends_a_process_that_hangs(how: str) -> None:
    listening, lifeline = os.pipe()
    code = f"from evergait.tasks import process; process.{how}({listening}); print('up', flush=True)\nwhile True: pass"
    command = [sys.executable, "-c", code]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=(listening,), process_group=0)
    assert child.stdout
    assert child.stdout.readline() == b"up\n"
    assert child.poll() is None
    os.close(listening)
    os.close(lifeline)
    assert child.wait(timeout=20) < 0
    assert child.stdout.read() == b""  # nobody else holds it open
    child.stdout.close()


def test_a_watcher_does_not_hide_that_its_process_has_ended() -> None:
    listening, lifeline = os.pipe()
    command = [sys.executable, "-c", f"from evergait.tasks import process; process._watch({listening})"]
    fds = (listening,)
    done = subprocess.run(command, capture_output=True, pass_fds=fds, process_group=0, timeout=60, check=True)
    assert done.stdout == b""
    os.close(listening)
    os.close(lifeline)


def test_interrupt_ends_the_processes(episodes: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    before = children()
    engine = GymnasiumEngine()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("evergait.engines.gymnasium.engine._take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.run(episodes("CartPole-v1"), 2)
    assert children() == before


def test_an_interrupt_while_the_processes_end_leaves_an_engine_that_works(
    episodes: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = GymnasiumEngine()
    before = engine.run(episodes("CartPole-v1"), 2)

    half_ended: list[Process] = []

    def interrupted(processes: list[Process], patience: float) -> None:
        processes[0].pipe.close()
        half_ended.extend(processes)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("evergait.engines.gymnasium.engine.stop", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.close()
    np.testing.assert_array_equal(engine.run(episodes("CartPole-v1"), 2).returns, before.returns)
    engine.close()
    stop(half_ended)


def test_refusals_name_what_is_wrong() -> None:
    engine = GymnasiumEngine()
    assert engine.refuses(Task("CartPole-v1")) == ""
    assert "cannot vary gravity, mass" in engine.refuses(parse_task("CartPole-v1@gravity=0.5,mass=2"))
    assert "cannot vary reset_noise" in engine.refuses(parse_task("Pendulum-v1@reset_noise=2"))
    assert "did you mean" in engine.refuses(Task("Hoper-v5"))
    gymnasium.register("Image-v0", lambda: _Image())  # type: ignore[arg-type]
    assert "a policy needs a vector" in engine.refuses(Task("Image-v0"))
    del gymnasium.registry["Image-v0"]


@pytest.mark.parametrize(
    ("version", "low", "high", "dtype", "message"),
    [
        (0, 0, 10, np.int32, r"its actions, Box\(0, 10, \(1,\), int32\), are whole numbers"),
        (1, 0, np.inf, np.float32, "are bounded on one side only; give them both bounds, or none"),
        (2, -np.inf, 0, np.float32, "are bounded on one side only"),
        (3, -1e300, 1e300, np.float64, "are wider than float32 can count"),
    ],
)
def test_actions_that_a_policy_would_miss_are_refused(
    version: int, low: Any, high: Any, dtype: Any, message: str
) -> None:
    class Odd(_Image):
        observation_space = gymnasium.spaces.Box(-1, 1, (2,))
        action_space: Any = gymnasium.spaces.Box(low, high, (1,), dtype)

    gymnasium.register(f"Odd-v{version}", Odd)  # type: ignore[arg-type]
    assert re.search(message, GymnasiumEngine().refuses(Task(f"Odd-v{version}")))
    del gymnasium.registry[f"Odd-v{version}"]


class _Image(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)


@pytest.mark.parametrize("n", range(40))
def test_a_message_of_any_length_arrives(n: int) -> None:
    ours, socket_ = Channel.pair()
    theirs = Channel(socket_)
    ours.send("x" * n)
    assert theirs.recv(5.0) == "x" * n
    ours.close()
    theirs.close()


def test_a_process_with_many_open_files_has_channels_too() -> None:
    code = """
import os, resource
from evergait.tasks.process import Channel, Process, stop
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2000)), hard))
while os.dup(0) < 1100: pass
ours, theirs = Channel.pair()
ours.send("heard")
print(Channel(theirs).recv(1e8))
"""
    done = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("heard\n", "")
