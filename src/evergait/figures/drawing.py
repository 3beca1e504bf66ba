"""The figures: curves, bars, the plane through single-task optima, and the paper's numbers among our seeds.

Colours are Okabe and Ito's, which colour-blind readers can tell apart, one per task wherever it appears.
"""

import io
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure

from evergait.analysis.groups import Band, Group, Values
from evergait.analysis.plane import plane_data
from evergait.analysis.study import Analysis
from evergait.analysis.transfer import Chart, Panel, pairwise, panel
from evergait.core.arrays import Float64
from evergait.core.table import file_name
from evergait.paper.numbers import Range, study_ranges
from evergait.paper.roles import budget_interference, heads_interference
from evergait.studies.results import Results
from evergait.tasks.base import short

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
KNOWN = {"Hopper-v5": 0, "Swimmer-v5": 1, "Walker2d-v5": 2, "HalfCheetah-v5": 3}
"""The paper's tasks have the same colour in every study."""

SETTINGS: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "pdf.fonttype": 42,
    "text.parse_math": False,  # names from users' files may have dollar signs
    "savefig.dpi": 150,
    "svg.hashsalt": "evergait",  # the same data, the same names within
}


def task_colours(tasks: Iterable[str]) -> dict[str, str]:
    """Task name → colour; other tasks take the colours that are left, in the order of their names."""
    tasks = sorted(set(tasks))
    taken = {KNOWN[task] for task in tasks if task in KNOWN}
    left = [i for i in range(len(OKABE_ITO)) if i not in taken] or [6]
    others = iter(range(len(tasks)))
    return {task: OKABE_ITO[KNOWN[task] if task in KNOWN else left[next(others) % len(left)]] for task in tasks}


LINES = ("-", "--", ":", "-.")
PER_INCH, LINE = 14, 0.16
"""Letters of small print on an inch, and the height of a line of it in inches."""
MOST_BARS = 12
"""More pairs of tasks than these are told by a matrix."""


def task_lines(tasks: Iterable[str]) -> dict[str, str]:
    """Task name → how its line is drawn: tasks that share a colour have other dashes."""
    found: dict[str, str] = {}
    colours = task_colours(tasks)
    for task, colour in colours.items():
        found[task] = LINES[sum(colours[other] == colour for other in found) % len(LINES)]
    return found


def condition_colours(conditions: Iterable[str]) -> dict[str, str]:
    """Condition → colour, in the order of the study; the tasks' colours come last."""
    ranked = (4, 5, 6, 3, 0, 1, 2, 7)
    return {name: OKABE_ITO[ranked[i % len(ranked)]] for i, name in enumerate(conditions)}


@dataclass(frozen=True)
class Picture:
    """A figure with its file name and caption."""

    name: str
    caption: str
    figure: Figure

    def files(self) -> Iterator[tuple[str, bytes]]:
        """PNG and PDF, without the time of writing, so that the same data give the same bytes."""
        FigureCanvasAgg(self.figure)
        yield f"{self.name}.png", self._drawn("png", {"Software": None})
        FigureCanvasPdf(self.figure)
        yield f"{self.name}.pdf", self._drawn("pdf", {"CreationDate": None})

    def svg(self) -> bytes:
        """For pages: a third of the PNG, and sharp at any size."""
        return self._drawn("svg", {"Date": None})

    def _drawn(self, ending: str, metadata: dict[str, None]) -> bytes:
        out = io.BytesIO()
        with mpl.rc_context(SETTINGS), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")  # a user's names may be in any script
            self.figure.savefig(out, format=ending, metadata=metadata)
        return out.getvalue()


def panels(n_rows: int, n_columns: int, width: float = 3.2, height: float = 2.0) -> tuple[Figure, list[Axes]]:
    """A grid of axes, row by row."""
    figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    return figure, list(axes.flat)


