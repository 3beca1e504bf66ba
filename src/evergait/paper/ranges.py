"""Where each of the paper's numbers lies in the range of our seeds: one run per cell is what the paper had."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evergait.core.arrays import Float64
from evergait.core.names import short
from evergait.core.table import Table
from evergait.paper.distance import published
from evergait.paper.numbers import paper_single_task
from evergait.paper.roles import reference_condition
from evergait.studies.results import Entry, Results

EXTREMES: dict[str, Callable[[Float64], float]] = {
    "worst": lambda curve: float(curve.min()),
    "best": lambda curve: float(curve.max()),
}


@dataclass(frozen=True)
class Range:
    """One published number, and the same number of every seed of ours."""

    condition: str
    order: str
    step: int
    """Which phase of the stream, from 1."""
    task: str
    extreme: str
    """Which of the phase's evaluations: the worst or the best."""
    paper: float
    ours: tuple[float, ...]

    @property
    def is_inside(self) -> bool:
        """Whether the paper's number is neither below nor above all of ours."""
        return min(self.ours) <= self.paper <= max(self.ours)

    def share(self, value: float) -> float:
        """A return as a share of the paper's R*."""
        return value / paper_single_task()[f"{self.task}-v5"]


def study_ranges(results: Results) -> list[Range]:
    """Every number of the paper's tables of extrema that this study has a finished phase for."""
    together: dict[tuple[str, str], list[Entry]] = {}
    for entry in results.entries:
        if entry.condition != "single":
            together.setdefault((entry.condition, entry.order), []).append(entry)
    found = []
    for (condition, order), entries in together.items():
        for (stage, task), extrema in published(reference_condition(entries[0].run.config), order).items():
            curves = [entry.run.ledgers[stage].curve(task) for entry in entries if len(entry.run.ledgers) > stage]
            for (name, pick), paper in zip(EXTREMES.items(), extrema, strict=True):
                if curves:
                    ours = tuple(pick(curve) for curve in curves)
                    found.append(Range(condition, order, stage + 1, short(task), name, paper, ours))
    return found


def ranges_table(results: Results) -> Table:
    """All of them; empty from a single seed, which has no range."""
    found = [one for one in study_ranges(results) if len(one.ours) > 1]
    n_inside = sum(one.is_inside for one in found)
    rows = tuple(
        (
            *(one.condition, one.order, one.step, one.task, one.extreme, one.paper),
            *(
                min(one.ours),
                float(np.median(one.ours)),
                max(one.ours),
                len(one.ours),
                "yes" if one.is_inside else "no",
            ),
        )
        for one in found
    )
    columns = (
        "condition",
        "order",
        "step",
        "task",
        "evaluation",
        "paper",
        "lowest",
        "median",
        "highest",
        "seeds",
        "inside",
    )
    return Table("ranges", f"{n_inside} of {len(found)} published numbers lie within our seeds", columns, rows)
