"""Flags that several commands share: which run of a study (--condition, --order, --seed), and which workers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from evergait.commands.base import errors
from evergait.core.errors import EvergaitError, nearest
from evergait.studies.folder import is_study, load_results
from evergait.studies.results import Entry, Results
from evergait.tasks import parse_stream
from evergait.training.frame import order_name
from evergait.training.run import Run, edited
from evergait.workers import WorkersChoice


@dataclass(frozen=True)
class Which:
    """A run of a study; what is not given does not matter if only one run is left."""

    condition: str = ""
    """Of a study: which condition, such as distill."""
    order: str = ""
    """Of a study: which order, such as 'H>S>W'."""
    seed: int | None = None
    """Of a study: which seed."""
    store: Path | None = None
    """Of a run: where its phases are, if `train --store` has put them outside its folder."""

    def entries(self, results: Results) -> list[Entry]:
        """Those that fit; an error names what there is."""
        entries = list(results.entries)
        if self.condition:
            known = list(dict.fromkeys(entry.condition for entry in entries))
            entries = [entry for entry in entries if entry.condition == self.condition]
            _require(entries, "condition", self.condition, known)
        if self.order:
            known = list(dict.fromkeys(entry.order for entry in entries))
            wanted = order_name([task.name for task in parse_stream([self.order])])
            entries = [entry for entry in entries if entry.order == wanted]
            _require(entries, "order", self.order, known)
        if self.seed is not None:
            known = list(dict.fromkeys(str(entry.seed) for entry in entries))
            entries = [entry for entry in entries if entry.seed == self.seed]
            _require(entries, "seed", str(self.seed), known)
        return entries


def _require(entries: Sequence[Entry], field: str, value: str, known: Sequence[str]) -> None:
    if not entries:
        raise EvergaitError(f"{field}: no run here has {value!r}{nearest(value, known)}")


def select_run(folder: Path, which: Which) -> Run:
    """The run of a folder, or the one of a study that is meant."""
    if not is_study(folder):
        run = Run.load(folder, which.store)
        which.entries(Results.of_run(folder, which.store)) if run.phases and which != Which() else None
        return run
    results = load_results(folder)
    if not results.entries:
        raise EvergaitError(f"{folder}: no phase of this study is finished yet; `evergait study status` shows more")
    entries = which.entries(results)
    if len(entries) == 1:
        return entries[0].run
    first = next((entry for entry in entries if not entry.is_baseline), entries[0])
    raise EvergaitError(
        f"{folder}: is a study, and {len(entries)} of its runs are meant; choose one, as in "
        f"--condition {first.condition} --order '{first.order}' --seed {first.seed}"
    )


def tell_edited(run: Run) -> None:
    """Say so if what will play is not the robot that was trained."""
    for words in edited([run]):
        errors.print(words, style="yellow", markup=False)


@dataclass(frozen=True)
class WorkersKind:
    """Where episodes are simulated."""

    workers: Annotated[str, tyro.conf.arg(metavar="|".join(WorkersChoice.members))] = "local"
    """Where episodes are simulated; its options appear as --workers.*. The result does not depend on it."""

    def choice(self) -> WorkersChoice:
        """The workers of that kind, with their defaults."""
        return WorkersChoice.named(self.workers, "workers")()
