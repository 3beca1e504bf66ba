"""A cluster made by hand as docs/scaling.md says, and one of our own: who joins, what is cut, what goes when we go."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import processes_with
from small import tiny_study

from evergait.commands.study import run_study
from evergait.training.run import Run, train
from workers.conftest import SMALL, long_config

MANY_CONFIG = long_config(generations=1000)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        port: int = found.getsockname()[1]
        return port


def ray(commands: Any, *words: object, **environment: str) -> None:
    """A command of Ray's that must succeed."""
    assert commands.start(*words, program="ray", **environment).wait(120) == 0, commands.said()


def test_a_cluster_made_by_hand_is_found_and_a_machine_with_other_versions_is_not_used(
    commands: Any, tmp_path: Path
) -> None:
    (tmp_path / "c.toml").write_text(MANY_CONFIG.to_toml())
    out = tmp_path / "run"
    training = ("train", "--config", tmp_path / "c.toml", "--out", out, "--checkpoint-seconds", 0)
    training += ("--workers", "ray", "--workers.address", "auto", "--workers.poll-seconds", 0.5)  # type: ignore[assignment]

    commands.environment["RAY_AUTH_MODE"] = "token"
    ray(commands, "get-auth-token", "--generate")
    port = free_port()
    ray(commands, "start", "--head", "--port", port, "--include-dashboard=false", *SMALL)
    address = f"{socket.gethostname()}:{port}"
    ray(commands, "start", "--address", address, *SMALL)

    process = commands.start(*training)
    commands.until(lambda: list(out.glob("phases/*/progress.json")))
    odd = tmp_path / "odd" / "numpy-9.9.9.dist-info"
    odd.mkdir(parents=True)
    (odd / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 9.9.9\n")
    process.send_signal(signal.SIGSTOP)  # or a slow machine joins when all is done
    ray(commands, "start", "--address", address, *SMALL, PYTHONPATH=str(odd.parent))
    process.send_signal(signal.SIGCONT)
    difference = f"numpy is {np.__version__} here and 9.9.9 on {os.uname().nodename}"
    commands.until(lambda: f"a worker that joined is not used: {difference}" in commands.said().replace("\n", " "))
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 143, commands.said()

    assert commands.start(*training).wait(120) == 2  # it is there from the start now
    assert f"evergait: workers: {difference}; install the same versions everywhere" in commands.said()

    for pid in processes_with(f"PYTHONPATH={odd.parent}"):
        with contextlib.suppress(ProcessLookupError):  # some end with others
            os.kill(pid, signal.SIGTERM)
    commands.until(lambda: not processes_with(f"PYTHONPATH={odd.parent}"))
    assert commands.start(*training).wait(120) == 0, commands.said()
    assert "workers: 2 on 2 nodes" in commands.said()
    assert Run.load(out).theta_sha256 == train(MANY_CONFIG, tmp_path / "local", threads=1).theta_sha256


CUT_CONFIG = long_config(generations=1000)
HERE, THERE = "198.18.77.1", "198.18.77.2"  # addresses for tests of networks (RFC 2544)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@pytest.fixture
def other_machine() -> Iterator[str]:
    """A namespace with a cable of its own, whose near end has the same name."""
    if os.geteuid() or not shutil.which("ip"):
        pytest.skip("only root can make namespaces")
    name = f"eg{uuid.uuid4().hex[:8]}"
    ip("netns", "add", name)
    try:
        ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("addr", "add", f"{HERE}/30", "dev", name)
        ip("link", "set", name, "up")
        ip("-n", name, "addr", "add", f"{THERE}/30", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        ip("netns", "del", name)


@pytest.mark.prove
@pytest.mark.parametrize("is_for_good", [False, True])
def test_a_cut_network_costs_time_and_no_bits(
    commands: Any, other_machine: str, tmp_path: Path, is_for_good: bool
) -> None:
    commands.environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex}
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        port = probe.getsockname()[1]  # nobody's, and not that of a cluster which has just ended
    head = ("start", "--head", "--port", port, "--node-ip-address", HERE, "--include-dashboard=false", *SMALL)
    assert commands.start(*head, program="ray").wait(120) == 0, commands.said()
    other = ("start", "--address", f"{HERE}:{port}", "--node-ip-address", THERE, *SMALL)
    assert commands.start(*other, program="ray", namespace=other_machine).wait(120) == 0, commands.said()

    (tmp_path / "c.toml").write_text(CUT_CONFIG.to_toml())
    out = tmp_path / "run"
    training = ("train", "--config", tmp_path / "c.toml", "--out", out, "--checkpoint-seconds", 0)
    training += ("--workers", "ray", "--workers.address", f"{HERE}:{port}", "--workers.smallest-chunk", 4)  # type: ignore[assignment]
    process = commands.start(*training)
    commands.until(lambda: list(out.glob("phases/*/progress.json")))
    ip("link", "set", other_machine, "down")
    commands.until(lambda: "1 of 2 workers have not answered for some time" in commands.said())
    if not is_for_good:
        ip("link", "set", other_machine, "up")
    assert process.wait(300) == 0, commands.said()
    print(commands.said().splitlines()[-1])
    assert Run.load(out).theta_sha256 == train(CUT_CONFIG, tmp_path / "local", threads=1).theta_sha256


LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
OWN_CONFIG = long_config(generations=300)
FLAGS = ("--workers", "ray", "--threads", "2", "--checkpoint-seconds", "0")
SAFE = "Stopped at a safe point"


@pytest.fixture(scope="module")
def local_hash(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train(OWN_CONFIG, tmp_path_factory.mktemp("local") / "run", threads=1).theta_sha256


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
    (folder / "c.toml").write_text(OWN_CONFIG.to_toml())
    process = commands.start("train", "--config", folder / "c.toml", "--out", folder / "run", *FLAGS)
    commands.until(lambda: sum(generations(folder / "run")) > 3 or process.poll() is not None)
    return process


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.prove), signal.SIGKILL]
)
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
    assert train(OWN_CONFIG, tmp_path / "run", threads=1).theta_sha256 == local_hash


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
    assert train(OWN_CONFIG, tmp_path / "run", threads=1).theta_sha256 == local_hash


@pytest.mark.prove
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seconds", [1.5, 2.5, 3.5, 5.0])
def test_a_signal_while_the_cluster_starts_leaves_nothing_behind(
    commands: Any, tmp_path: Path, number: signal.Signals, seconds: float
) -> None:
    (tmp_path / "c.toml").write_text(OWN_CONFIG.to_toml())
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
