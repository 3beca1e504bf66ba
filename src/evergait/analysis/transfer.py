"""Matrices and bars: R̂ after each stage, pairwise transfer between tasks, interference by position."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evergait.analysis.groups import Group, spread
from evergait.core.names import short


@dataclass(frozen=True)
class Cell:
    """R̂ on one task after one stage."""

    value: float
    learning: bool
    """Whether the stage learnt this very task."""


@dataclass(frozen=True)
class Matrix:
    """R̂ of every task (columns) before training and after every stage (rows)."""

    condition: str
    order: str
    tasks: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


def matrix(group: Group) -> Matrix:
    """The R̂ matrix of a group, interquartile means over seeds; columns in the order of the stream, then the others."""
    learnt = [task for learning in group.learning for task in learning]
    tasks = tuple(dict.fromkeys([*learnt, *group.tasks]))
    first = group.over_seeds(lambda metrics: np.array([metrics.curve(task, 0)[0] for task in tasks]))
    rows = [("before", tuple(Cell(float(value), False) for value in first.middle))]
    for stage, learning in enumerate(group.learning):
        ends = group.over_seeds(lambda metrics, stage=stage: np.array([metrics.final(t, stage) for t in tasks]))  # type: ignore[misc]
        cells = tuple(Cell(float(v), task in learning) for v, task in zip(ends.middle, tasks, strict=True))
        rows.append((f"after {short(learning[0])}" if len(learning) == 1 else "after all at once", cells))
    return Matrix(group.condition, group.order, tasks, tuple(rows))


@dataclass(frozen=True)
class Bar:
    """A value with an error bar."""

    label: str
    task: str
    """Whose colour it has: the task whose return changed."""
    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Chart:
    """Bars of one condition."""

    condition: str
    bars: tuple[Bar, ...]


def pairwise(groups: Sequence[Group], direction: str) -> list[Chart]:
    """BWT A ← B (`backward`) or FWT A → B (`forward`): mean over the orders with A before B, ± standard deviation."""
    charts = []
    for condition in dict.fromkeys(group.condition for group in groups):
        values: dict[tuple[str, str], list[float]] = {}
        for group in groups:
            if group.condition == condition and all(len(learning) == 1 for learning in group.learning):
                _add_pairs(values, group, direction)
        arrow = "←" if direction == "backward" else "→"
        bars = []
        for (earlier, later), found in sorted(values.items()):
            mean, deviation = spread(found)
            changed = earlier if direction == "backward" else later
            label = f"{short(earlier)} {arrow} {short(later)}"
            bars.append(Bar(label, changed, mean, mean - deviation, mean + deviation, len(found)))
        if bars:
            charts.append(Chart(condition, tuple(bars)))
    return charts


def _add_pairs(values: dict[tuple[str, str], list[float]], group: Group, direction: str) -> None:
    tasks = [learning[0] for learning in group.learning]
    for later in range(len(tasks)):
        for earlier in range(later):
            # A task that comes again has no clean before and after.
            if tasks[earlier] == tasks[later] or tasks.count(tasks[earlier]) + tasks.count(tasks[later]) > 2:
                continue
            if direction == "backward":
                found = [metrics.backward_transfer(earlier, later) for metrics in group.metrics]
            elif group.metrics[0].ledgers[0].random_returns:
                found = [metrics.forward_transfer(later, earlier) for metrics in group.metrics]
            else:
                continue
            over_seeds = group_mean(found)
            values.setdefault((tasks[earlier], tasks[later]), []).append(over_seeds)


def group_mean(values: Sequence[float]) -> float:
    """Mean over the seeds of one order, which then counts once."""
    return float(np.mean(values))


def interference(groups: Sequence[Group]) -> list[Chart]:
    """Int = 1 − best R̂ while learning, by position in the stream and task: mean over orders ± standard deviation."""
    charts = []
    for condition in dict.fromkeys(group.condition for group in groups):
        values: dict[tuple[int, str], list[float]] = {}
        for group in groups:
            if group.condition == condition and all(len(learning) == 1 for learning in group.learning):
                for stage, learning in enumerate(group.learning):
                    over_seeds = group_mean([metrics.interference(stage) for metrics in group.metrics])
                    values.setdefault((stage, learning[0]), []).append(over_seeds)
        bars = []
        for (stage, task), found in sorted(values.items()):
            mean, deviation = spread(found)
            bars.append(Bar(f"{stage + 1}. {short(task)}", task, mean, mean - deviation, mean + deviation, len(found)))
        if bars:
            charts.append(Chart(condition, tuple(bars)))
    return charts


def interference_by_order(groups: Sequence[Group]) -> list[Chart]:
    """Int at the second and later positions, order by order: mean over seeds ± standard deviation."""
    charts: dict[str, list[Bar]] = {}
    for group in groups:
        tasks = [learning[0] for learning in group.learning]
        if any(len(learning) > 1 for learning in group.learning):
            continue
        for stage in range(1, len(tasks)):
            mean, deviation = spread([metrics.interference(stage) for metrics in group.metrics])
            label = f"{short(tasks[stage])} after {', '.join(map(short, tasks[:stage]))}"
            bar = Bar(label, tasks[stage], mean, mean - deviation, mean + deviation, len(group.metrics))
            bars = charts.setdefault(group.condition, [])
            if bar not in bars:  # orders that begin alike share their first phases
                bars.append(bar)
    return [Chart(condition, tuple(sorted(bars, key=lambda bar: bar.label))) for condition, bars in charts.items()]
