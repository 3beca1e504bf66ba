"""Curves with dashed task switches: scores, and backward and forward transfer over time."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from evergait.analysis.curves import Panel, panel
from evergait.analysis.groups import Band, Group
from evergait.analysis.study import Analysis
from evergait.core.arrays import Float64
from evergait.core.names import short
from evergait.core.table import file_name
from evergait.figures.style import Picture, legend_below, panels, task_colours


def draw_panel(axes: Axes, drawn: Panel, measure: str) -> None:
    """Every task that is learnt, over all phases, over seeds as mean with a 95 % band."""
    colours = task_colours(drawn.lines["return"])
    for task in dict.fromkeys(task for stretch in drawn.stretches for task in stretch.learning):
        if task in drawn.lines[measure]:
            draw_band(axes, drawn.x, drawn.lines[measure][task], colours[task])
        axes.plot([], [], color=colours[task], label=short(task))
    draw_switches(axes, drawn)


def draw_switches(axes: Axes, drawn: Panel) -> None:
    """Dashed lines where tasks change, and the axis of time."""
    for stretch in drawn.stretches[1:]:
        axes.axvline(stretch.start, color="0.4", linestyle="--", linewidth=0.8)
    axes.set_xlim(0, drawn.stretches[-1].end)
    axes.set_xlabel(drawn.unit)


def draw_band(axes: Axes, x: Float64, band: Band, colour: str) -> None:
    """A mean and, of three seeds or more, its interval."""
    axes.plot(x, band.mean, color=colour, linewidth=1.2)
    if band.low is not None and band.high is not None:
        axes.fill_between(x, band.low, band.high, color=colour, alpha=0.2, linewidth=0)


def condition_figure(condition: str, drawn: Sequence[Panel], measure: str, name: str, label: str) -> Picture:
    """All orders of a condition, a panel each."""
    n_columns = min(len(drawn), 2)
    figure, axes = panels(-(-len(drawn) // n_columns), n_columns, height=2.0 if len(drawn) > 1 else 2.8)
    for one, at in zip(drawn, axes, strict=False):
        draw_panel(at, one, measure)
        at.set_title(one.order)
        at.axhline(0, color="0.7", linewidth=0.6)
        at.set_ylabel(label)
    for empty in axes[len(drawn) :]:
        empty.set_axis_off()
    legend_below(figure, axes[0])
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
    legend_below(figure, axes[0])
    return Picture(name, caption, figure)


def baselines_figure(analysis: Analysis) -> list[Picture]:
    """Single-task training of every task, as returns."""
    singles = [group for group in analysis.groups if group.condition == "single"]
    if not singles:
        return []
    figure, axes = panels(1, len(singles), width=2.6)
    colours = task_colours(group.learning[0][0] for group in singles)
    for at, group in zip(axes, singles, strict=True):
        (task,), drawn = group.learning[0], panel(group)
        draw_band(at, drawn.x, drawn.lines["return"][task], colours[task])
        at.set_title(short(task))
        at.set_xlabel(drawn.unit)
        at.set_ylabel("return")
    return [Picture("baselines", "Single-task training: returns", figure)]
