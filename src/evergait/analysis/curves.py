"""Curves over a stream's generations: R̂, BWT and FWT of every task, over seeds, for the page's charts."""

from typing import Any

import numpy as np

from evergait.analysis.groups import Band, Group
from evergait.core.arrays import Float64
from evergait.core.names import short
from evergait.scores.metrics import Metrics

MEASURES = ("return", "backward", "forward")
"""Normalised return, backward transfer, forward transfer."""


def panel(group: Group, colours: dict[str, int]) -> dict[str, Any]:
    """One chart: x in generations or steps since the beginning, and per measure and task a line with its band."""
    ledgers = group.metrics[0].ledgers
    lengths = [ledger.axis[-1] for ledger in ledgers]
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1].tolist()
    x = [round(start + at, 6) for start, ledger in zip(starts, ledgers, strict=True) for at in ledger.axis]
    lines: dict[str, list[dict[str, Any]]] = {measure: [] for measure in MEASURES}
    for task in group.tasks:
        for measure in MEASURES:
            values = group.over_seeds(lambda metrics, task=task, measure=measure: series(metrics, task, measure))  # type: ignore[misc]
            if not np.isnan(values.middle).all():
                lines[measure].append({"task": colours[task], **_band_data(values)})
    return {
        "condition": group.condition,
        "order": group.order,
        "seeds": len(group.entries),
        "x": x,
        "unit": ledgers[0].axis_label,
        "stages": [
            {
                "from": start,
                "to": start + length,
                "label": " + ".join(map(short, learning)),
                "tasks": [colours[t] for t in learning],
            }
            for start, length, learning in zip(starts, lengths, group.learning, strict=True)
        ],
        "lines": lines,
    }


def series(metrics: Metrics, task: str, measure: str) -> Float64:
    """(n_records of all stages,) of one measure on one task; NaN where it is not defined."""
    stages = [stage for stage, ledger in enumerate(metrics.ledgers) if ledger.learning == (task,)]
    parts = []
    for stage, ledger in enumerate(metrics.ledgers):
        nothing = np.full(len(ledger.records), np.nan)
        before = [learnt for learnt in stages if learnt < stage]
        after = [future for future in stages if future > stage]
        if measure == "return":
            parts.append(metrics.curve(task, stage))
        elif measure == "backward":
            parts.append(
                metrics.backward_transfer_curve(before[-1], stage) if before and stage not in stages else nothing
            )
        else:
            fresh = after and not before and stage not in stages and metrics.ledgers[0].random_returns
            parts.append(metrics.forward_transfer_curve(after[0], stage) if fresh else nothing)
    return np.concatenate(parts)


def _band_data(values: Band) -> dict[str, Any]:
    data: dict[str, Any] = {"y": plain(values.middle)}
    if values.n_seeds > 1:
        data |= {"low": plain(values.low), "high": plain(values.high)}
    return data


def plain(values: Float64) -> list[float | None]:
    """Numbers for JSON, short; NaN, which JSON lacks, as null.

    >>> plain(np.array([0.123456, np.nan]))
    [0.1235, None]
    """
    return [None if np.isnan(value) else round(float(value), 4) for value in values]
