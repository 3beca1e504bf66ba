"""Several seeds → one number with an interval (Agarwal et al. 2021, arXiv:2108.13264; Student 1908)."""

import numpy as np

from evergait.core.arrays import Float64


def interquartile_mean(values: Float64) -> float:
    """Mean of the middle half; a quarter of the weight is trimmed at each end, splitting values where needed.

    >>> interquartile_mean(np.array([0.0, 1.0, 2.0, 100.0]))
    1.5
    """
    ordered = np.sort(np.ravel(values))
    n = len(ordered)
    edges = np.arange(n + 1)
    weights = np.minimum(edges[1:], 0.75 * n) - np.maximum(edges[:-1], 0.25 * n)
    weights = np.clip(weights, 0.0, None)
    return float((weights * ordered).sum() / weights.sum())


def bootstrap_interval(
    values: Float64, confidence: float = 0.95, n_resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Percentile interval of the interquartile mean of (n_seeds, n_strata) values.

    Seeds are drawn with replacement in each stratum (task, order) on its own.
    """
    values = np.asarray(values, np.float64)
    values = values.reshape(len(values), -1)
    n_seeds, n_strata = values.shape
    generator = np.random.Generator(np.random.Philox(seed))
    rows = generator.integers(n_seeds, size=(n_resamples, n_seeds, n_strata))
    resampled = values[rows, np.arange(n_strata)]
    means = [interquartile_mean(sample) for sample in resampled]
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def student_quantile(probability: float, n_degrees: int) -> float:
    """The value below which Student's t lies with this probability, by summing its density.

    >>> round(student_quantile(0.975, 9), 3), round(student_quantile(0.975, 2), 3)
    (2.262, 4.303)
    """
    angles = np.linspace(-np.pi / 2, np.pi / 2, 100_001)  # t = √n tan(angle) has the density cosⁿ⁻¹(angle)
    density = np.cos(angles) ** (n_degrees - 1)
    below = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return float(np.sqrt(n_degrees) * np.tan(np.interp(probability * below[-1], below, angles)))


def seeds_interval(values: Float64) -> tuple[float, float] | None:
    """95 % interval of the mean over seeds of (n_seeds, n_strata) values; a whole seed is one observation.

    >>> low, high = seeds_interval(np.array([[1.0], [2.0], [3.0]]))
    >>> round(low, 2), round(high, 2)
    (-0.48, 4.48)
    """
    by_seed = values.reshape(len(values), -1).mean(axis=1)
    n = len(by_seed)
    if n < 2:
        return None
    half = student_quantile(0.975, n - 1) * float(by_seed.std(ddof=1)) / np.sqrt(n)
    return float(by_seed.mean() - half), float(by_seed.mean() + half)


def smallest_effect(values: Float64) -> float | None:
    """The mean that so many seeds with such a spread would have told from zero nine times in ten."""
    by_seed = values.reshape(len(values), -1).mean(axis=1)
    n = len(by_seed)
    if n < 2:
        return None
    times = student_quantile(0.975, n - 1) + student_quantile(0.9, n - 1)
    return float(times * by_seed.std(ddof=1) / np.sqrt(n))
