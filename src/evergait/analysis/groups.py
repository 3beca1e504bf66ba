"""Entries that differ only in their seed, side by side; several seeds → their mean with its interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evergait.core.arrays import Float64
from evergait.scores import stats
from evergait.scores.metrics import Metrics
from evergait.studies.results import Entry


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
    return sorted(groups, key=lambda group: group.condition == "single")


def without_unfinished(groups: Sequence[Group]) -> list[Group]:
    """Leave out streams that are not trained to their end, unless there is no other: they would be empty panels."""
    any_done = any(group.is_done for group in groups if group.condition != "single")
    return [group for group in groups if group.is_done or not any_done]
