"""Every cell of a study: done, running, stopped on the way, failed (with the reason) or missing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evergait.core.errors import EvergaitError
from evergait.core.files import is_locked, read_json
from evergait.store.phases import PhaseFolder, PhaseStore
from evergait.studies.folder import StoredCell, read_cells
from evergait.studies.progress import RUNNING
from evergait.studies.scheduler import FAILURES
from evergait.training.progress import duration

State = Literal["done", "running", "failed", "stopped", "missing"]


@dataclass(frozen=True)
class CellStatus:
    """How far one cell is."""

    cell: StoredCell
    state: State
    n_done: int
    """Finished phases."""
    detail: str = ""
    """Time left, or the reason."""


def study_status(path: Path) -> list[CellStatus]:
    """Every cell, in the order of the study."""
    _, cells = read_cells(path)
    store = PhaseStore.inside(path)
    failures, running = _read(path / FAILURES), _read(path / RUNNING)
    seen: dict[str, tuple[State, str]] = {}
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


def _phase_state(folder: PhaseFolder, failures: dict[str, Any], running: dict[str, Any]) -> tuple[State, str]:
    if folder.is_done():
        return "done", ""
    if is_locked(folder.path / "lock"):
        return "running", _time_left(running.get(folder.name))
    if folder.name in failures:
        return "failed", str(failures[folder.name])
    if (folder.path / "progress.json").exists():
        progress = folder.progress()
        of = f" of {progress['generations']}" if "generations" in progress else ""
        return "stopped", f"at generation {progress.get('generation')}{of}"
    return "missing", ""


def _time_left(pace: Any) -> str:
    try:
        done, left = str(pace["at"]), pace["seconds_left"]
        return done if left is None else f"{done}, {duration(left)} left"
    except (TypeError, KeyError, OverflowError, ValueError):
        return ""


def _cell_status(cell: StoredCell, phases: list[tuple[State, str]]) -> CellStatus:
    """A cell is what the first of its phases is that is not done."""
    n_done = 0
    for state, detail in phases:
        if state != "done":
            return CellStatus(cell, state, n_done, detail)
        n_done += 1
    return CellStatus(cell, "done", n_done)
