"""The plane through single-task optima as inline SVG: pictures that need no script; assets/plane.js adds the values."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import contourpy
import numpy as np
from markupsafe import Markup, escape

from evergait.analysis.plane import LARGEST, UNMEASURED
from evergait.report.charts import tick_label, ticks
from evergait.scores.scale import Scale
from evergait.tasks.base import short

WIDTH, HEIGHT = 320, 280
LEFT, TOP, RIGHT, BOTTOM = 30, 8, 312, 256
"""The frame of a panel in its own units."""
LEVELS = tuple(level / 10 for level in range(1, 11))
"""Contours of scores: one veil each, so that what is higher is darker."""
VEIL = 0.055
"""How much a veil hides of what is below it."""
ROOM = 8.0
"""Between two dots of a path."""
DAMAGED = "Its file, plane.json, was damaged or edited; delete it and run the study again."


@dataclass(frozen=True)
class Panel:
    """One task's landscape with the paths on it."""

    task: str
    picture: Markup


@dataclass(frozen=True)
class Sketch:
    """All panels, what tells the paths apart, and the values that hovering reads; or words if there is nothing."""

    words: str
    panels: tuple[Panel, ...] = ()
    paths: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def is_shown(self) -> bool:
        """Whether there is a picture, or there could be one."""
        return bool(self.panels) or self.words in (DAMAGED, UNMEASURED)


def sketch(plane: dict[str, Any] | str, tasks: Sequence[str], scale: Scale) -> Sketch:
    """The plane as the page shows it; a task's place among `tasks` decides its colour."""
    if isinstance(plane, str):
        return Sketch(plane)
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            return _sketch(plane, tasks, scale)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError):
        return Sketch(DAMAGED)


def _sketch(plane: dict[str, Any], tasks: Sequence[str], scale: Scale) -> Sketch:
    xs, ys = np.array(plane["x"], np.float64), np.array(plane["y"], np.float64)
    across, up = _scale(xs, LEFT, RIGHT), _scale(ys, BOTTOM, TOP)
    columns, rows = [round(across(x), 1) for x in xs], [round(up(y), 1) for y in ys]
    shown = list(plane["landscapes"])
    stops = [[_stop(name, point, across, up, shown, scale) for point in path] for name, path in plane["paths"].items()]
    axes = _axes(xs, ys, across, up)
    stars = [_star(across(x), up(y), tasks.index(task), short(task)) for task, (x, y) in plane["optima"].items()]
    panels, values = [], []
    for i, task in enumerate(shown):
        landscape = scale.score(task, np.array(plane["landscapes"][task], np.float64).reshape(len(ys), len(xs)))
        if not (np.abs(landscape) < LARGEST).all():
            raise ValueError("a landscape has no contours")
        names = " and ".join(plane["paths"])
        label = f"{scale.name} on {short(task)} over the plane, with the paths of {names}. Arrow keys read values."
        ways = [_way(number, path, i) for number, path in enumerate(stops)]
        panels.append(Panel(task, _svg([*_veils(columns, rows, landscape), *axes, *ways, *stars], label)))
        values.append(np.round(landscape, 3).tolist())
    data = {"width": WIDTH, "columns": columns, "rows": rows, "values": values, "stops": stops}
    return Sketch(_words(plane), tuple(panels), tuple(plane["paths"]), data)


def _scale(values: Any, low: float, high: float) -> Any:
    """Values → places between two edges."""
    first, last = float(values[0]), float(values[-1])
    return lambda value: _number(low + (float(value) - first) / ((last - first) or 1.0) * (high - low))


def _number(value: Any) -> float:
    """A finite number."""
    if not math.isfinite(number := float(value)):
        raise ValueError(f"{number} is no finite number")
    return number


def _words(plane: dict[str, Any]) -> str:
    """How much of the way the plane shows."""
    optima = np.array(list(plane["optima"].values()))
    apart = max(float(np.linalg.norm(a - b)) for a in optima for b in optima)
    off = [f"{name} by up to {max(p['off'] for p in path):.1f}" for name, path in plane["paths"].items()]
    return f"The optima lie up to {apart:.1f} apart, and the ways leave the plane: {', '.join(off)}."


