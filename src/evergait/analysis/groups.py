"""Entries that differ only in their seed, and measures over seeds and orders: one number with its interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evergait.core.arrays import Float64
from evergait.scores import stats
from evergait.scores.metrics import Metrics
from evergait.studies.results import Entry

Measure = Callable[[Metrics], float]


@dataclass(frozen=True)
class Values:
    """A measure of one condition: (n_seeds, n_orders). Seeds are independent; a seed's orders are not."""

    seeds: tuple[int, ...]
    orders: tuple[str, ...]
    values: Float64

    @property
    def by_seed(self) -> Float64:
        """(n_seeds,) each seed's mean over orders."""
        means: Float64 = self.values.mean(axis=1) if self.values.size else np.zeros(0)
        return means

    @property
    def estimate(self) -> float:
        """Mean over all; NaN where there is nothing."""
        return float(self.values.mean()) if self.values.size else float("nan")

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 %, by Student's t over seeds; none from fewer than three of them."""
        ends = stats.interval(self.by_seed)
        return (float(ends[0]), float(ends[1])) if ends and np.isfinite(ends[0]) else None

    @property
    def detectable(self) -> float | None:
        """The smallest effect that these seeds would find in 9 of 10 studies."""
        return stats.detectable(self.by_seed)

    def __sub__(self, other: "Values") -> "Values":
        """Paired: the difference on the seeds and orders that both have."""
        seeds = tuple(seed for seed in self.seeds if seed in other.seeds)
        orders = tuple(order for order in self.orders if order in other.orders)
        return Values(seeds, orders, self.at(seeds, orders) - other.at(seeds, orders))

    def rests_on(self, seed: int, order: str) -> bool:
        """Whether that run is among them."""
        return seed in self.seeds and order in self.orders

    def at(self, seeds: Sequence[int], orders: Sequence[str]) -> Float64:
        """(n_seeds, n_orders) of some seeds and orders."""
        rows, columns = [self.seeds.index(s) for s in seeds], [self.orders.index(o) for o in orders]
        return self.values[np.ix_(rows, columns)]


def table_of(found: dict[tuple[int, str], float]) -> Values:
    """(seed, order) → value, as a table without gaps: a seed that lacks orders which another one has is left out."""
    orders = tuple(dict.fromkeys(order for _, order in found))
    seeds = sorted({seed for seed, _ in found})
    whole = tuple(seed for seed in seeds if all((seed, order) in found for order in orders))
    if not whole and seeds:  # no seed has them all: what the first one has must do
        orders = tuple(order for order in orders if (seeds[0], order) in found)
        whole = tuple(seed for seed in seeds if all((seed, order) in found for order in orders))
    values = [[found[seed, order] for order in orders] for seed in whole]
    return Values(whole, orders, np.array(values, np.float64).reshape(len(whole), len(orders)))


@dataclass(frozen=True)
class Band:
    """Mean over seeds, any shape, with its 95 % interval where there are seeds enough."""

    mean: Float64
    low: Float64 | None
    high: Float64 | None


def band(values: Float64) -> Band:
    """(n_seeds, ...) → band (...).

    >>> band(np.array([[1.0], [2.0]]))
    Band(mean=array([1.5]), low=None, high=None)
    """
    ends = stats.interval(values)
    return Band(values.mean(axis=0), *(ends or (None, None)))


@dataclass(frozen=True)
class Group:
    """The seeds of one condition on one order that have come equally far."""

    condition: str
    order: str
    entries: tuple[Entry, ...]
    metrics: tuple[Metrics, ...]
    n_seeds_left_out: int = 0
    """Seeds that have fewer finished phases, or other evaluations, than these."""

    @property
    def n_stages(self) -> int:
        """Phases finished."""
        return self.metrics[0].n_stages

    @property
    def is_baseline(self) -> bool:
        """Whether one task was learnt alone, for others to be measured by."""
        return self.entries[0].is_baseline

    @property
    def is_done(self) -> bool:
        """Whether every phase of the stream is finished."""
        return self.entries[0].run.is_done

    @cached_property
    def learning(self) -> tuple[tuple[str, ...], ...]:
        """What each stage learns."""
        return tuple(ledger.learning for ledger in self.metrics[0].ledgers)

    @property
    def is_stream(self) -> bool:
        """Whether tasks were learnt one after the other."""
        return all(len(learning) == 1 for learning in self.learning)

    @property
    def tasks(self) -> tuple[str, ...]:
        """What is evaluated."""
        return self.metrics[0].ledgers[0].tasks

    def over_seeds(self, measure: Callable[[Metrics], Float64]) -> Band:
        """A measure of one seed, any shape, over all seeds."""
        return band(np.stack([np.asarray(measure(metrics), np.float64) for metrics in self.metrics]))


def group_entries(entries: Sequence[Entry], metrics: Callable[[Entry], Metrics]) -> list[Group]:
    """All groups in the order of the study; single-task baselines come last."""
    together: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        together.setdefault((entry.condition, entry.order), []).append(entry)
    groups = []
    for (condition, order), found in together.items():
        found.sort(key=lambda entry: entry.seed)
        shapes = [[ledger.axis for ledger in entry.run.ledgers] for entry in found]
        furthest = max(shapes, key=lambda shape: (len(shape), shapes.count(shape)))
        alike = tuple(entry for entry, shape in zip(found, shapes, strict=True) if shape == furthest)
        groups.append(Group(condition, order, alike, tuple(map(metrics, alike)), len(found) - len(alike)))
    return sorted(groups, key=lambda group: group.is_baseline)


def without_unfinished(groups: Sequence[Group]) -> list[Group]:
    """Leave out streams that are not trained to their end, unless there is no other: they would be empty panels."""
    any_done = any(group.is_done for group in groups if not group.is_baseline)
    return [group for group in groups if group.is_done or not any_done]
