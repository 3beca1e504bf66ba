"""Bars: pairwise transfer, and the paper's interference per replay budget and by heads."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from evergait.analysis.gather import Values
from evergait.analysis.study import Analysis
from evergait.analysis.transfer import pairwise
from evergait.figures.style import Picture, condition_colours, legend_below, panels
from evergait.paper.charts import budget_interference, heads_interference


def pairwise_figure(analysis: Analysis, kind: str) -> list[Picture]:
    """Backward or forward transfer between every two tasks, for every condition with a stream."""
    label = "BWT" if kind == "backward" else "FWT"
    charts = pairwise(analysis.streams, kind)
    if not charts:
        return []
    every = sorted({bar.label for chart in charts for bar in chart.bars})
    by_label = {chart.condition: {bar.label: bar.values for bar in chart.bars} for chart in charts}
    figure, axes = panels(1, 1, width=max(4.5, 1.5 * len(every)), height=2.6)
    bars = {name: [found.get(label) for label in every] for name, found in by_label.items()}
    grouped_bars(axes[0], [label.replace(" ", "") for label in every], bars, analysis.results.conditions)
    axes[0].set_ylabel(label)
    legend_below(figure, axes[0])
    caption = f"Pairwise {label}: mean over the orders in which the first task comes before the second; whiskers: 95 %"
    return [Picture(f"pairwise-{label.lower()}", caption, figure)]


def grouped_bars(
    axes: Axes, labels: Sequence[str], bars: Mapping[str, Sequence[Values | None]], conditions: Sequence[str]
) -> None:
    """Bars with their intervals side by side for each label; a missing one leaves its place empty."""
    colours, width = condition_colours(conditions), 0.8 / len(bars)
    for i, (name, values) in enumerate(bars.items()):
        present = [(j, value) for j, value in enumerate(values) if value is not None and value.values.size]
        places = [j + (i - (len(bars) - 1) / 2) * width for j, _ in present]
        heights = [value.estimate for _, value in present]
        axes.bar(places, heights, width * 0.92, color=colours[name], label=name)
        for place, (_, value) in zip(places, present, strict=True):
            if value.interval:
                axes.vlines(place, *value.interval, color="0.2", linewidth=0.8)
            elif len(value.orders) > 1:
                points = value.values.mean(axis=0)
                axes.plot(np.full(len(points), place), points, ".", color="0.2", markersize=2)
    axes.axhline(0, color="0.3", linewidth=0.8)
    axes.set_xticks(range(len(labels)), labels)
    axes.grid(visible=False, axis="x")


def budget_interference_figure(analysis: Analysis) -> list[Picture]:
    """Interference at every position, from no replay to the largest budget, on one order."""
    order, labels, bars = budget_interference(analysis)
    if not bars:
        return []
    figure, axes = panels(1, 1, width=4.5, height=2.6)
    grouped_bars(axes[0], labels, bars, analysis.results.conditions)
    axes[0].set_ylabel("Int")
    legend_below(figure, axes[0])
    return [Picture("interference-budgets", f"Interference at acquisition per replay budget on {order}", figure)]


def heads_interference_figure(analysis: Analysis) -> list[Picture]:
    """Interference of replay with a shared head against distinct heads, at the second and third position."""
    found = {stage: heads_interference(analysis, stage) for stage in (1, 2)}
    found = {stage: (orders, bars) for stage, (orders, bars) in found.items() if bars}
    if not found:
        return []
    figure, axes = panels(len(found), 1, width=max(5.0, 1.6 * len(found[1][0])), height=2.2)
    for at, (stage, (orders, bars)) in zip(axes, found.items(), strict=True):
        grouped_bars(at, [order.replace(" > ", "\n> ") for order in orders], bars, analysis.results.conditions)
        at.set_ylabel(f"Int at position {stage + 1}")
    legend_below(figure, axes[0])
    caption = "Interference at acquisition of the second (top) and third task (bottom)"
    return [Picture("interference-heads", caption, figure)]
