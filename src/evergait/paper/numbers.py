"""Numbers that the paper published, and how far runs are from them: one run, or where each lies in our seeds' range."""

import csv
import functools
import importlib.resources
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from evergait.config import Config
from evergait.core.table import Table
from evergait.paper.roles import reference_condition
from evergait.scores.metrics import Metrics
from evergait.store.ledger import Ledger
from evergait.studies.results import Entry, Results
from evergait.tasks.base import short

SINGLE_TASK: Mapping[str, float] = {"Hopper-v5": 3511.92, "Swimmer-v5": 362.21, "Walker2d-v5": 4680.66}
"""The paper's Table 1: best evaluation of single-task training, by task id."""
MULTI_TASK: Mapping[str, Mapping[str, float]] = {
    "separate": {"Hopper-v5": 1224.28, "Swimmer-v5": 360.54, "Walker2d-v5": 3719.17},
    "shared": {"Hopper-v5": 1112.05, "Swimmer-v5": 361.45, "Walker2d-v5": 3396.36},
}
"""Its Table 2: heads → task id → return."""


@functools.cache
def paper_extrema() -> list[dict[str, str]]:
    """The paper's tables of extrema: condition, order, step, task, max_return, min_return."""
    text = (importlib.resources.files("evergait.paper") / "max_min_returns.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


class PaperNumbers:
    """The paper's numbers for the runs of a study (see `analysis.study.Published`)."""

    def single_task(self, task: str) -> float | None:
        """Table 1."""
        return SINGLE_TASK.get(task)

    def multi_task(self, config: Config, task: str) -> float | None:
        """Table 2."""
        return MULTI_TASK.get(config.policy.heads, {}).get(task)

    def extremum(self, config: Config, order: str, step: int, task: str, which: str) -> float | None:
        """The tables of extrema."""
        row = _extrema().get((reference_condition(config), order, step, task))
        return float(row[f"{which}_return"]) if row else None


@functools.cache
def _extrema() -> Mapping[tuple[str, str, int, str], dict[str, str]]:
    return {(row["condition"], row["order"], int(row["step"]), row["task"]): row for row in paper_extrema()}


Extrema = Mapping[tuple[int, str], tuple[float, float]]
MOST = 1.5
"""Where a share that is kept stops counting: a task that is learnt further while another one is."""


def published(condition: str, order: str) -> Extrema:
    """(stage, task) → the paper's worst and best evaluation; empty if it has none of these."""
    return {
        (int(row["step"]) - 1, f"{row['task']}-v5"): (float(row["min_return"]), float(row["max_return"]))
        for row in paper_extrema()
        if (row["condition"], row["order"]) == (condition, order)
    }


def worst_share(metrics: Metrics, learnt: int, stage: int) -> float:
    """The worst evaluation of a task in a later phase, as a share of its best when it was learnt; from 0 to 1.5.

    Not a number where one of the two phases has no evaluation with a value.
    """
    task = metrics.task(learnt)
    best = metrics.ledgers[learnt].best(task)
    return 0.0 if best <= 0 else float(np.clip(metrics.ledgers[stage].worst(task) / best, 0, MOST))


def distance(metrics: Metrics, paper: Extrema) -> float:
    """The mean over tasks of the mean of |ours - paper| over the best return in the task's own phase, as a share of the
    paper's R*, and over the worst share of it in every later phase.
    """
    by_task = []
    for learnt in range(metrics.n_stages):
        task = metrics.task(learnt)
        best = paper[learnt, task][1]
        gaps = [abs(metrics.ledgers[learnt].best(task) - best) / SINGLE_TASK[task]]
        later = range(learnt + 1, metrics.n_stages)
        gaps += [abs(worst_share(metrics, learnt, stage) - paper[stage, task][0] / best) for stage in later]
        by_task.append(np.mean(gaps))
    return float(np.mean(by_task))


EXTREMES: dict[str, Callable[[Ledger, str], float]] = {"worst": Ledger.worst, "best": Ledger.best}


@dataclass(frozen=True)
class Range:
    """One published number, and the same number of every seed of ours that has one."""

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
        return value / SINGLE_TASK[f"{self.task}-v5"]


def study_ranges(results: Results) -> list[Range]:
    """Every number of the paper's tables of extrema that this study has a finished phase for."""
    together: dict[tuple[str, str], list[Entry]] = {}
    for entry in results.entries:
        if not entry.is_baseline:
            together.setdefault((entry.condition, entry.order), []).append(entry)
    found = []
    for (condition, order), entries in together.items():
        for (stage, task), extrema in published(reference_condition(entries[0].run.config), order).items():
            ledgers = [entry.run.ledgers[stage] for entry in entries if len(entry.run.ledgers) > stage]
            for (name, pick), paper in zip(EXTREMES.items(), extrema, strict=True):
                ours = tuple(value for ledger in ledgers if np.isfinite(value := pick(ledger, task)))
                if ours:
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
