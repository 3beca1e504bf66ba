"""Ranges and ticks of axes."""

import math
from collections.abc import Sequence


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
