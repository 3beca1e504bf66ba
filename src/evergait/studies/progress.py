"""How a study goes: bars on a terminal, a quiet line elsewhere, running.json, and what `study status` reads of them."""

import contextlib
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO

import rich.progress

from evergait.core.console import Screen
from evergait.core.errors import EvergaitError
from evergait.core.files import is_locked, read_json, write_json
from evergait.store.phases import CHECKPOINT, PhaseFolder, PhaseStore
from evergait.studies.cells import Node
from evergait.studies.folder import StoredCell, read_cells
from evergait.studies.scheduler import FAILURES, Watcher
from evergait.training.progress import duration

RUNNING = "running.json"
GROWING = ("ledger.jsonl", CHECKPOINT, "progress.json")
"""Files of a phase that change while it is trained."""
FRESH_SECONDS = 90.0
"""A copy without locks, whose files changed so lately, is of a phase that is being trained elsewhere; checkpoints are
made every 30 seconds."""
SECONDS_BETWEEN_LINES = 30.0
SECONDS_BETWEEN_FILES = 2.0


@dataclass
class Pace:
    """How fast a phase advances in this process's sight."""

    node: Node
    first: int | None = None
    used: int = 0
    """Generations or steps, whichever decides its length."""
    since: float = field(default_factory=time.monotonic)

    @property
    def length(self) -> int:
        """Of the whole phase."""
        return self.node.config.phase_length

    @property
    def rate(self) -> float:
        """Generations or steps per second; 0 while unknown."""
        done = 0 if self.first is None else self.used - self.first
        return done / max(time.monotonic() - self.since, 1e-9)

    def advance(self, used: int) -> None:
        """It has come so far; the first word sets the clock."""
        if self.first is None:
            self.first, self.since = used, time.monotonic()
        self.used = used

    def __str__(self) -> str:
        return f"{self.used:,} of {self.length:,} {self.node.config.unit}"

    def seconds_left(self) -> float | None:
        """By the rate so far."""
        return max(self.length - self.used, 0) / self.rate if self.rate > 0 else None


class Progress(Watcher):
    """Tells people."""

    def __init__(self, path: Path, stream: TextIO | None = None) -> None:
        self.path = path
        self.console = Screen(file=stream or sys.stderr)
        self.paces: dict[str, Pace] = {}
        self.n_phases = self.n_done = self.n_failed = self.n_trained = 0
        self.begun = self._last_line = self._last_file = time.monotonic()
        self._bars: rich.progress.Progress | None = None
        self._bar_of: dict[str, rich.progress.TaskID] = {}

    def begin(self, n_phases: int, n_done: int) -> None:
        """Start the display."""
        self.n_phases, self.n_done = n_phases, n_done
        before = f", {n_done} of them done before" if n_done else ""
        self.console.print(f"{n_phases} phases{before}", highlight=False)
        if self.console.is_terminal:
            self._bars = rich.progress.Progress(
                rich.progress.TextColumn("{task.description}", markup=False),
                rich.progress.BarColumn(),
                rich.progress.MofNCompleteColumn(),
                rich.progress.TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )
            self._bars.start()
            self._bar_of[""] = self._bars.add_task("phases", total=n_phases, completed=n_done)

    def started(self, node: Node) -> None:
        """A bar for the phase."""
        self.paces[node.name] = Pace(node)
        if self._bars:
            self._bar_of[node.name] = self._bars.add_task(node.label, total=node.config.phase_length)
        self._write_running(force=True)

    def advanced(self, node: Node, used: int) -> None:
        """Move the bar, or say a line if none was said for a while."""
        self.paces[node.name].advance(used)
        if self._bars:
            self._bars.update(self._bar_of[node.name], completed=used)
        elif time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES:
            self._line()
        self._write_running()

    def finished(self, node: Node) -> None:
        """One more is done."""
        self.n_done += 1
        self.n_trained += 1
        self._end(node)

    def failed(self, node: Node, reason: str, n_blocked: int) -> None:
        """Loud, wherever we are."""
        self.n_failed += 1
        blocked = f" ({n_blocked} phases need it and are blocked)" if n_blocked else ""
        self.console.print(f"FAILED: {node.label}: {reason}{blocked}", markup=False, highlight=False, soft_wrap=True)
        self._end(node)

    def _end(self, node: Node) -> None:
        del self.paces[node.name]
        if self._bars:
            self._bars.remove_task(self._bar_of.pop(node.name))
            self._bars.update(self._bar_of[""], completed=self.n_done)
        self._write_running(force=True)

    def _line(self) -> None:
        self._last_line = time.monotonic()
        parts = [f"{self.n_done}/{self.n_phases} phases"]
        if self.n_trained:
            each = (time.monotonic() - self.begun) / self.n_trained
            parts.append(f"about {duration(each * (self.n_phases - self.n_done - self.n_failed))} left")
        parts += [f"{pace.node.label}: {pace}" for pace in self.paces.values()]
        self.console.print("; ".join(parts), markup=False, highlight=False, soft_wrap=True)

    def _write_running(self, force: bool = False) -> None:
        """For `status` in another process."""
        if force or time.monotonic() - self._last_file > SECONDS_BETWEEN_FILES:
            self._last_file = time.monotonic()
            now = {name: {"at": str(p), "seconds_left": p.seconds_left()} for name, p in self.paces.items()}
            with contextlib.suppress(OSError):  # a full disk must not end what is being trained
                write_json(self.path / RUNNING, now)

    def close(self) -> None:
        """End the display; what is not running is not in running.json."""
        if self._bars:
            self._bars.stop()
        with contextlib.suppress(OSError):
            (self.path / RUNNING).unlink(missing_ok=True)


