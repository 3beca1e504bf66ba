"""Entries that differ only in their seed, side by side; several seeds → interquartile mean and bootstrap band."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evergait.core.arrays import Float64
from evergait.scores.metrics import Metrics
from evergait.studies.results import Entry, Results

N_RESAMPLES = 500
"""Enough for the edge of a 95 % band as wide as a pixel."""


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
    def is_done(self) -> bool:
        """Whether every phase of the stream is finished."""
        return self.entries[0].run.is_done

    @cached_property
    def learning(self) -> tuple[tuple[str, ...], ...]:
        """What each stage learns."""
        return tuple(ledger.learning for ledger in self.metrics[0].ledgers)

    @property
    def tasks(self) -> tuple[str, ...]:
        """What is evaluated."""
        return self.metrics[0].ledgers[0].tasks

    def over_seeds(self, measure: Callable[[Metrics], Float64]) -> "Band":
        """A measure of one seed, any shape, over all seeds."""
        return band(np.stack([np.asarray(measure(metrics), np.float64) for metrics in self.metrics]))


def group_entries(results: Results) -> list[Group]:
    """All groups in the order of the study; single-task baselines come last."""
    together: dict[tuple[str, str], list[Entry]] = {}
    for entry in results.entries:
        together.setdefault((entry.condition, entry.order), []).append(entry)
    groups = []
    for (condition, order), entries in together.items():
        entries.sort(key=lambda entry: entry.seed)
        shapes = [[ledger.axis for ledger in entry.run.ledgers] for entry in entries]
        furthest = max(shapes, key=lambda shape: (len(shape), shapes.count(shape)))
        alike = tuple(entry for entry, shape in zip(entries, shapes, strict=True) if shape == furthest)
        metrics = tuple(results.metrics(entry) for entry in alike)
        groups.append(Group(condition, order, alike, metrics, len(entries) - len(alike)))
    return sorted(groups, key=lambda group: group.condition == "single")


def without_unfinished(groups: Sequence[Group]) -> list[Group]:
    """Leave out streams that are not trained to their end, where a condition has others that are."""
    done = {group.condition for group in groups if group.is_done}
    return [group for group in groups if group.is_done or group.condition not in done]


@dataclass(frozen=True)
class Band:
    """Interquartile mean over seeds with its 95 % bootstrap interval; with one seed all three are the same."""

    middle: Float64
    low: Float64
    high: Float64
    n_seeds: int


def band(values: Float64, confidence: float = 0.95) -> Band:
    """(n_seeds, ...) → band (...); seeds are drawn with replacement, the same draws for every point.

    >>> band(np.array([[1.0], [2.0], [3.0], [100.0]])).middle
    array([2.5])
    """
    n_seeds = len(values)
    middle = _trimmed(values[None])[0]
    if n_seeds == 1:
        return Band(middle, middle, middle, 1)
    generator = np.random.Generator(np.random.Philox(0))
    rows = generator.integers(n_seeds, size=(N_RESAMPLES, n_seeds))
    tail = (1 - confidence) / 2
    low, high = np.quantile(_trimmed(values[rows]), [tail, 1 - tail], axis=0)
    return Band(middle, low, high, n_seeds)


def _trimmed(values: Float64) -> Float64:
    """(n, n_seeds, ...) → (n, ...): `stats.interquartile_mean` of many samples of whole curves at once."""
    n_seeds = values.shape[1]
    edges = np.arange(n_seeds + 1)
    weights = np.clip(np.minimum(edges[1:], 0.75 * n_seeds) - np.maximum(edges[:-1], 0.25 * n_seeds), 0, None)
    mean: Float64 = np.einsum("s,ns...->n...", weights / weights.sum(), np.sort(values, axis=1))
    return mean


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation, as the paper's error bars over orders."""
    return float(np.mean(values)), float(np.std(values))
