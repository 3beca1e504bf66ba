"""A measure over the seeds and orders of a condition, and one number with an interval for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evergait.core.arrays import Float64
from evergait.scores import stats
from evergait.scores.metrics import Metrics

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
