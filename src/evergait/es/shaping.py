"""Returns → utilities. A candidate whose return is no finite number gets the worst rank, below all others."""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from evergait.core.arrays import Float64

Shaping = Literal["centered-ranks", "ordered-ranks", "z-score", "nes", "raw"]
BY_ORDER = ("centered-ranks", "ordered-ranks", "nes")
"""Those that see nothing of returns but their order."""


def mean_ranks(fitness: Float64) -> Float64:
    """(n,) ranks 0..n-1, rising with fitness; ties share the mean of their ranks.

    >>> mean_ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [1.5, 0.0, 1.5]
    """
    _, place, count = np.unique(fitness, return_inverse=True, return_counts=True)
    below = np.cumsum(count) - count
    return (below + (count - 1) / 2)[place]


def centered_ranks(fitness: Float64) -> Float64:
    """(n,) ranks scaled to [−½, ½]; their sum is zero (Salimans et al. 2017, arXiv:1703.03864).

    >>> centered_ranks(np.array([10.0, 30.0, 20.0])).tolist()
    [-0.5, 0.5, 0.0]
    """
    n = len(fitness)
    return mean_ranks(fitness) / (n - 1) - 0.5 if n > 1 else np.zeros(n)


def ordered_ranks(fitness: Float64) -> Float64:
    """(n,) centred ranks with no ties: of equal members, the later one has the higher rank.

    >>> ordered_ranks(np.array([7.0, 0.0, 7.0])).tolist()
    [0.0, -0.5, 0.5]
    """
    n = len(fitness)
    ranks = np.empty(n)
    ranks[np.argsort(fitness, kind="stable")] = np.arange(n)
    return ranks / (n - 1) - 0.5 if n > 1 else np.zeros(n)


def z_score(fitness: Float64) -> Float64:
    """(n,) (F − mean) / standard deviation; zero where all are equal."""
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = fitness - fitness.mean()
        spread = np.sqrt(np.mean(deviation**2))
    if not np.isfinite(spread):  # too large to be squared or summed
        return z_score(fitness / np.abs(fitness).max())
    return deviation / spread if spread > 0 else np.zeros(len(fitness))


def nes(fitness: Float64) -> Float64:
    """(n,) utilities max(0, ln(n/2+1) − ln(place)), scaled to sum one, minus 1/n, times n (Wierstra et al. 2014).

    The factor n makes up for the division by the population in the gradient. Ties share their mean place.
    """
    n = len(fitness)
    place = n - mean_ranks(fitness)  # 1 is best
    # math.log, for NumPy's own logarithm depends on the machine's vector instructions in the last bit
    weight = np.array([max(0.0, math.log(n / 2 + 1) - math.log(p)) for p in place])
    utilities: Float64 = n * weight / weight.sum() - 1
    return utilities


SHAPINGS: dict[str, Callable[[Float64], Float64]] = {
    "centered-ranks": centered_ranks,
    "ordered-ranks": ordered_ranks,
    "z-score": z_score,
    "nes": nes,
    "raw": lambda fitness: fitness,
}


def shape(fitness: Float64, shaping: Shaping) -> Float64:
    """(n,) returns of all members, not finite where diverged → (n,) utilities."""
    diverged = ~np.isfinite(fitness)
    if diverged.all():
        return np.zeros(len(fitness))
    worst = fitness[~diverged].min()
    if shaping in BY_ORDER:  # strictly below the worst that survived
        with np.errstate(over="ignore"):
            worst = np.nextafter(worst, -np.inf)
    return SHAPINGS[shaping](np.where(diverged, worst, fitness))
