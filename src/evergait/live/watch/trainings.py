"""Which runs and studies a folder holds, as their own files list them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evergait.config import read_config
from evergait.core.data import to_data
from evergait.core.errors import EvergaitError
from evergait.core.files import read_json
from evergait.store.phases import PhaseStore
from evergait.studies.folder import StoredCell, is_study, read_cells
from evergait.studies.results import order_name

DEPTH = 3
"""How far below a folder trainings are looked for."""


@dataclass(frozen=True)
class Training:
    """A run's or a study's folder."""

    path: Path
    title: str
    cells: tuple[StoredCell, ...]
    store: PhaseStore

    @property
    def report(self) -> Path | None:
        """Its page, if there is one."""
        path = self.path / "report.html"
        return path if path.is_file() and not path.is_symlink() else None


def find_trainings(folder: Path) -> list[Training]:
    """All runs and studies in a folder, or below it."""
    if not folder.is_dir():
        raise EvergaitError(f"folder: {folder} is not a folder")
    return list(_find(folder, DEPTH))


def _find(folder: Path, depth: int) -> Iterator[Training]:
    if is_study(folder) or (folder / "run.json").exists():
        try:
            yield _study(folder) if is_study(folder) else _run(folder)
        except EvergaitError as error:  # one that is damaged, or just being made, does not hide the others
            yield Training(folder, str(error), (), PhaseStore(folder / "phases"))
    elif depth:
        for entry in sorted(folder.iterdir()):
            if entry.is_dir() and not entry.is_symlink() and entry.name[0] != ".":
                yield from _find(entry, depth - 1)


def _study(folder: Path) -> Training:
    head, cells = read_cells(folder)
    return Training(folder, head["title"], tuple(cells), PhaseStore.inside(folder))


def _run(folder: Path) -> Training:
    described = read_json(folder / "run.json")
    names, store = described.get("phases"), described.get("store")
    if not isinstance(names, list) or not isinstance(store, str):
        raise EvergaitError(f"{folder / 'run.json'}: must have a list `phases` and a text `store`")
    config = read_config(folder / "config.toml")
    order, phases = order_name(config.stream), tuple(map(str, names))
    cell = StoredCell(config.method.name, order, config.seed, to_data(config), phases)
    if store != "phases":  # a page for a whole folder of trainings asks nobody whether it may look elsewhere
        raise EvergaitError(f"{folder / 'run.json'}: its phases are in {store!r}, outside its folder")
    return Training(folder, folder.name, (cell,), PhaseStore.inside(folder))
