"""A cluster of our own is private, and goes when we go, however that happens; what was trained stays."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from small import tiny_study

from evergait.commands.study import run_study
from evergait.training.run import Run, train
from workers.conftest import long_config

pytestmark = pytest.mark.xdist_group("ray")
LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
CONFIG = long_config(generations=300)
FLAGS = ("--workers", "ray", "--threads", "2", "--checkpoint-seconds", "0")
SAFE = "Stopped at a safe point"


@pytest.fixture(scope="module")
def local_hash(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train(CONFIG, tmp_path_factory.mktemp("local") / "run", threads=1).theta_sha256


def generations(out: Path) -> list[int]:
    """How far phases are in the store."""
    return [json.loads(path.read_text())["generation"] for path in out.glob("phases/*/progress.json")]


def listening(processes: list[int]) -> list[str]:
    """Addresses, in hexadecimal, that processes accept connections on."""
    inodes = set()
    for process in processes:
        for link in Path(f"/proc/{process}/fd").glob("*"):
            try:
                inodes.add(str(link.readlink()).removeprefix("socket:[").removesuffix("]"))
            except OSError:
                continue
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return [row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes]


def start_training(commands: Any, folder: Path) -> Any:
    """A driver that has trained a few generations."""
    (folder / "c.toml").write_text(CONFIG.to_toml())
    process = commands.start("train", "--config", folder / "c.toml", "--out", folder / "run", *FLAGS)
    commands.until(lambda: sum(generations(folder / "run")) > 3 or process.poll() is not None)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_behind_but_what_was_trained(
    commands: Any, tmp_path: Path, local_hash: str, number: signal.Signals
) -> None:
    process = start_training(commands, tmp_path)
    addresses = listening(commands.processes())
    assert addresses
    assert set(addresses) <= set(LOOPBACK)
    assert not (commands.folder / ".ray").exists()  # the token is in no file
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    assert process.wait(120) == (-number if number == signal.SIGKILL else 128 + number), commands.said()
    assert (SAFE in commands.said()) == (number != signal.SIGKILL)
    commands.until_nothing_is_left(but_agents=number == signal.SIGKILL)
    assert not Run.load(tmp_path / "run").is_done
    assert train(CONFIG, tmp_path / "run", threads=1).theta_sha256 == local_hash


@pytest.mark.prove
@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.5, 1.0])
def test_a_second_ctrl_c_leaves_nothing_behind_either(
    commands: Any, tmp_path: Path, local_hash: str, seconds: float
) -> None:
    process = start_training(commands, tmp_path)
    for _ in range(2):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(seconds)
    assert process.wait(120) == 130, commands.said()
    commands.until_nothing_is_left()
    assert train(CONFIG, tmp_path / "run", threads=1).theta_sha256 == local_hash


@pytest.mark.prove
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seconds", [1.5, 2.5, 3.5, 5.0])
def test_a_signal_while_the_cluster_starts_leaves_nothing_behind(
    commands: Any, tmp_path: Path, number: signal.Signals, seconds: float
) -> None:
    (tmp_path / "c.toml").write_text(CONFIG.to_toml())
    process = commands.start("train", "--config", tmp_path / "c.toml", "--out", tmp_path / "run", *FLAGS)
    time.sleep(seconds)
    process.send_signal(number)
    assert process.wait(120) != 0
    commands.until_nothing_is_left()


@pytest.mark.parametrize(
    ("number", "is_for_all"),
    [
        (signal.SIGTERM, False),
        pytest.param(signal.SIGINT, True, marks=pytest.mark.prove),
        pytest.param(signal.SIGTERM, True, marks=pytest.mark.prove),
        pytest.param(signal.SIGKILL, False, marks=pytest.mark.prove),
    ],
)
def test_a_study_in_two_processes_stops_whole_and_goes_on(
    commands: Any, tmp_path: Path, number: signal.Signals, is_for_all: bool
) -> None:
    path, out = tmp_path / "s.toml", tmp_path / "ray"
    path.write_text(tiny_study(generations=200, every=100, replay=False))
    process = commands.start("study", "run", path, "--out", out, "--seeds", 1, "--jobs", 2, *FLAGS)
    commands.until(lambda: sum(n > 1 for n in generations(out)) > 1 or process.poll() is not None)
    os.killpg(process.pid, number) if is_for_all else process.send_signal(number)
    assert process.wait(120) == (-number if number == signal.SIGKILL else 128 + number), commands.said()
    assert (SAFE in commands.said()) == (number != signal.SIGKILL)
    commands.until_nothing_is_left()
    hashes = []
    for folder in (out, tmp_path / "local"):
        results = run_study(path, folder, seeds=1, threads=1, artifacts=False)
        hashes.append([entry.run.theta_sha256 for entry in results.entries])
    assert hashes[0] == hashes[1]
