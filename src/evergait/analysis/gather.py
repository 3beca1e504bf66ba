"""A measure over the seeds and orders of a condition, and one number with an interval for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evergait.core.arrays import Float64
from evergait.scores.metrics import Metrics
from evergait.scores.stats import bootstrap_interval, interquartile_mean
from evergait.studies.results import Entry, Results

Measure = Callable[[Metrics], float]


@dataclass(frozen=True)
class Values:
    """A measure of one condition: (n_seeds, n_orders)."""

    seeds: tuple[int, ...]
    orders: tuple[str, ...]
    values: Float64

    @property
    def estimate(self) -> float:
        """Interquartile mean over all; NaN where there is nothing."""
        return interquartile_mean(self.values) if self.values.size else float("nan")

    @property
    def interval(self) -> tuple[float, float] | None:
        """Stratified bootstrap, 95 %; none from a single seed."""
        return bootstrap_interval(self.values) if len(self.seeds) > 1 and self.values.size else None

    def __sub__(self, other: "Values") -> "Values":
        """Paired: the difference on the seeds and orders that both have."""
        seeds = tuple(seed for seed in self.seeds if seed in other.seeds)
        orders = tuple(order for order in self.orders if order in other.orders)
        return Values(seeds, orders, self.at(seeds, orders) - other.at(seeds, orders))

    def at(self, seeds: Sequence[int], orders: Sequence[str]) -> Float64:
        """(n_seeds, n_orders) of some seeds and orders."""
        rows, columns = [self.seeds.index(s) for s in seeds], [self.orders.index(o) for o in orders]
        return self.values[np.ix_(rows, columns)]


def finished(results: Results, condition: str) -> list[Entry]:
    """The entries of a condition whose streams are trained to the end."""
    return [entry for entry in results.entries if entry.condition == condition and entry.run.is_done]


def gather(results: Results, condition: str, measure: Measure, orders: Sequence[str] = ()) -> Values:
    """A measure of every finished run; a seed that lacks orders which the first seed has is left out."""
    entries = [entry for entry in finished(results, condition) if not orders or entry.order in orders]
    found = {(entry.seed, entry.order): entry for entry in entries}
    seeds = sorted({seed for seed, _ in found})
    columns = tuple(dict.fromkeys(order for seed, order in found if seed == seeds[0]))
    rows = tuple(seed for seed in seeds if all((seed, order) in found for order in columns))
    values = [[measure(results.metrics(found[seed, order])) for order in columns] for seed in rows]
    return Values(rows, columns, np.array(values, np.float64).reshape(len(rows), len(columns)))


def later_interference(metrics: Metrics) -> float:
    """Int averaged over the second and later positions; at the first there is nothing to interfere."""
    return float(np.mean([metrics.interference(stage) for stage in range(1, metrics.n_stages)]))
