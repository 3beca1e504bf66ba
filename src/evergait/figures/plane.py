"""The picture of the plane through the single-task optima; see plane.py."""

import numpy as np

from evergait.analysis.plane import plane_data
from evergait.core.names import short
from evergait.figures.style import Picture, condition_colours, legend_below, panels, say_nothing, task_colours
from evergait.studies.results import Results

LINES = ("-", "--")


def plane_figure(results: Results, measure: bool = True, threads: int | None = None) -> Picture:
    """A panel per task: its measured landscape, the optima of all tasks, and the paths of θ."""
    data = plane_data(results, measure, threads)
    caption = "Returns measured on the plane through the single-task optima (stars), and paths of θ projected onto it"
    if isinstance(data, str):
        figure, axes = panels(1, 1)
        say_nothing(axes[0], data)
        return Picture("plane", caption, figure)
    tasks = list(data["landscapes"])
    figure, axes = panels(1, len(tasks), width=3.4, height=3.0)
    colours, lines = task_colours(tasks), condition_colours(results.conditions)
    for panel, task in zip(axes, tasks, strict=True):
        best = data["best"][task] or 1.0
        landscape = np.array(data["landscapes"][task]) / best
        levels = np.linspace(0, 1, 11)  # the same for all tasks; beyond R*, one value would pale all others
        shades = panel.contourf(data["x"], data["y"], landscape, levels=levels, extend="both", cmap="Greys", alpha=0.8)
        figure.colorbar(shades, ax=panel, label=f"R̂ on {short(task)}")
        for (name, path), style in zip(data["paths"].items(), LINES, strict=False):
            x, y = np.array([(point["x"], point["y"]) for point in path]).T
            panel.plot(x, y, style, marker="o", markersize=2.5, color=lines[name], label=name, linewidth=1.3)
            panel.plot(x[-1], y[-1], "s", color=lines[name], markersize=5)
        for other, (x, y) in data["optima"].items():
            panel.plot(x, y, "*", color=colours[other], markersize=12, markeredgecolor="white")
            panel.annotate(short(other), (x, y), xytext=(5, 5), textcoords="offset points", color=colours[other])
        panel.set_title(short(task))
        panel.grid(visible=False)
    legend_below(figure, axes[0])
    return Picture("plane", caption, figure)
