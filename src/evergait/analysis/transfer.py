"""Transfer and score of a stream: as curves over time, as matrices, and as bars."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from evergait.analysis.groups import Band, Group, Values, table_of
from evergait.core.arrays import Float64
from evergait.scores.metrics import Metrics
from evergait.tasks.base import short

MEASURES = ("score", "return", "backward", "forward")


@dataclass(frozen=True)
class Stretch:
    """One phase's part of the axis."""

    start: float
    end: float
    learning: tuple[str, ...]

    @property
    def label(self) -> str:
        """What is learnt there."""
        return " + ".join(map(short, self.learning))


@dataclass(frozen=True)
class Panel:
    """One chart: x in generations or steps since the beginning, and per measure and task a line with its band."""

    condition: str
    order: str
    n_seeds: int
    x: Float64
    unit: str
    stretches: tuple[Stretch, ...]
    lines: Mapping[str, Mapping[str, Band]]
    """Measure → task → band; a measure that is not defined has no lines."""
    tasks: tuple[str, ...]
    """What is evaluated, also where it has no line."""


def panel(group: Group) -> Panel:
    """The curves of one condition on one order."""
    ledgers = group.metrics[0].ledgers
    lengths = [ledger.axis[-1] for ledger in ledgers]
    starts = np.concatenate([[0.0], np.cumsum(lengths)])[:-1].tolist()
    x = [start + at for start, ledger in zip(starts, ledgers, strict=True) for at in ledger.axis]
    stretches = tuple(
        Stretch(start, start + length, learning)
        for start, length, learning in zip(starts, lengths, group.learning, strict=True)
    )
    measures = [name for name in MEASURES if name != "score" or group.metrics[0].scale.is_share]
    lines: dict[str, dict[str, Band]] = {name: {} for name in measures}
    for task in group.tasks:
        for name in measures:
            band = group.over_seeds(partial(series, task=task, measure=name))
            if not np.isnan(band.mean).all():
                lines[name][task] = band
    unit, n_seeds = ledgers[0].axis_label, len(group.entries)
    return Panel(group.condition, group.order, n_seeds, np.array(x), unit, stretches, lines, group.tasks)


def series(metrics: Metrics, task: str, measure: str) -> Float64:
    """(n_records of all stages,) of one measure on one task; NaN where it is not defined."""
    stages = [stage for stage, ledger in enumerate(metrics.ledgers) if ledger.learning == (task,)]
    parts = []
    for stage, ledger in enumerate(metrics.ledgers):
        values = np.full(len(ledger.records), np.nan)
        before, after = [s for s in stages if s < stage], [s for s in stages if s > stage]
        if measure == "return":
            values = metrics.returns(task, stage)
        elif measure == "score":
            values = metrics.curve(task, stage)
        elif stage in stages:
            pass  # it is being learnt
        elif measure == "backward" and before:
            values = metrics.backward_transfer_curve(before[-1], stage)
        elif measure == "forward" and after and not before:
            values = metrics.forward_transfer_curve(after[0], stage)
        parts.append(values)
    return np.concatenate(parts)


@dataclass(frozen=True)
class Cell:
    """One task after one stage."""

    score: float
    """NaN where there is none."""
    mean_return: float
    learning: bool
    """Whether the stage learnt this very task."""


@dataclass(frozen=True)
class Matrix:
    """Every task (columns) before training and after every stage (rows)."""

    condition: str
    order: str
    tasks: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


def matrix(group: Group) -> Matrix:
    """Means over seeds; columns in the order of the stream, then the others."""
    learnt = [task for learning in group.learning for task in learning]
    tasks = tuple(dict.fromkeys([*learnt, *group.tasks]))
    rows = [("before", _cells(group, tasks, 0, 0, ()))]
    for stage, learning in enumerate(group.learning):
        name = f"after {short(learning[0])}" if len(learning) == 1 else "after all at once"
        rows.append((name, _cells(group, tasks, stage, -1, learning)))
    return Matrix(group.condition, group.order, tasks, tuple(rows))


