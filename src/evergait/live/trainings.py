"""Which runs and studies a folder holds, and how far each phase is, by their files alone: nothing is written."""

import contextlib
import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evergait.config import read_config
from evergait.core.data import to_data
from evergait.core.errors import EvergaitError
from evergait.core.files import read_json
from evergait.store.archive import archive_path
from evergait.store.phases import PhaseFolder, PhaseStore
from evergait.studies.folder import StoredCell, is_study, read_cells
from evergait.studies.progress import GROWING, RUNNING, phase_standing
from evergait.studies.scheduler import FAILURES
from evergait.training.frame import order_name
from evergait.training.run import described_run

DEPTH = 3
"""How far below a folder trainings are looked for."""
MOST_FOLDERS = 10_000
"""That are looked into; those of a study's phases do not count."""
PACES = 30
"""Steps of progress that a speed is measured over."""


@dataclass(frozen=True)
class Training:
    """A run's or a study's folder."""

    path: Path
    title: str
    cells: tuple[StoredCell, ...]
    store: PhaseStore

    @property
    def phases(self) -> dict[str, None]:
        """Names of its phases, each once."""
        return dict.fromkeys(name for cell in self.cells for name in cell.phases)

    @property
    def report(self) -> Path | None:
        """Its page, if there is one."""
        path = self.path / "report.html"
        return path if path.is_file() and not path.is_symlink() else None


def find_trainings(folder: Path) -> list[Training]:
    """All runs and studies in a folder, or below it; a folder that is not there has none."""
    found: list[Training] = []
    for number, training in enumerate(_find(folder, DEPTH)):
        if number >= MOST_FOLDERS:
            raise EvergaitError(
                f"folder: {folder} has more than {MOST_FOLDERS:,} folders in it; name one that holds trainings"
            )
        found += [training] if training else []
    return found


def _find(folder: Path, depth: int) -> Iterator[Training | None]:
    """Every folder that is looked into, as a training or as none."""
    inside: list[str] = []
    try:
        is_one = is_study(folder) or (folder / "run.json").exists()
        if not is_one and depth:
            with os.scandir(folder) as entries:
                inside = sorted(
                    entry.path for entry in entries if entry.name[0] != "." and entry.is_dir(follow_symlinks=False)
                )
    except OSError:  # it has gone meanwhile, or is not for us to read
        is_one = False
    try:
        yield (_study(folder) if is_study(folder) else _run(folder)) if is_one else None
    except EvergaitError as error:  # one that is damaged, or just being made, does not hide the others
        yield Training(folder, str(error), (), PhaseStore(folder / "phases"))
    for path in inside:
        yield from _find(Path(path), depth - 1)


def _study(folder: Path) -> Training:
    head, cells = read_cells(folder)
    return Training(folder, head["title"], tuple(cells), PhaseStore.inside(folder))


def _run(folder: Path) -> Training:
    described, config = described_run(folder), read_config(folder / "config.toml")
    order, phases = order_name([task.name for task in config.stream_tasks]), tuple(map(str, described["phases"]))
    cell = StoredCell(config.method.name, order, config.seed, to_data(config), phases)
    if (
        store := described["store"]
    ) != "phases":  # a page for a whole folder of trainings asks nobody whether it may look elsewhere
        raise EvergaitError(f"{folder / 'run.json'}: its phases are in {store!r}, outside its folder")
    return Training(folder, folder.name, (cell,), PhaseStore.inside(folder))


@dataclass
class Watch:
    """What is known of one training's phases; `look` brings it up to date and tells what has changed."""

    training: Training
    phases: dict[str, dict[str, Any]] = field(default_factory=dict)
    _paces: dict[str, deque[tuple[float, int]]] = field(default_factory=dict)
    """When a running phase was seen to have come how far."""

    def look(self) -> dict[str, dict[str, Any]]:
        """Name → state of the phases that have changed since the last look."""
        changed: dict[str, dict[str, Any]] = {}
        failures, running = (_optional(self.training.path / name) for name in (FAILURES, RUNNING))
        root = self.training.store.root
        packed = _version(archive_path(root))
        for name in self.training.phases:
            before = self.phases.get(name)
            if before and before["state"] == "done" and before["version"] == _finished(root / name, packed):
                continue
            try:
                now = self._state(self.training.store.folder(name), failures, running, packed)
            except (EvergaitError, OSError) as error:
                now = {"state": "failed", "detail": str(error), "done": 0.0, "version": "0"}
            if now != before:
                self.phases[name] = changed[name] = now
        return changed

    def _state(
        self, phase: PhaseFolder, failures: dict[str, Any], running: dict[str, Any], packed: str
    ) -> dict[str, Any]:
        finished = _finished(phase.path, packed)  # first: one that changes while we look is looked at again
        standing = phase_standing(phase, failures)
        if standing != "running":
            self._paces.pop(phase.name, None)  # a pause is no part of its speed
        if standing == "done":
            return {"state": "done", "detail": "", "done": 1.0, "version": finished}
        version = _version(*(phase.path / name for name in GROWING))
        done, detail = _share(phase.progress() if (phase.path / "progress.json").exists() else {})
        if standing == "running":
            pace = self._pace(phase.name, running.get(phase.name), done, detail)
            return {**pace, "state": "running", "version": version}
        if standing == "failed":
            detail = str(failures[phase.name])
        state = "queued" if standing == "missing" else standing
        return {"state": state, "detail": detail, "done": done, "version": version}

    def _pace(self, name: str, pace: Any, done: float, detail: str) -> dict[str, Any]:
        """Of a running phase: where it is, how fast, and how long it will take, as its own process tells."""
        try:
            used, total, unit = str(pace["at"]).replace(",", "").replace(" of ", " ").split(" ")
            at, left = int(used), pace["seconds_left"]
        except (TypeError, KeyError, ValueError):
            return {"done": done, "detail": detail}
        now, seen = time.monotonic(), self._paces.setdefault(name, deque(maxlen=PACES))
        if seen and at < seen[-1][1]:  # it goes on from an older checkpoint
            seen.clear()
        if not seen or at > seen[-1][1]:
            seen.append((now, at))
        since, before = seen[0]
        rate = (at - before) / (now - since) if now > since and at > before else None
        found = {"done": min(at / max(int(total), 1), 1.0), "detail": f"{at:,} of {int(total):,} {unit}", "unit": unit}
        return {**found, "rate": rate, "left": left if isinstance(left, int | float) else None}


def _finished(phase: Path, packed: str) -> str:
    """The version of a finished phase: another one when it is made anew, packed or unpacked."""
    return f"done-{packed}-{_version(phase / 'progress.json')}"


def _version(*paths: Path) -> str:
    """What changes when one of these files does."""
    sizes = []
    for path in paths:
        with contextlib.suppress(OSError):
            found = path.stat(follow_symlinks=False)
            sizes.append(f"{found.st_size}.{found.st_mtime_ns}")
    return "-".join(sizes) or "0"


def _share(progress: dict[str, Any]) -> tuple[float, str]:
    """How much of a phase its last checkpoint had, and that in words."""
    steps, generation = progress.get("steps"), progress.get("generation")
    used, total = (progress.get("spent"), steps) if steps else (generation, progress.get("generations"))
    if type(used) is not int or type(total) is not int or total <= 0:
        return 0.0, ""
    return min(used / total, 1.0), f"{used:,} of {total:,} {'steps' if steps else 'generations'} at the last checkpoint"


def _optional(path: Path) -> dict[str, Any]:
    """A file that may be there, and may go away at any moment."""
    try:
        return read_json(path) if path.exists() else {}
    except (EvergaitError, OSError):
        return {}
