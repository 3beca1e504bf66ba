"""What the page of `evergait watch` asks for: everything, what has changed, curves of phases, a newest policy."""

import json
import math
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evergait.core.errors import EvergaitError
from evergait.core.files import parse_json
from evergait.live.robots import encoded, live_robot
from evergait.live.shelves import describe_policy
from evergait.live.trainings import Training, Watch, find_trainings
from evergait.store.phases import PhaseFolder
from evergait.tasks import Task
from evergait.tasks.robot_file import robot_digests
from evergait.training.state import State

MOST_CURVES = 200
"""Phases whose curves are sent in one answer."""


@dataclass
class Answers:
    """Of one folder, for one page."""

    folder: Path
    watches: dict[str, Watch] = field(default_factory=dict)
    """By path."""
    reports: set[str] = field(default_factory=set)
    """Paths of those that have a report."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while a question has trainings looked for: questions come in many threads."""

    def __post_init__(self) -> None:
        self.refresh()

    def refresh(self) -> bool:
        """Look for trainings anew; true if there are others than before, or they have grown or have a report now."""
        found = {as_text(training.path): training for training in find_trainings(self.folder)}
        known = {path: watch.training for path, watch in self.watches.items()}
        reports = {path for path, training in found.items() if training.report}
        if (found, reports) == (known, self.reports):
            return False
        fresh = {path: Watch(training) for path, training in found.items() if training != known.get(path)}
        self.watches = {path: fresh.get(path) or self.watches[path] for path in found}
        self.reports = reports
        return True

    def everything(self) -> dict[str, Any]:
        """Trainings, their cells and the state of all phases."""
        for watch in self.watches.values():
            watch.look()
        return {"folder": as_text(self.folder), "trainings": [_overview(watch) for watch in self.watches.values()]}

    def changes(self) -> list[Any]:
        """[path, name, state] of the phases that have changed."""
        return [[path, name, state] for path, watch in self.watches.items() for name, state in watch.look().items()]

    def curves(self, path: str, names: list[str]) -> dict[str, Any]:
        """Mean returns and diagnostics of some phases, by name; a phase without any is left out."""
        names = names[:MOST_CURVES]
        training = self.training(path, *names)
        known = training.phases.keys() & set(names)
        return {name: curve for name in known if (curve := read_curve(training.store.folder(name)))}

    def policy(self, path: str, name: str) -> dict[str, Any]:
        """The newest θ of a phase and the robots that it moves, as far as they live in a page."""
        training = self.training(path, name)
        cell = next((cell for cell in training.cells if name in cell.phases), None)
        if cell is None:
            raise EvergaitError(f"there is no phase {name!r}")
        policy, folder = cell.settings().build_policy(), training.store.folder(name)
        robots = [_live(task) for task in policy.tasks]  # before θ is laid out, which asks environments for their sizes
        if not folder.is_done() and not folder.has_checkpoint:
            raise EvergaitError("There is no checkpoint of this phase yet.")
        if folder.identity().get("robots", {}) != robot_digests(policy.tasks):
            raise EvergaitError("A file of this robot has been edited since this training was planned.")
        tensors, metadata = folder.result() if folder.is_done() else folder.saved()
        state = State.load(tensors, metadata, policy, folder.path)
        return {
            "robots": robots,
            "policy": describe_policy(policy),
            "theta": encoded(state.theta),
            "statistics": {task: encoded(sums) for task, sums in state.statistics.sums.items()},
            "generation": state.generation,
        }

    def training(self, path: str, *names: str) -> Training:
        """By its path, as `everything` names it; looked for anew if it, or one of these phases of it, is not known."""
        with self._lock:
            if path not in self.watches or not self.watches[path].training.phases.keys() >= {*names}:
                self.refresh()
            if path not in self.watches:
                raise EvergaitError(f"there is no training {path!r}")
            return self.watches[path].training


def as_text(path: Path) -> str:
    """A path that a page can send back: of a name that is not UTF-8, other bytes are written as \\udcff."""
    return str(path).encode(errors="backslashreplace").decode()


def _live(task: Task) -> dict[str, Any]:
    """What is no planar robot is refused by its name alone: a file's task imports nothing here."""
    try:
        return live_robot(task)
    except EvergaitError as error:
        raise EvergaitError(f"{task.name} does not live in a page: {error}") from error


def _overview(watch: Watch) -> dict[str, Any]:
    training = watch.training
    cells = [
        {
            "condition": c.condition,
            "order": c.order,
            "seed": c.seed,
            "stream": list(c.config["stream"]),
            "phases": c.phases,
        }
        for c in training.cells
    ]
    tasks = list(dict.fromkeys(task for cell in training.cells for task in cell.tasks))
    report = training.report is not None
    return {
        "title": training.title,
        "path": as_text(training.path),
        "tasks": tasks,
        "cells": cells,
        "phases": watch.phases,
        "report": report,
    }


def read_curve(phase: PhaseFolder) -> dict[str, Any] | None:
    """What the ledger has so far; a line that is being written, or is damaged, ends it."""
    try:
        head, *lines = phase.read("ledger.jsonl").rpartition(b"\n")[0].split(b"\n")
        described = parse_json(head.decode())
        curve: dict[str, Any] = {
            "stage": described["stage"],
            "learning": described["learning"],
            "generations": [],
            "returns": {},
            "diagnostics": {},
        }
    except (EvergaitError, OSError, ValueError, KeyError, TypeError):
        return None
    for line in lines:
        try:
            _add(curve, parse_json(line.decode()))
        except (ValueError, KeyError, TypeError, AttributeError):
            break
    return curve if curve["generations"] else None


def _add(curve: dict[str, Any], record: Any) -> None:
    means = {str(task): _mean(found["returns"]) for task, found in record["evaluations"].items()}
    numbers = {str(name): float(value) for name, value in record.get("diagnostics", {}).items()}
    curve["generations"].append(int(record["generation"]))
    place = len(curve["generations"])
    for part, found in (("returns", means), ("diagnostics", numbers)):
        for name, value in found.items():
            column = curve[part].setdefault(name, [])
            column += [None] * (place - 1 - len(column)) + [value]


def _mean(values: list[float | None]) -> float | None:
    mean = math.nan if None in values else sum(float(value or 0) for value in values) / len(values)
    return round(mean, 3) if math.isfinite(mean) else None


def to_json(data: Any) -> bytes:
    """Plain JSON."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).encode()
