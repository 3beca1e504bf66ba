"""The network between two machines is cut, without a word to either: a namespace of the kernel is the other machine."""

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evergait.training.run import Run, train
from workers.conftest import SMALL, long_config

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.prove]
CONFIG = long_config(generations=1000)
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


@pytest.mark.parametrize("is_for_good", [False, True])
def test_a_cut_network_costs_time_and_no_bits(
    commands: Any, other_machine: str, tmp_path: Path, is_for_good: bool
) -> None:
    commands.environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex}
    head = ("start", "--head", "--port", 6390, "--node-ip-address", HERE, "--include-dashboard=false", *SMALL)
    assert commands.start(*head, program="ray").wait(120) == 0, commands.said()
    other = ("start", "--address", f"{HERE}:6390", "--node-ip-address", THERE, *SMALL)
    assert commands.start(*other, program="ray", namespace=other_machine).wait(120) == 0, commands.said()

    (tmp_path / "c.toml").write_text(CONFIG.to_toml())
    out = tmp_path / "run"
    training = ("train", "--config", tmp_path / "c.toml", "--out", out, "--checkpoint-seconds", 0)
    training += ("--workers", "ray", "--workers.address", f"{HERE}:6390", "--workers.smallest-chunk", 4)  # type: ignore[assignment]
    process = commands.start(*training)
    commands.until(lambda: list(out.glob("phases/*/progress.json")))
    ip("link", "set", other_machine, "down")
    commands.until(lambda: "1 of 2 workers have not answered for some time" in commands.said())
    if not is_for_good:
        ip("link", "set", other_machine, "up")
    assert process.wait(300) == 0, commands.said()
    print(commands.said().splitlines()[-1])
    assert Run.load(out).theta_sha256 == train(CONFIG, tmp_path / "local", threads=1).theta_sha256
