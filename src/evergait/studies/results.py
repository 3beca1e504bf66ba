"""What a study, or a single run, has on disk, as reports see it: entries of (condition, order, seed) and their runs."""

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

from evergait.studies.base import SINGLE
from evergait.training.frame import Frame, make_frame
from evergait.training.phases import outdated
from evergait.training.run import Run


@dataclass(frozen=True)
class Entry:
    """One run of a study."""

    condition: str
    """What is compared, such as naive, replay-192 or distinct; `single` for single-task baselines."""
    order: str
    """The stream, such as Hopper > Swimmer > Walker2d."""
    seed: int
    run: Run
    """Its config and the phases that are done."""

    @property
    def is_baseline(self) -> bool:
        """Whether one task was learnt alone, for others to be measured by."""
        return self.condition == SINGLE


@dataclass(frozen=True)
class Results:
    """All entries of a study; entries without a finished phase are left out."""

    title: str
    path: Path
    entries: tuple[Entry, ...]
    description: str = ""
    scores: str = ""
    """How the study asks for returns to be measured; see `studies.base.Outline`."""

    @staticmethod
    def of_run(path: str | Path, store: str | Path | None = None) -> "Results":
        """A single run as a study of one entry."""
        run = Run.load(path, store)
        entry = Entry(run.config.method.name, run.order, run.config.seed, run)
        return Results(f"Run {Path(path).name}", Path(path), (entry,) if run.phases else ())

    @cached_property
    def baselines(self) -> tuple[Entry, ...]:
        """Runs of single tasks."""
        return tuple(entry for entry in self.entries if entry.is_baseline)

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """Conditions in the order of the study, without single-task baselines."""
        return tuple(dict.fromkeys(entry.condition for entry in self.entries if not entry.is_baseline))

    def _repr_html_(self) -> str:
        """What notebooks show: every run, with its mean returns at the end."""
        rows = []
        for entry in self.entries:
            last = entry.run.ledger.records[-1]
            returns = ", ".join(f"{task} {last.mean(task):,.1f}" for task in last.returns)
            rows.append((entry.condition, entry.order, str(entry.seed), f"{len(entry.run.phases)} phases", returns))
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        return f"<table><caption>{escape(self.title)}</caption>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"

    def frame(self) -> Frame:
        """Every evaluation episode as a row: `pandas.DataFrame(results.frame())`."""
        return make_frame((entry.condition, entry.order, entry.seed, entry.run.ledgers) for entry in self.entries)

    @cached_property
    def outdated(self) -> tuple[str, ...]:
        """Parts that are of another version now, such as `policy 1, now 2`: trained again, it has other bits."""
        phases = {phase.name: phase for entry in self.entries for phase in entry.run.phases}
        return tuple(dict.fromkeys(part for phase in phases.values() for part in outdated(phase.identity())))


def phase_label(condition: str, order: str, seed: int, stage: int, n_stages: int) -> str:
    """A phase as people call it: its run, and the stream up to it.

    >>> phase_label("shared", "Hopper > Swimmer > Walker2d", 0, stage=1, n_stages=3)
    'shared, Hopper > Swimmer, seed 0'
    """
    learnt = order if n_stages == 1 else " > ".join(order.split(" > ")[: stage + 1])  # one stage may learn all tasks
    return f"{condition}, {learnt}, seed {seed}"
