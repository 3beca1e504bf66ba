"""A cluster of our own is private, and goes when we go."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from small import tiny_config

from evergait.run import Run

pytestmark = pytest.mark.xdist_group("ray")
LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")


def marked(mark: str) -> list[int]:
    """Processes that have a mark in their environment: all that a command has started, whatever became of it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


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


@pytest.fixture
def short_folder() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")  # names of sockets must be short
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, short_folder: str) -> None:
    pytest.importorskip("ray")
    config = tiny_config(generations=2000)
    (tmp_path / "c.toml").write_text(config.to_toml())
    mark, out = f"EVERGAIT_MARK={uuid.uuid4()}", tmp_path / "run"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    flags = ["--workers", "ray", "--threads", "2", "--checkpoint-seconds", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "evergait", "train", "--config", tmp_path / "c.toml", "--out", out, *flags],
        env={**inherited, "RAY_TMPDIR": short_folder, "HOME": str(tmp_path), **dict([mark.split("=")])},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr
        assert any("starts" in line for line in process.stderr)
        processes = marked(mark)
        assert len(processes) > 4
        addresses = listening(processes)
        assert addresses
        assert set(addresses) <= set(LOOPBACK)
        assert not (tmp_path / ".ray").exists()  # the token is in no file
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        rest = process.communicate(timeout=60)[1]
        assert process.returncode == 130, rest
        assert "Stopped at a safe point" in rest
        deadline = time.monotonic() + 20
        while (left := marked(mark)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not left
    finally:
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)
        process.wait()
    assert not Run.load(out).is_done
