"""A study on disk.

<out>/study.toml     the study at its scale
      study.json     its cells: condition, order, seed, config, hashes of the phases
      phases/        the store that all cells share
      phases.zip     finished phases and study.json, once they are packed
      failures.json  reasons by hash; only if there are any
      running.json   how fast phases are being trained; only while they are
      lock           held while training
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergait.config import Config, config_from_data
from evergait.core.data import to_data
from evergait.core.errors import EvergaitError
from evergait.core.files import (
    TOML_LIMIT,
    as_path,
    make_own_folder,
    open_own,
    parse_object,
    parse_toml,
    read_bytes,
    require_own,
    write_atomically,
    write_json,
)
from evergait.store.archive import archive_path, read_beside
from evergait.store.phases import PhaseStore
from evergait.studies.base import Study
from evergait.studies.cells import Cell, seeds_of, study_cells
from evergait.studies.results import Entry, Results
from evergait.training.frame import order_name
from evergait.training.run import Run

OWN_FILES = ("study.toml", "study.json", "phases", "phases.zip", "lock")


@dataclass(frozen=True)
class StoredCell:
    """A cell as study.json tells it; its hashes hold whatever versions are installed now."""

    condition: str
    order: str
    seed: int
    config: dict[str, Any]
    phases: tuple[str, ...]

    @property
    def key(self) -> tuple[str, tuple[str, ...], int]:
        """What tells cells apart."""
        return self.condition, tuple(self.config["stream"]), self.seed

    @property
    def tasks(self) -> list[str]:
        """All tasks that it names."""
        return list(dict.fromkeys(str(name) for key in ("stream", "tasks") for name in self.config.get(key, ())))

    def settings(self) -> Config:
        """Its settings, checked."""
        return config_from_data(self.config, "its config")


def stored(cell: Cell) -> StoredCell:
    """A cell as it will be written."""
    names = tuple(phase.name for phase in cell.phases)
    return StoredCell(cell.condition, cell.order, cell.seed, to_data(cell.config), names)


def is_study(path: Path) -> bool:
    """Whether a folder holds a study."""
    return (path / "study.json").exists() or (_archive(path).exists() and not (path / "run.json").exists())


def _archive(path: Path) -> Path:
    return archive_path(path / "phases")


def read_description(path: Path) -> dict[str, Any]:
    """What study.json says, be it a file or packed with the phases; the file is the newer one."""
    content = read_beside(path / "phases", "study.json")
    if content is None:
        raise EvergaitError(f"{_archive(path)}: has no study.json")
    return parse_object(content, path / "study.json")


def read_cells(path: Path) -> tuple[dict[str, Any], list[StoredCell]]:
    """The study's own words and its cells."""
    if not is_study(path):
        raise EvergaitError(
            f"{path}: is not a study's folder (it has no study.json); `evergait study run --out` makes one"
        )
    data = read_description(path)
    try:
        cells = [
            StoredCell(
                str(cell["condition"]),
                order_name(cell["config"]["stream"]),
                int(cell["seed"]),
                dict(cell["config"]),
                tuple(map(str, cell["phases"])),
            )
            for cell in data["cells"]
        ]
        scores = str(data["scores"] if "scores" in data else _scores(path / "study.toml"))
        return {"title": str(data["title"]), "description": str(data["description"]), "scores": scores}, cells
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EvergaitError(f"{path / 'study.json'}: was damaged or edited ({error!r})") from error