def legend_below(figure: Figure) -> None:
    """One legend for all panels, where it hides nothing; what several of them name is in it once."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if not found:
        return
    n_fit = int(PER_INCH * figure.get_figwidth() / (max(map(len, found)) + 8))  # 8 for a line and what is around it
    n_columns = max(1, min(len(found), n_fit, 4))
    n_more = max(0, -(-len(found) // n_columns) - 3)
    figure.set_figheight(figure.get_figheight() + LINE * n_more)  # or a long legend would take the panels' room
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=n_columns)


def draw_panel(axes: Axes, drawn: Panel, measure: str) -> None:
    """Every task that is learnt, over all phases, over seeds as mean with a 95 % band."""
    colours, lines = task_colours(drawn.tasks), task_lines(drawn.tasks)
    for task in dict.fromkeys(task for stretch in drawn.stretches for task in stretch.learning):
        if task in drawn.lines[measure]:
            draw_band(axes, drawn.x, drawn.lines[measure][task], colours[task], lines[task])
        axes.plot([], [], lines[task], color=colours[task], label=short(task))
    draw_switches(axes, drawn)


def draw_switches(axes: Axes, drawn: Panel) -> None:
    """Dashed lines where tasks change, and the axis of time."""
    for stretch in drawn.stretches[1:]:
        axes.axvline(stretch.start, color="0.4", linestyle="--", linewidth=0.8)
    axes.set_xlim(0, drawn.stretches[-1].end)
    axes.set_xlabel(drawn.unit)


def draw_band(axes: Axes, x: Float64, band: Band, colour: str, line: str = "-") -> None:
    """A mean and, of three seeds or more, its interval."""
    axes.plot(x, band.mean, line, color=colour, linewidth=1.2)
    if band.low is not None and band.high is not None:
        axes.fill_between(x, band.low, band.high, color=colour, alpha=0.2, linewidth=0)


def condition_figure(condition: str, drawn: Sequence[Panel], measure: str, name: str, label: str) -> Picture:
    """All orders of a condition, a panel each."""
    n_columns, n_phases = min(len(drawn), 2), max(len(one.stretches) for one in drawn)
    width = max(3.2, min(0.5 * n_phases, 8.0))
    titles = [textwrap.fill(one.order, int(PER_INCH * (width - 0.4)), break_on_hyphens=False) for one in drawn]
    height = (2.0 if len(drawn) > 1 else 2.8) + LINE * max(title.count("\n") for title in titles)
    figure, axes = panels(-(-len(drawn) // n_columns), n_columns, width, height)
    for one, at, title in zip(drawn, axes, titles, strict=False):
        draw_panel(at, one, measure)
        at.set_title(title)
        at.axhline(0, color="0.7", linewidth=0.6)
        at.set_ylabel(label)
    for empty in axes[len(drawn) :]:
        empty.set_axis_off()
    legend_below(figure)
    caption = f"{label} of {condition}; dashed lines are task switches"
    return Picture(f"{name}-{file_name(condition)}", caption, figure)


def curve_figures(analysis: Analysis) -> list[Picture]:
    """Curves, BWT and FWT over time for every condition, where there is something to draw."""
    name = analysis.scale.name
    kinds = {"curves": ("score" if analysis.scale.is_share else "return", name), "bwt": ("backward", "BWT")}
    kinds["fwt"] = ("forward", "FWT")
    pictures = []
    for condition in dict.fromkeys(group.condition for group in analysis.streams):
        drawn = [panel(group) for group in analysis.streams if group.condition == condition]
        for file, (measure, label) in kinds.items():
            if any(one.lines[measure] for one in drawn):
                pictures.append(condition_figure(condition, drawn, measure, file, label))
    return pictures


def side_by_side(analysis: Analysis, groups: Sequence[Group], name: str, caption: str) -> Picture:
    """One order under several conditions, a panel each."""
    figure, axes = panels(1, len(groups))
    for at, group in zip(axes, groups, strict=True):
        draw_panel(at, panel(group), "score" if analysis.scale.is_share else "return")
        at.set_title(group.condition)
        at.set_ylabel(analysis.scale.name)
    legend_below(figure)
    return Picture(name, caption, figure)


def baselines_figure(analysis: Analysis) -> list[Picture]:
    """Single-task training of every task, as returns."""
    singles = [group for group in analysis.groups if group.is_baseline]
    if not singles:
        return []
    n_columns = min(len(singles), 5)
    figure, axes = panels(-(-len(singles) // n_columns), n_columns, width=2.6)
    colours = task_colours(group.learning[0][0] for group in singles)
    for empty in axes[len(singles) :]:
        empty.set_axis_off()
    for at, group in zip(axes, singles, strict=False):
        (task,), drawn = group.learning[0], panel(group)
        if task in drawn.lines["return"]:
            draw_band(at, drawn.x, drawn.lines["return"][task], colours[task])
        at.set_title(short(task))
        at.set_xlabel(drawn.unit)
        at.set_ylabel("return")
    return [Picture("baselines", "Single-task training: returns", figure)]


def pairwise_figure(analysis: Analysis, kind: str) -> list[Picture]:
    """Backward or forward transfer between every two tasks, for every condition with a stream."""
    label = "BWT" if kind == "backward" else "FWT"
    charts = pairwise(analysis.streams, kind)
    if not charts:
        return []
    every = sorted({bar.label for chart in charts for bar in chart.bars})
    if len(every) > MOST_BARS:
        return [pairwise_matrix(charts, label, [*map(short, analysis.tasks)])]
    by_label = {chart.condition: {bar.label: bar.values for bar in chart.bars} for chart in charts}
    figure, axes = panels(1, 1, width=max(4.5, 1.5 * len(every)), height=2.6)
    bars = {name: [found.get(label) for label in every] for name, found in by_label.items()}
    grouped_bars(axes[0], [label.replace(" ", "") for label in every], bars, analysis.results.conditions)
    axes[0].set_ylabel(label)
    legend_below(figure)
    caption = f"Pairwise {label}: mean over the orders in which the first task comes before the second; whiskers: 95 %"
    return [Picture(f"pairwise-{label.lower()}", caption, figure)]


def pairwise_matrix(charts: Sequence[Chart], label: str, tasks: Sequence[str]) -> Picture:
    """The same for many tasks: a panel per condition, the task whose return changed in rows."""
    pairs = [[_pair(bar.label, label) for bar in chart.bars] for chart in charts]
    changed, other = (
        [task for task in tasks if any(pair[i] == task for each in pairs for pair in each)] for i in (0, 1)
    )
    most = max(abs(bar.value) for chart in charts for bar in chart.bars) or 1.0
    n_columns = min(len(charts), 2)
    width, height = 3.0 + 0.2 * len(other), 2.2 + 0.2 * len(changed)
    figure, axes = panels(-(-len(charts) // n_columns), n_columns, width, height)
    for empty in axes[len(charts) :]:
        empty.set_axis_off()
    for at, chart, names in zip(axes, charts, pairs, strict=False):
        values = np.full((len(changed), len(other)), np.nan)
        for (row, column), bar in zip(names, chart.bars, strict=True):
            values[changed.index(row), other.index(column)] = bar.value
        image = at.imshow(values, cmap="PuOr", vmin=-most, vmax=most)
        at.set_title(chart.condition)
        at.set_yticks(range(len(changed)), changed)
        at.set_xticks(range(len(other)), other, rotation=90)
        at.grid(visible=False)
    words = (
        "of rows, right after columns were learnt"
        if label == "BWT"
        else "towards rows, right after columns were learnt"
    )
    figure.colorbar(image, ax=figure.axes, label=f"{label} {words}", shrink=0.6)
    return Picture(f"pairwise-{label.lower()}", f"Pairwise {label} {words}: mean over orders and seeds", figure)


def _pair(text: str, label: str) -> tuple[str, str]:
    """Whose return changed, and by what."""
    first, _, second = text.partition(" ← " if label == "BWT" else " → ")
    return (first, second) if label == "BWT" else (second, first)


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
    legend_below(figure)
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
    legend_below(figure)
    caption = "Interference at acquisition of the second (top) and third task (bottom)"
    return [Picture("interference-heads", caption, figure)]


def plane_figure(analysis: Analysis, measure: bool = True, threads: int | None = None) -> Picture | None:
    """A panel per task: its measured landscape, the optima of all tasks, and the paths of θ; none if there is none."""
    data = plane_data(analysis.results, measure, threads)
    caption = "Returns measured on the plane through the single-task optima (stars), and paths of θ projected onto it"
    if isinstance(data, str) or not analysis.scale.is_share:
        return None
    tasks = list(data["landscapes"])
    figure, axes = panels(1, len(tasks), width=3.4, height=3.0)
    colours, lines = task_colours(tasks), condition_colours(analysis.results.conditions)
    for view, task in zip(axes, tasks, strict=True):
        landscape = analysis.scale.score(task, np.array(data["landscapes"][task]))
        levels = np.linspace(0, 1, 11)  # the same for all tasks; beyond R*, one value would pale all others
        shades = view.contourf(data["x"], data["y"], landscape, levels=levels, extend="both", cmap="Greys", alpha=0.8)
        figure.colorbar(shades, ax=view, label=f"{analysis.scale.name} on {short(task)}")
        for (name, path), style in zip(data["paths"].items(), LINES, strict=False):
            x, y = np.array([(point["x"], point["y"]) for point in path]).T
            view.plot(x, y, style, marker="o", markersize=2.5, color=lines[name], label=name, linewidth=1.3)
            view.plot(x[-1], y[-1], "s", color=lines[name], markersize=5)
        for other, (x, y) in data["optima"].items():
            view.plot(x, y, "*", color=colours[other], markersize=12, markeredgecolor="white")
            view.annotate(short(other), (x, y), xytext=(5, 5), textcoords="offset points", color=colours[other])
        view.set_title(short(task))
        view.grid(visible=False)
    legend_below(figure)
    return Picture("plane", caption, figure)


def ranges_figures(results: Results) -> list[Picture]:
    """A panel per condition: lines are ranges of our seeds, dots the paper's numbers; nothing without several seeds."""
    conditions: dict[str, list[Range]] = {}
    for one in study_ranges(results):
        if len(one.ours) > 1:
            conditions.setdefault(one.condition, []).append(one)
    if not conditions:
        return []
    most = max(map(len, conditions.values()))
    figure, axes = panels(1, len(conditions), width=3.0, height=0.6 + 0.13 * most)
    colours = task_colours(f"{one.task}-v5" for ranges in conditions.values() for one in ranges)
    for axis, (condition, ranges) in zip(axes, conditions.items(), strict=True):
        named: set[str] = set()
        for place, one in enumerate(ranges):
            colour, label = colours[f"{one.task}-v5"], "" if one.task in named else one.task
            named.add(one.task)
            axis.plot([one.share(min(one.ours)), one.share(max(one.ours))], [place, place], color=colour, label=label)
            filled = colour if one.is_inside else "white"
            axis.plot(one.share(one.paper), place, "o", color=colour, markerfacecolor=filled, markersize=4)
        labels = [
            f"{''.join(name[0] for name in one.order.split(' > '))}, step {one.step}, {one.extreme}" for one in ranges
        ]
        axis.set_yticks(range(len(ranges)), labels, fontsize=5)
        axis.set_ylim(most, -1)  # the same distance between lines everywhere
        axis.set_xlabel("return / the paper's R*")
        axis.set_title(condition)
    legend_below(figure)
    caption = "The paper's numbers (dots, hollow where outside) and the range of our seeds (lines)"
    return [Picture("ranges", caption, figure)]
