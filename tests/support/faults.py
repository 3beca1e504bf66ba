"""Faults, and what proves that they did no harm. Everything here is real: processes, signals, files, file systems."""

import fcntl
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FIGURES = HERE.parents[1] / "docs" / "reliability.json"


def write_counts(fault: str, tried: int, lost: int, note: str = "", part: bool = False) -> None:
    """Keep a proof's figures for docs/reliability.md; `scripts/reliability.py` makes the table of them.

    A proof in several parts, which may run at once, adds up what its parts have tried.
    """
    print(f"{fault}: tried {tried}, lost {lost}; {note}")
    with FIGURES.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        figures = json.load(file)
        tried += figures.get(fault, {}).get("tried", 0) if part else 0
        row = {"tried": tried, "survived": tried - lost, "lost": lost, "note": note, "commit": commit()}
        figures[fault] = row
        file.seek(0)
        file.truncate()
        json.dump(dict(sorted(figures.items())), file, indent=2, ensure_ascii=False)
        file.write("\n")


@functools.cache
def commit() -> str:
    """What is being proven; the page with the figures may have changed since."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=True).stdout

    changed = [line for line in git("status", "--porcelain").splitlines() if "docs/reliability." not in line]
    return git("rev-parse", "--short=12", "HEAD").strip() + (" and changes" if changed else "")


def tree(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, so that a leftover is a difference too; locks are empty and stay."""
    files = {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    assert all(not content for name, content in files.items() if Path(name).name == "lock")
    return {name: content for name, content in files.items() if Path(name).name != "lock"}


def children(parent: int | str = "self") -> list[int]:
    """Processes that a process has started and not waited for."""
    found: list[Any] = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        with suppress(OSError):  # the thread has ended
            found += map(int, (task / "children").read_text().split())
    return found


def evergait(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """A command as a user types it, in a process of its own."""
    environment = {**os.environ, "COLUMNS": "200", **options.pop("env", {})}
    command = [sys.executable, "-m", "evergait", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    return subprocess.Popen(command, env=environment, **{**pipes, **options})


def answer(*arguments: object, **options: Any) -> tuple[int, str]:
    """Exit code and output of a command that must end by itself, without a traceback."""
    with evergait(*arguments, **options) as process:
        output, _ = process.communicate(timeout=120)
    assert "Traceback" not in output, output
    return process.returncode, output


def processes_with(mark: str) -> list[int]:
    """Processes that have a mark in their environment: all that a command has started, whatever became of it."""
    found: list[Any] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def session(leader: int) -> list[int]:
    """Processes of a session that are not dead."""
    found: list[Any] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, _, number = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(number) == leader and state != "Z":
                found.append(int(entry.name))
    return found


def shared_memory() -> set[str]:
    """What is in shared memory, but for Ray's and for folders: other tests' files may be kept there."""
    entries = Path("/dev/shm").iterdir()  # noqa: S108
    return {entry.name for entry in entries if not entry.name.startswith("plasma") and not entry.is_dir()}


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Poll; fail after a while."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


@functools.cache
def library(name: str) -> Path:
    """A library that is made to be preloaded, compiled from tests/native."""
    source = HERE.parent / "native" / f"{name}.cpp"
    target = Path(tempfile.gettempdir()) / f"evergait-{name}-{os.getpid()}.so"
    command = ["g++", "-std=c++17", "-O1", "-fPIC", "-shared", "-o", str(target), str(source), "-ldl"]
    if subprocess.run(command, check=False).returncode:
        pytest.skip("there is no C++ compiler")
    return target


class Forks:
    """Processes forked from one that has imported everything (forks.py), so that a hundred start in seconds."""

    def __init__(self) -> None:
        environment = {**os.environ, "LD_PRELOAD": str(library("calls"))}
        command = [sys.executable, str(HERE / "forks.py")]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def start(self, what: str, *arguments: object, fault: tuple[Path, int, int] | None = None) -> int:
        """Begin one of the functions of tests/support/forks.py; returns the process, which leads a group of its own.

        `fault` is (folder, n, kind): the nth call that changes something under the folder is the process's last one.
        Kind −1 kills right before it, −2 right after it, −3 in the middle of a write; a positive kind is the error
        that the call reports instead of being done.
        """
        armed = [str(fault[0]), *fault[1:]] if fault else None
        process: int = self._ask({"start": what, "arguments": [str(a) for a in arguments], "fault": armed})
        return process

    def wait(self, process: int) -> int:
        """Its exit code; negative for the signal that ended it."""
        code: int = self._ask({"wait": process})
        return code

    def kill(self, process: int) -> None:
        """End it and all that it has started."""
        with suppress(ProcessLookupError):  # it may not lead its group yet
            os.killpg(process, signal.SIGKILL)
        os.kill(process, signal.SIGKILL)

    def is_over(self, process: int) -> bool:
        """Whether it has ended."""
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"

    def run(self, what: str, *arguments: object, fault: tuple[Path, int, int] | None = None) -> int:
        """Begin and wait."""
        return self.wait(self.start(what, *arguments, fault=fault))

    def close(self) -> None:
        """End the server."""
        self._server.communicate()


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[Path]:
    """A file system of its own; skips where this is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
