"""Several seeds → one number with an interval.

Runs of one seed share their first phases, so seeds are what is independent: each gives one value, its mean over orders.
Student's t covers the truth as often as it says even with three seeds, where a percentile bootstrap of them does in
three of four cases (tests/scores/test_scores.py simulates both).
"""

import functools
import math

import numpy as np

from evergait.core.arrays import Float64

MIN_SEEDS = 3
"""Fewer say nothing about how results would vary."""
CONFIDENCE = 0.95
POWER = 0.9


@functools.cache
def t_quantile(share: float, freedom: int) -> float:
    """t with P(|T| < t) = share, for whole degrees of freedom (Abramowitz & Stegun 26.7.3 and 26.7.4, bisected).

    >>> [round(t_quantile(0.95, n), 3) for n in (1, 2, 4, 9)]
    [12.706, 4.303, 2.776, 2.262]
    """
    low, high = 0.0, math.pi / 2  # of θ = atan(t / √freedom)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < share else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _within(theta: float, freedom: int) -> float:
    sine, cosine = math.sin(theta), math.cos(theta)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cosine**2 * k / (k + 1)
    return 2 / math.pi * (theta + sine * total) if odd else sine * total


def interval(values: Float64) -> tuple[Float64, Float64] | None:
    """(n_seeds, ...) → the ends of the 95 % interval of their mean; none from fewer than three seeds."""
    if len(values) < MIN_SEEDS:
        return None
    middle, half = values.mean(axis=0), t_quantile(CONFIDENCE, len(values) - 1) * _error(values)
    return middle - half, middle + half


def detectable(values: Float64) -> float | None:
    """The smallest effect that so many seeds, varying as these do, would find in 9 of 10 studies."""
    if len(values) < MIN_SEEDS:
        return None
    return float(_noticed(len(values) - 1) * _error(values))


@functools.cache
def _noticed(freedom: int) -> float:
    """The effect, in standard errors, whose interval lies above 0 in POWER of all samples (noncentral t, bisected)."""
    spread = np.linspace(1e-3, 6, 4000)  # of a sample, as a multiple of the true one
    # By logarithms, and about its greatest value: powers of many seeds leave the finite numbers.
    weight = np.exp((freedom - 1) * np.log(spread) - freedom * (spread**2 - 1) / 2)
    edge, low, high = t_quantile(CONFIDENCE, freedom), 0.0, 100.0
    for _ in range(50):
        middle = (low + high) / 2
        above = [0.5 * math.erfc((edge * s - middle) / math.sqrt(2)) for s in spread]
        low, high = (middle, high) if np.average(above, weights=weight) < POWER else (low, middle)
    return low


def _error(values: Float64) -> Float64:
    """Standard error of the mean over seeds."""
    error: Float64 = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    return error
