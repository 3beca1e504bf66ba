"""What the page's charts show, as plain data: nothing is computed here but ranges of axes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from evergait.analysis.curves import Panel
from evergait.analysis.groups import Band
from evergait.analysis.ranking import Standing
from evergait.analysis.transfer import Chart
from evergait.core.arrays import Float64
from evergait.report.axes import domain

CAP = 2.0
"""A score beyond this is drawn at the edge, with its number: one lucky task must not squeeze all the others."""


def panel_data(panel: Panel, colours: Mapping[str, int]) -> dict[str, Any]:
    """One chart of curves."""
    return {
        "condition": panel.condition,
        "order": panel.order,
        "seeds": panel.n_seeds,
        "x": [round(float(x), 6) for x in panel.x],
        "unit": panel.unit,
        "stages": [
            {"from": s.start, "to": s.end, "label": s.label, "tasks": [colours[task] for task in s.learning]}
            for s in panel.stretches
        ],
        "lines": {
            measure: [{"task": colours[task], **_band(band)} for task, band in lines.items()]
            for measure, lines in panel.lines.items()
        },
    }


def _band(band: Band) -> dict[str, Any]:
    data: dict[str, Any] = {"y": plain(band.mean)}
    if band.low is not None and band.high is not None:
        data |= {"low": plain(band.low), "high": plain(band.high)}
    return data


def plain(values: Float64) -> list[float | None]:
    """Numbers for JSON, five digits; NaN, which JSON lacks, as null.

    >>> plain(np.array([0.123456, -1392.34567, np.nan]))
    [0.12346, -1392.3, None]
    """
    return [None if np.isnan(value) else float(f"{value:.5g}") for value in values]


def row_domains(ranked: Sequence[Standing], tasks: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Task → range of its rows: the same for all tasks if values are scores, else each task's own returns."""
    found: dict[str, list[float]] = {task: [] for task in tasks}
    for standing in ranked:
        for row in standing.rows:
            found[row.task] += [value for point in row.points for value in (point.before, point.learnt, point.end)]
    if not ranked or ranked[0].is_share:
        everything = [min(max(v, -CAP), CAP) for values in found.values() for v in values if np.isfinite(v)]
        return dict.fromkeys(found, domain(everything, 0.0, 1.0))
    return {task: domain(values, min(values), max(values)) for task, values in found.items() if values}


def bar_domain(charts: Sequence[Chart], is_share: bool) -> tuple[float, float]:
    """The range of bars, whiskers included, the same for all conditions."""
    values = [
        value
        for chart in charts
        for bar in chart.bars
        for value in (bar.value, *bar.points, *(bar.values.interval or ()))
    ]
    return domain([min(max(value, -CAP), CAP) for value in values] if is_share else values, -0.1, 0.1)
