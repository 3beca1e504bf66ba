"""Curves over a stream: score, return, backward and forward transfer of every task, over seeds."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evergait.analysis.groups import Band, Group
from evergait.core.arrays import Float64
from evergait.core.names import short
from evergait.scores.metrics import Metrics

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
            band = group.over_seeds(lambda metrics, task=task, name=name: series(metrics, task, name))  # type: ignore[misc]
            if not np.isnan(band.mean).all():
                lines[name][task] = band
    return Panel(group.condition, group.order, len(group.entries), np.array(x), ledgers[0].axis_label, stretches, lines)


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
