"""What the page's charts and tables show, as plain data: nothing is computed here but ranges of axes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evergait.analysis.groups import Band
from evergait.analysis.ranking import Standing
from evergait.analysis.study import Analysis
from evergait.analysis.transfer import Chart, Panel
from evergait.core.arrays import Float64
from evergait.core.table import Table, Value, number
from evergait.paper.claims import Claim, study_claims
from evergait.paper.study import all_tables


def domain(values: Sequence[float], low: float, high: float) -> tuple[float, float]:
    """The range of an axis that shows all values and at least low to high, with room for markers."""
    low, high = min([low, *values]), max([high, *values])
    margin = 0.03 * (high - low) or 1.0
    return low - margin, high + margin


def ticks(bounds: tuple[float, float], wanted: int = 5) -> list[float]:
    """Round numbers within a range, about so many.

    >>> ticks((-0.03, 1.03))
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    raw = (bounds[1] - bounds[0]) / wanted
    power = 10 ** math.floor(math.log10(raw))
    step = min(s for m in (1, 2, 2.5, 5, 10) if (s := m * power) >= raw * 0.999)
    first, last = math.ceil(bounds[0] / step - 1e-9), math.floor(bounds[1] / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def tick_label(value: float) -> str:
    """A tick as short as it can be.

    >>> tick_label(-0.5)
    '−0.5'
    """
    return f"{value:g}".replace("-", "−")


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
    """Task → range of its rows: the same for all tasks if values are scores, else each task's own returns.

    Where a value is not defined there is nothing to show.
    """
    found: dict[str, list[float]] = {task: [] for task in tasks}
    for standing in ranked:
        for row in standing.rows:
            shown = [value for point in row.points for value in (point.before, point.learnt, point.end)]
            found[row.task] += [value for value in shown if np.isfinite(value)]
    if not ranked or ranked[0].is_share:
        everything = [min(max(v, -CAP), CAP) for values in found.values() for v in values]
        return dict.fromkeys(found, domain(everything, 0.0, 1.0))
    return {task: domain(values, min(values, default=0.0), max(values, default=1.0)) for task, values in found.items()}


def bar_domain(charts: Sequence[Chart], is_share: bool) -> tuple[float, float]:
    """The range of bars, whiskers included, the same for all conditions."""
    values = [
        value
        for chart in charts
        for bar in chart.bars
        for value in (bar.value, *bar.points, *(bar.values.interval or ()))
    ]
    return domain([min(max(value, -CAP), CAP) for value in values] if is_share else values, -0.1, 0.1)


@dataclass(frozen=True)
class Verdict:
    """One of the paper's claims, as measured."""

    kind: str
    """holds, fails, or open."""
    verdict: str
    sentence: str
    detail: str


def claims_of(analysis: Analysis) -> list[Verdict]:
    """The paper's claims that this study can speak to."""
    found = []
    for claim in study_claims(analysis):
        if claim.is_measured:
            kind = {"holds": "holds", "does not hold": "fails"}.get(claim.verdict, "open")
            found.append(Verdict(kind, claim.verdict, claim.sentence, _detail(claim)))
    return found


def _detail(claim: Claim) -> str:
    between = f" [{number(claim.interval[0])}, {number(claim.interval[1])}]" if claim.interval else ""
    seeds = "one seed" if claim.n_seeds == 1 else f"{claim.n_seeds} seeds"
    least = f"; {number(claim.detectable)} would be found in 9 of 10 studies" if claim.detectable is not None else ""
    return f"{claim.statistic}: {number(claim.estimate or 0.0)}{between}, {seeds}{least}"


@dataclass(frozen=True)
class TextTable:
    """Rows of text under columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables_of(analysis: Analysis) -> list[TextTable]:
    """All tables of a study, without columns that have no value; the claims have a section of their own."""
    found = []
    for table in all_tables(analysis):
        if table.name == "claims":
            continue
        kept = [i for i in range(len(table.columns)) if any(row[i] is not None for row in table.rows)]
        rows = tuple(tuple(_text(table, row[i]) for i in kept) for row in table.rows)
        found.append(TextTable(table.caption, tuple(table.columns[i] for i in kept), rows))
    return found


def _text(table: Table, value: Value) -> str:
    text = table.text(value)
    return text.replace("-", "−") if isinstance(value, float) else text
