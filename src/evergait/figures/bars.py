"""Bars: pairwise transfer, interference per replay budget, and replay against distinct heads."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from evergait.analysis.gather import finished
from evergait.analysis.roles import find_roles
from evergait.analysis.tables import budget_orders, by_order
from evergait.core.names import short
from evergait.figures.style import Picture, condition_colours, legend_below, panels, say_nothing
from evergait.scores.metrics import Metrics
from evergait.scores.stats import bootstrap_interval, interquartile_mean
from evergait.studies.results import Entry, Results

Pair = tuple[str, str]


def pairwise(results: Results, condition: str, kind: str) -> dict[Pair, tuple[float, float]]:
    """(A, B) → mean and standard deviation over the orders in which A comes before B, seeds averaged first.

    `backward` is BWT(A ← B) at the end of B's stage; `forward` is FWT(A → B) at the end of A's stage.
    """
    by_pair: dict[Pair, dict[str, list[float]]] = {}
    for entry in finished(results, condition):
        metrics = results.metrics(entry)
        for a in range(metrics.n_stages):
            for b in range(a + 1, metrics.n_stages):
                if metrics.task(a) != metrics.task(b):
                    value = metrics.backward_transfer(a, b) if kind == "backward" else metrics.forward_transfer(b, a)
                    orders = by_pair.setdefault((metrics.task(a), metrics.task(b)), {})
                    orders.setdefault(entry.order, []).append(value)
    means = {pair: [float(np.mean(seeds)) for seeds in orders.values()] for pair, orders in by_pair.items()}
    return {pair: (float(np.mean(values)), float(np.std(values))) for pair, values in sorted(means.items())}


def pairwise_figure(results: Results, kind: str) -> Picture:
    """Backward or forward transfer between every two tasks, for every condition with a stream."""
    arrow, label = ("←", "BWT") if kind == "backward" else ("→", "FWT")
    measured = {name: pairs for name in results.conditions if (pairs := pairwise(results, name, kind))}
    every = sorted({pair for pairs in measured.values() for pair in pairs})
    figure, axes = panels(1, 1, width=max(4.5, 1.5 * len(every)), height=2.6)
    if not measured:
        say_nothing(axes[0], "No stream of two or more tasks is finished yet.")
    else:
        bars = {
            name: [(*pairs[pair], pairs[pair][1]) if pair in pairs else None for pair in every]
            for name, pairs in measured.items()
        }
        grouped_bars(axes[0], [f"{short(a)}{arrow}{short(b)}" for a, b in every], bars, results.conditions)
        axes[0].set_ylabel(label)
        legend_below(figure, axes[0])
    caption = f"Pairwise {label}: mean over the orders in which the first task comes before the second, ± their spread"
    return Picture(f"pairwise-{label.lower()}", caption, figure)


def grouped_bars(
    axes: Axes,
    labels: Sequence[str],
    bars: Mapping[str, Sequence[tuple[float, float, float] | None]],
    conditions: Sequence[str],
) -> None:
    """Bars (height, error below, error above) side by side for each label; a missing one leaves its place empty."""
    colours, width = condition_colours(conditions), 0.8 / len(bars)
    for i, (name, values) in enumerate(bars.items()):
        present = [(j, value) for j, value in enumerate(values) if value is not None]
        places = [j + (i - (len(bars) - 1) / 2) * width for j, _ in present]
        heights = [value[0] for _, value in present]
        errors = np.array([value[1:] for _, value in present]).reshape(-1, 2).T
        axes.bar(places, heights, width * 0.92, yerr=errors, color=colours[name], label=name, error_kw={"lw": 0.8})
    axes.axhline(0, color="0.3", linewidth=0.8)
    axes.set_xticks(range(len(labels)), labels)
    axes.grid(visible=False, axis="x")


def over_seeds(entries: Sequence[Entry], results: Results, measure: Callable[[Metrics], float]) -> tuple[float, ...]:
    """Interquartile mean with the lengths of its interval below and above."""
    values = np.array([measure(results.metrics(entry)) for entry in entries])
    middle = interquartile_mean(values)
    low, high = bootstrap_interval(values) if len(values) > 1 else (middle, middle)
    return middle, max(middle - low, 0.0), max(high - middle, 0.0)


def _interference(results: Results, condition: str, order: str, stage: int) -> tuple[float, float, float] | None:
    entries = [e for e in by_order(results, condition).get(order, []) if len(e.run.ledgers) > stage]
    if not entries:
        return None
    middle, below, above = over_seeds(entries, results, lambda metrics: metrics.interference(stage))
    return middle, below, above


def budget_interference_figure(results: Results) -> Picture:
    """Interference at every position, from no replay to the largest budget, on one order."""
    roles, orders = find_roles(results), budget_orders(results)
    naive = [name for name in roles.naive[:1] if orders and orders[0] in by_order(results, name)]
    shown = [*naive, *roles.replay] if orders else []
    figure, axes = panels(1, 1, width=4.5, height=2.6)
    if len(shown) < 2:
        say_nothing(axes[0], "This study has no two replay budgets on one order.")
        return Picture("interference-budgets", "Interference per replay budget", figure)
    tasks = orders[0].split(" > ")
    bars = {name: [_interference(results, name, orders[0], i) for i in range(len(tasks))] for name in shown}
    grouped_bars(axes[0], [f"{task} (position {i + 1})" for i, task in enumerate(tasks)], bars, results.conditions)
    axes[0].set_ylabel("Int")
    legend_below(figure, axes[0])
    return Picture("interference-budgets", f"Interference at acquisition per replay budget on {orders[0]}", figure)


def heads_interference_figure(results: Results) -> Picture:
    """Interference of replay with a shared head against distinct heads, at the second and third position."""
    roles = find_roles(results)
    shown = [name for name in (roles.middle_replay, *roles.distinct[:1]) if name]
    orders = [o for o in by_order(results, shown[0]) if o in by_order(results, shown[-1])] if len(shown) == 2 else []
    figure, axes = panels(2, 1, width=max(5.0, 1.6 * len(orders)), height=2.2)
    caption = "Interference at acquisition of the second (top) and third task (bottom)"
    for panel, stage in zip(axes, (1, 2), strict=True):
        bars = {name: [_interference(results, name, order, stage) for order in orders] for name in shown}
        if not orders or not any(value for values in bars.values() for value in values):
            say_nothing(panel, f"Nothing to compare at position {stage + 1}: it takes replay and distinct heads.")
            continue
        labels = [order.replace(" > ", "\n> ") for order in orders]
        grouped_bars(panel, labels, bars, results.conditions)
        panel.set_ylabel(f"Int at position {stage + 1}")
    legend_below(figure, axes[0])
    return Picture("interference-heads", caption, figure)