def _stop(name: str, point: dict[str, Any], across: Any, up: Any, tasks: list[str], scale: Scale) -> dict[str, Any]:
    """One point of a path: where it is, and what hovering says there."""
    learning = " + ".join(map(short, point["learning"]))
    when = f"generation {point['generation']} of {learning}" if point["generation"] else "before training"
    return {
        "x": round(across(point["x"]), 1),
        "y": round(up(point["y"]), 1),
        "stage": int(point["stage"]),
        "words": f"{name}, {when}",
        "off": round(_number(point["off"]), 3),
        "values": [round(_number(scale.score_of(task, point["returns"][task])), 3) for task in tasks],
    }


def _veils(columns: Sequence[float], rows: Sequence[float], landscape: Any) -> list[str]:
    """Regions above each level."""
    contours = contourpy.contour_generator(columns, rows, landscape, fill_type="OuterOffset")
    veils = []
    for level in LEVELS:
        if level >= landscape.max():
            break
        data = ""
        for points, offsets in zip(*contours.filled(level, landscape.max() + 1.0), strict=True):
            rings = (points[a:b] for a, b in itertools.pairwise(offsets))
            data += "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in ring) + "Z" for ring in rings)
        veils.append(f'<path class="veil" fill-opacity="{VEIL}" d="{data}"/>')
    return veils


def _axes(xs: Any, ys: Any, across: Any, up: Any) -> list[str]:
    return [
        f'<rect class="frame" x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{BOTTOM - TOP}"/>',
        *(
            f'<text x="{across(x):.1f}" y="{BOTTOM + 15}" text-anchor="middle">{tick_label(x)}</text>'
            for x in ticks((xs[0], xs[-1]), 4)
        ),
        *(
            f'<text x="{LEFT - 5}" y="{up(y) + 4:.1f}" text-anchor="end">{tick_label(y)}</text>'
            for y in ticks((ys[0], ys[-1]), 4)
        ),
    ]


def _way(number: int, stops: list[dict[str, Any]], task: int) -> str:
    """A path with a dot wherever θ was kept and there is room; each is as dark as the score that θ itself had there."""
    line = "M" + "L".join(f"{stop['x']} {stop['y']}" for stop in stops)
    dots, last = "", (math.inf, math.inf)
    for i, stop in enumerate(stops):
        place, is_last = (stop["x"], stop["y"]), i == len(stops) - 1
        is_end = is_last or not i or stops[i + 1]["stage"] != stop["stage"]
        if is_end or math.dist(place, last) >= ROOM:
            shade = 1 - (1 - VEIL) ** sum(stop["values"][task] >= level for level in LEVELS)
            dots += _square(*place, shade) if is_last else _dot(*place, 4.5 if is_end else 3.0, shade)
            last = place
    return f'<g class="way way-{number}"><path class="halo" d="{line}"/><path d="{line}"/>{dots}</g>'


def _dot(x: float, y: float, radius: float, shade: float) -> str:
    place = f'cx="{x}" cy="{y}" r="{radius}"'
    return f'<circle {place}/><circle class="shade" {place} fill-opacity="{shade:.2f}"/>'


def _square(x: float, y: float, shade: float) -> str:
    place = f'x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9"'
    return f'<rect {place}/><rect class="shade" {place} fill-opacity="{shade:.2f}"/>'


def _star(x: float, y: float, task: int, name: str) -> str:
    turns = [math.pi * (i / 5 - 0.5) for i in range(10)]
    corners = " ".join(
        f"{x + (4 if i % 2 else 9) * math.cos(turn):.1f},{y + (4 if i % 2 else 9) * math.sin(turn):.1f}"
        for i, turn in enumerate(turns)
    )
    at, anchor = (x - 11, "end") if x > (LEFT + RIGHT) / 2 else (x + 11, "start")
    return (
        f'<polygon class="star" points="{corners}" style="fill: var(--task-{task % 7})"/>'
        f'<text class="name" x="{at:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">{escape(name)}</text>'
    )


def _svg(parts: list[str], label: str) -> Markup:
    body = "".join(parts)
    return Markup(  # noqa: S704 - numbers of ours, and escaped names
        f'<svg class="plane" viewBox="0 0 {WIDTH} {HEIGHT}" tabindex="0" role="img" aria-label="{escape(label)}">'
        f"{body}</svg>"
    )
