"""A gait as one picture: poses at even times, faint to strong, as in a strobe photograph; for paper and no scripts."""

from typing import Any

import numpy as np
from markupsafe import Markup, escape

from evergait.core.arrays import Float64
from evergait.report.encoding import decode

N_POSES = 9
COLOURS = ("#0072b2", "#d55e00", "#008a64", "#b5578f", "#9a6a00", "#2f7fb0", "#33373d")
"""Of pictures, by task; the same as in assets/colours.css, light."""


def motion(robot: dict[str, Any], gait: dict[str, Any]) -> Float64:
    """(n_frames, n_parts, 4 or 5): both ends of every part in metres and, without a plane, the distance away."""
    n_parts, n_channels = len(robot["radius"]), 4 if robot["planar"] else 5
    values: Float64 = decode(gait["motion"], n_parts * n_channels) * robot["quantum"]
    return values.reshape(-1, n_parts, n_channels)


def strobe(robot: dict[str, Any], gait: dict[str, Any], colour: int, label: str) -> Markup:
    """An inline SVG of some poses of a gait."""
    frames = motion(robot, gait)[..., :4]
    chosen = frames[np.unique(np.linspace(0, len(frames) - 1, N_POSES).round().astype(int))]
    radius = np.array(robot["radius"])
    ends = chosen.reshape(len(chosen), -1, 2, 2)
    low = ends.min(axis=(0, 1, 2)) - radius.max() * 1.5
    high = ends.max(axis=(0, 1, 2)) + radius.max() * 1.5
    if robot["ground"] is not None:
        low[1] = min(low[1], robot["ground"] - radius.max())
    width, height = high - low
    lines = []
    for i, pose in enumerate(chosen):
        opacity = 0.25 + 0.75 * (i + 1) / len(chosen)
        parts = (
            f'<path d="M{_n(x1 - low[0])} {_n(high[1] - y1)}L{_n(x2 - low[0])} {_n(high[1] - y2)}" '
            f'stroke-width="{_n(2 * r)}"/>'
            for (x1, y1, x2, y2), r in zip(pose, radius, strict=True)
        )
        lines.append(f'<g opacity="{opacity:.2f}">{"".join(parts)}</g>')
    if robot["ground"] is not None:
        y = _n(high[1] - robot["ground"])
        lines.append(f'<path d="M0 {y}H{_n(width)}" stroke="currentColor" stroke-width="{_n(height / 150)}"/>')
    body = "".join(lines)
    return Markup(  # noqa: S704 - numbers of ours, and an escaped label
        f'<svg class="strobe" viewBox="0 0 {_n(width)} {_n(height)}" role="img" aria-label="{escape(label)}" '
        f'fill="none" stroke="{COLOURS[colour % len(COLOURS)]}" stroke-linecap="round">{body}</svg>'
    )


def _n(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")
