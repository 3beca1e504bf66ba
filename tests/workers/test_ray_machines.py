"""A cluster made by hand, as docs/scaling.md says: a token, machines that join, and one that is not like the others."""

import os
import signal
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import processes_with

from evergait.training.run import Run, train
from workers.conftest import SMALL, long_config

pytestmark = pytest.mark.xdist_group("ray")
CONFIG = long_config(generations=1000)


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
    (tmp_path / "c.toml").write_text(CONFIG.to_toml())
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
        os.kill(pid, signal.SIGTERM)
    commands.until(lambda: not processes_with(f"PYTHONPATH={odd.parent}"))
    assert commands.start(*training).wait(120) == 0, commands.said()
    assert "workers: 2 on 2 nodes" in commands.said()
    assert Run.load(out).theta_sha256 == train(CONFIG, tmp_path / "local", threads=1).theta_sha256