Standing = Literal["done", "running", "failed", "stopped", "missing"]


def phase_standing(folder: PhaseFolder, failures: Mapping[str, Any]) -> Standing:
    """What a phase is, for all who show it."""
    is_running = _is_running(folder.path)  # first: one that ends while we look is done, and never stopped
    if folder.is_done():
        return "done"
    if is_running:
        return "running"
    if folder.name in failures:
        return "failed"
    return "stopped" if (folder.path / "progress.json").exists() else "missing"


def _is_running(path: Path) -> bool:
    """Whether a process trains the phase: its lock dies with that process, while a killed one leaves running.json."""
    lock = path / "lock"
    if lock.exists():
        return is_locked(lock)
    newest = 0.0
    for name in GROWING:
        with contextlib.suppress(OSError):
            newest = max(newest, (path / name).stat(follow_symlinks=False).st_mtime)
    return time.time() - newest < FRESH_SECONDS


@dataclass(frozen=True)
class CellStatus:
    """How far one cell is."""

    cell: StoredCell
    state: Standing
    n_done: int
    """Finished phases."""
    detail: str = ""
    """Time left, or the reason."""


def study_status(path: Path) -> list[CellStatus]:
    """Every cell, in the order of the study."""
    _, cells = read_cells(path)
    store = PhaseStore.inside(path)
    failures, running = _read(path / FAILURES), _read(path / RUNNING)
    seen: dict[str, tuple[Standing, str]] = {}
    for name in dict.fromkeys(name for cell in cells for name in cell.phases):
        seen[name] = _phase_state(store.folder(name), failures, running)
    return [_cell_status(cell, [seen[name] for name in cell.phases]) for cell in cells]


def _read(path: Path) -> dict[str, Any]:
    """A file that the scheduler may take away at any moment."""
    try:
        return read_json(path)
    except EvergaitError:
        if path.exists():
            raise
        return {}


def _phase_state(folder: PhaseFolder, failures: dict[str, Any], running: dict[str, Any]) -> tuple[Standing, str]:
    standing, detail = phase_standing(folder, failures), ""
    if standing == "running":
        detail = _time_left(running.get(folder.name))
    elif standing == "failed":
        detail = str(failures[folder.name])
    elif standing == "stopped":
        progress = folder.progress()
        of = f" of {progress['generations']}" if "generations" in progress else ""
        detail = f"at generation {progress.get('generation')}{of}"
    return standing, detail


def _time_left(pace: Any) -> str:
    try:
        done, left = str(pace["at"]), pace["seconds_left"]
        return done if left is None else f"{done}, {duration(left)} left"
    except (TypeError, KeyError, OverflowError, ValueError):
        return ""


def _cell_status(cell: StoredCell, phases: list[tuple[Standing, str]]) -> CellStatus:
    """A cell is what the first of its phases is that is not done."""
    n_done = 0
    for state, detail in phases:
        if state != "done":
            return CellStatus(cell, state, n_done, detail)
        n_done += 1
    return CellStatus(cell, "done", n_done)