def _cells(group: Group, tasks: Sequence[str], stage: int, at: int, learning: Sequence[str]) -> tuple[Cell, ...]:
    is_share = group.metrics[0].scale.is_share
    cells = []
    for task in tasks:
        returns = float(np.mean([metrics.returns(task, stage)[at] for metrics in group.metrics]))
        score = float(np.mean([metrics.curve(task, stage)[at] for metrics in group.metrics]))
        cells.append(Cell(score if is_share else float("nan"), returns, task in learning))
    return tuple(cells)


@dataclass(frozen=True)
class Bar:
    """A value over seeds and orders."""

    label: str
    task: str
    """Whose colour it has: the task whose return changed."""
    values: Values

    @property
    def value(self) -> float:
        """The mean."""
        return self.values.estimate

    @property
    def points(self) -> tuple[float, ...]:
        """One per order: its mean over seeds; none if there is only one."""
        return tuple(self.values.values.mean(axis=0).tolist()) if len(self.values.orders) > 1 else ()


@dataclass(frozen=True)
class Chart:
    """Bars of one condition."""

    condition: str
    bars: tuple[Bar, ...]


Found = dict[tuple[str, str], dict[tuple[int, str], float]]
"""(label, task) → (seed, order) → value."""


def pairwise(groups: Iterable[Group], direction: str) -> list[Chart]:
    """BWT A ← B (`backward`) at the end of B's stage, or FWT A → B (`forward`) at the end of A's, for A before B."""
    arrow = "←" if direction == "backward" else "→"
    by_condition: dict[str, Found] = {}
    for group in _streams(groups):
        tasks = [learning[0] for learning in group.learning]
        # What returns has no clean before or after.
        once = [i for i, task in enumerate(tasks) if tasks.count(task) == 1]
        for earlier, later in ((a, b) for a in once for b in once if a < b):
            label = f"{short(tasks[earlier])} {arrow} {short(tasks[later])}"
            found = by_condition.setdefault(group.condition, {})
            if direction == "backward":
                values = [metrics.backward_transfer(earlier, later) for metrics in group.metrics]
                _add(found, (label, tasks[earlier]), group, values)
            else:
                values = [metrics.forward_transfer(later, earlier) for metrics in group.metrics]
                _add(found, (label, tasks[later]), group, values)
    return _charts(by_condition)


def interference(groups: Iterable[Group]) -> list[Chart]:
    """Int = 1 − best while learning, by position in the stream and task."""
    by_condition: dict[str, Found] = {}
    for group in _streams(groups):
        for stage, learning in enumerate(group.learning):
            values = [metrics.interference(stage) for metrics in group.metrics]
            found = by_condition.setdefault(group.condition, {})
            _add(found, (f"{stage + 1}. {short(learning[0])}", learning[0]), group, values)
    return _charts(by_condition)


def interference_by_order(groups: Iterable[Group]) -> list[Chart]:
    """Int at the second and later positions, history by history: orders that begin alike share their first phases."""
    by_condition: dict[str, Found] = {}
    for group in _streams(groups):
        tasks = [learning[0] for learning in group.learning]
        for stage in range(1, len(tasks)):
            label = f"{short(tasks[stage])} after {', '.join(map(short, tasks[:stage]))}"
            found = by_condition.setdefault(group.condition, {})
            if (label, tasks[stage]) not in found:
                values = [metrics.interference(stage) for metrics in group.metrics]
                _add(found, (label, tasks[stage]), group, values)
    return _charts(by_condition)


def _streams(groups: Iterable[Group]) -> list[Group]:
    return [group for group in groups if group.is_stream]


def _add(found: Found, key: tuple[str, str], group: Group, values: Sequence[float]) -> None:
    for entry, value in zip(group.entries, values, strict=True):
        if np.isfinite(value):
            found.setdefault(key, {})[entry.seed, group.order] = value


def _charts(by_condition: dict[str, Found]) -> list[Chart]:
    charts = []
    for condition, found in by_condition.items():
        bars = tuple(Bar(label, task, table_of(values)) for (label, task), values in sorted(found.items()))
        if bars:
            charts.append(Chart(condition, bars))
    return charts
