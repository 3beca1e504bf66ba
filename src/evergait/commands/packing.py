"""`evergait study pack` and `unpack`: a study's phases as one archive, and as folders again."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import tyro

from evergait.commands.base import console
from evergait.core.errors import EvergaitError
from evergait.core.files import locked
from evergait.store.archive import archive_path
from evergait.store.pack import pack, unpack
from evergait.store.phases import PhaseStore
from evergait.studies.folder import StoredCell, read_cells


@dataclass(frozen=True)
class StudyPack:
    """Put a study's finished phases and study.json into one file, which every command reads in place."""

    folder: tyro.conf.Positional[Path]
    """Folder of a study."""
    policies: Literal["all", "last", "none"] = "all"
    """Which policies to keep: of all phases, of the last phase of every run, or none; those that unfinished phases
    start from are always kept. What is not kept is removed."""

    def run(self) -> int:
        """Pack."""
        _, cells = read_cells(self.folder)
        every = {name for cell in cells for name in cell.phases}
        kept = {"all": every, "last": {cell.phases[-1] for cell in cells if cell.phases}, "none": set()}[self.policies]
        root = self.folder / "phases"
        with _alone(self.folder):
            n_phases = pack(root, every - kept - _needed(cells, PhaseStore.inside(self.folder)))
        path = archive_path(root)
        console.print(f"{n_phases} phases are packed in {path}: {path.stat().st_size / 1e6:.1f} MB.", markup=False)
        return 0


@dataclass(frozen=True)
class StudyUnpack:
    """Make folders of packed phases again, byte by byte as they were."""

    folder: tyro.conf.Positional[Path]
    """Folder of a study."""

    def run(self) -> int:
        """Unpack."""
        read_cells(self.folder)
        with _alone(self.folder):
            n_phases = unpack(self.folder / "phases")
        console.print(f"{n_phases} phases are folders in {self.folder / 'phases'}.", markup=False)
        return 0


def _needed(cells: Sequence[StoredCell], store: PhaseStore) -> set[str]:
    """Phases whose policy an unfinished one starts from."""
    steps = {step for cell in cells for step in pairwise(cell.phases)}
    return {parent for parent, child in steps if not store.folder(child).is_done()}


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While nobody trains the study."""
    try:
        with locked(folder / "lock", wait=False) as ours:
            if not ours:
                raise EvergaitError(
                    f"folder: another process is training the study in {folder}; wait for it or stop it"
                )
            yield
    except OSError as error:
        raise EvergaitError(f"folder: {folder} cannot be written: {error.strerror}") from error
