"""Normalised curves with dashed task switches, and backward and forward transfer over time."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes

from evergait.analysis.roles import find_roles
from evergait.analysis.tables import budget_orders, by_order
from evergait.core.arrays import Float64
from evergait.core.names import short
from evergait.core.table import file_name
from evergait.figures.style import Picture, legend_below, panels, say_nothing, task_colours
from evergait.scores.metrics import Metrics
from evergait.scores.stats import bootstrap_interval, interquartile_mean
from evergait.studies.results import Entry, Results

Curve = Callable[[Metrics, str, int], Float64 | None]
"""(metrics, task, stage) → a value per evaluation of the stage, or none where it is not defined."""


def normalised(metrics: Metrics, task: str, stage: int) -> Float64 | None:
    """R̂."""
    return metrics.curve(task, stage)


def backward(metrics: Metrics, task: str, stage: int) -> Float64 | None:
    """BWT of a task, after the stage that learnt it."""
    learnt = [i for i in range(stage) if metrics.task(i) == task]
    return metrics.backward_transfer_curve(learnt[-1], stage) if learnt else None


def forward(metrics: Metrics, task: str, stage: int) -> Float64 | None:
    """FWT to a task, before the stage that learns it for the first time."""
    learnt = [i for i in range(metrics.n_stages) if metrics.task(i) == task]
    return metrics.forward_transfer_curve(learnt[0], stage) if learnt and stage < learnt[0] else None


def draw_curves(axes: Axes, results: Results, entries: Sequence[Entry], what: Curve = normalised) -> None:
    """One panel: every task over all generations, over seeds as interquartile mean with a 95 % band."""
    all_metrics = [results.metrics(entry) for entry in entries]
    n_stages = min(metrics.n_stages for metrics in all_metrics)
    tasks = dict.fromkeys(task for ledger in all_metrics[0].ledgers for task in ledger.learning)
    colours = task_colours(all_metrics[0].ledgers[0].tasks)
    start = 0.0
    for stage in range(n_stages):
        x = np.array(all_metrics[0].ledgers[stage].axis) + start
        for task in tasks:
            curves = [curve for m in all_metrics if (curve := what(m, task, stage)) is not None]
            if curves:
                draw_band(axes, x, np.array(curves), colours[task])
        start = float(x[-1])
        if stage < n_stages - 1:
            axes.axvline(start, color="0.4", linestyle="--", linewidth=0.8)
    axes.set_xlim(0, start)
    axes.set_xlabel(all_metrics[0].ledgers[0].axis_label)
    for task in tasks:
        axes.plot([], [], color=colours[task], label=short(task))


def draw_band(axes: Axes, x: Float64, curves: Float64, colour: str) -> None:
    """(n_seeds, n) curves as their interquartile mean and, of several seeds, its interval."""
    middle = [interquartile_mean(column) for column in curves.T]
    axes.plot(x, middle, color=colour, linewidth=1.2)
    if len(curves) > 1:
        intervals = np.array([bootstrap_interval(column, n_resamples=200) for column in curves.T])
        axes.fill_between(x, intervals[:, 0], intervals[:, 1], color=colour, alpha=0.2, linewidth=0)


def condition_figure(results: Results, condition: str, what: Curve, name: str, label: str) -> Picture:
    """All orders of a condition, a panel each."""
    orders = by_order(results, condition)
    n_columns = min(len(orders), 2)
    figure, axes = panels(-(-len(orders) // n_columns), n_columns, height=2.0 if len(orders) > 1 else 2.8)
    for i, (order, entries) in enumerate(orders.items()):
        draw_curves(axes[i], results, entries, what)
        axes[i].set_title(order)
        axes[i].axhline(0, color="0.7", linewidth=0.6)
        axes[i].set_ylabel(label)
    for empty in axes[len(orders) :]:
        empty.set_axis_off()
    legend_below(figure, axes[0])
    caption = f"{label} of {condition}; dashed lines are task switches"
    return Picture(f"{name}-{file_name(condition)}", caption, figure)


def curve_figures(results: Results) -> list[Picture]:
    """Curves, BWT and FWT over time for every condition."""
    roles = find_roles(results)
    pictures = []
    for condition in results.conditions:
        pictures.append(condition_figure(results, condition, normalised, "curves", "normalised return R̂"))
        entries = [entry for entry in results.entries if entry.condition == condition]
        if condition not in roles.multitask and max(len(entry.run.ledgers) for entry in entries) > 1:
            pictures.append(condition_figure(results, condition, backward, "bwt", "BWT"))
            pictures.append(condition_figure(results, condition, forward, "fwt", "FWT"))
    return pictures


def budgets_figure(results: Results) -> Picture:
    """Replay budgets side by side on one order."""
    roles, orders = find_roles(results), budget_orders(results)
    shown = roles.replay if orders and len(roles.replay) > 1 else ()
    figure, axes = panels(1, max(len(shown), 1))
    if not shown:
        say_nothing(axes[0], "This study has no two replay budgets on one order.")
    for panel, condition in zip(axes, shown, strict=False):
        draw_curves(panel, results, by_order(results, condition)[orders[0]])
        panel.set_title(condition)
        panel.set_ylabel("normalised return R̂")
    legend_below(figure, axes[0])
    return Picture("budgets", f"Replay budgets on {orders[0]}" if orders else "Replay budgets", figure)


def baselines_figure(results: Results) -> Picture:
    """Single-task training of every task."""
    tasks = sorted({task for ledgers in results.baselines.values() for task in ledgers})
    figure, axes = panels(1, max(len(tasks), 1), width=2.6)
    if not tasks:
        say_nothing(axes[0], "No single-task baseline is finished yet.")
    colours = task_colours(tasks)
    for panel, task in zip(axes, tasks, strict=False):
        ledgers = [found[task] for found in results.baselines.values() if task in found]
        draw_band(
            panel,
            np.array(ledgers[0].axis, np.float64),
            np.array([ledger.curve(task) for ledger in ledgers]),
            colours[task],
        )
        panel.set_title(short(task))
        panel.set_xlabel(ledgers[0].axis_label)
        panel.set_ylabel("return")
    return Picture("baselines", "Single-task training; the best evaluation is the normaliser R*", figure)