def make_study_folder(study: Study, path: Path) -> None:
    """Make the folder that the lock is in, or refuse one that is not ours."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        foreign = [entry.name for entry in path.iterdir() if entry.name not in OWN_FILES and entry.name[0] != "."]
    except OSError as error:
        raise EvergaitError(f"out: {path} cannot be made a folder: {error.strerror}") from error
    if not is_study(path):
        if foreign:
            raise EvergaitError(f"out: {path} is not empty and not a study's folder; choose another one")
        require_own(path / "study.toml", study.to_toml().encode())
    try:
        open_own(path / "lock").close()
    except OSError as error:
        raise EvergaitError(f"out: {path} cannot be written: {error.strerror}") from error


def open_study(study: Study, path: Path) -> list[Cell]:
    """Make or reopen a study's folder, and return its cells; the study may have grown, but another one is an error.

    Whoever else may do so at this moment is kept out by the folder's lock.
    """
    make_study_folder(study, path)
    cells = study_cells(study)
    if is_study(path):
        head, there = read_cells(path)
        n_there = max(map(len, seeds_of((cell.condition, cell.seed) for cell in there).values()), default=0)
        if n_there > study.outline.seeds:
            cells = study_cells(study.with_seeds(n_there))
        _require_same(cells, there, path)
        if len(there) == len(cells) and all(head[word] == getattr(study.outline, word) for word in head):
            return cells
        study = study.with_seeds(max(n_there, study.outline.seeds))
    try:
        make_own_folder(path / "phases")
        write_atomically(path / "study.toml", study.to_toml().encode())
        listed = [
            {"condition": c.condition, "order": c.order, "seed": c.seed, "phases": list(c.phases), "config": c.config}
            for c in map(stored, cells)
        ]
        words = {"title": study.outline.title, "description": study.outline.description, "scale": study.outline.scale}
        scores = {"scores": study.outline.scores} if study.outline.scores else {}
        write_json(path / "study.json", {**words, **scores, "cells": listed})
    except OSError as error:
        raise EvergaitError(f"out: {path} cannot be written: {error.strerror}") from error
    return cells


def _require_same(cells: Sequence[Cell], there: Sequence[StoredCell], path: Path) -> None:
    """The cells that the folder has must be cells of this study, which may have more."""
    mine = {cell.key: cell for cell in map(stored, cells)}
    theirs = {cell.key: cell for cell in there}
    advice = "choose another folder"
    for key in theirs:
        what = f"{key[0]} on {order_name(key[1])} with seed {key[2]}"
        if key not in mine:
            raise EvergaitError(f"out: {path} holds another study ({what} is only there); {advice}")
        here, other = mine[key].config, to_data(_config(theirs[key], path))  # it may lack settings that came later
        changed = next((name for name in here if here[name] != other.get(name)), "")
        if changed:
            raise EvergaitError(
                f"out: {path} holds another study (in {what}, {changed} is {other.get(changed)!r} there and "
                f"{here[changed]!r} here); {advice}"
            )
        if mine[key].phases != theirs[key].phases:
            parts = load_results(path).outdated or ("other versions of evergait, mujoco or engines",)
            raise EvergaitError(f"out: {path} holds this study trained with {'; '.join(parts)}; {advice}")


def load_results(path: str | Path, store: str | Path | None = None) -> Results:
    """What a study's folder has so far; a plain run's folder is a study of one entry."""
    path = as_path(path, "path")
    if not is_study(path) and (path / "run.json").exists():
        return Results.of_run(path, store)
    if not is_study(path):
        raise EvergaitError(f"{path}: is not the folder of a run or a study (it has neither run.json nor study.json)")
    head, cells = read_cells(path)
    own = PhaseStore.inside(path)
    entries = []
    for cell in cells:
        folders = []
        for name in cell.phases:
            folder = own.folder(name)
            if not folder.is_done():
                break
            folders.append(folder)
        if folders:
            entries.append(Entry(cell.condition, cell.order, cell.seed, Run(path, _config(cell, path), tuple(folders))))
    return Results(head["title"], path, tuple(entries), head["description"], head["scores"])


def _scores(path: Path) -> str:
    """How the study asks for returns to be measured, where study.json is older than that; it may be missing."""
    try:
        return str(parse_toml(read_bytes(path, TOML_LIMIT), str(path)).get("scores", ""))
    except EvergaitError:
        return ""


def _config(cell: StoredCell, path: Path) -> Config:
    return config_from_data(cell.config, str(path / "study.json"))


def load(path: str | Path) -> Run | Results:
    """What a folder holds: a run, or the results of a study."""
    path = as_path(path, "path")
    return load_results(path) if is_study(path) else Run.load(path)
