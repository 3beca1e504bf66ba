"""Several seeds → one number with an interval (Agarwal et al. 2021, arXiv:2108.13264)."""

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
