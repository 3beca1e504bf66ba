"""Intervals cover the truth as often as they say, with as few seeds as studies have; simulated."""

import numpy as np
import pytest

from evergait.analysis.groups import Values
from evergait.core.arrays import Float64
from evergait.scores.stats import MIN_SEEDS, detectable, interval, t_quantile

TRUTH = 0.4
N_TRIALS = 1500


def simulated(rng: np.random.Generator, n_seeds: int, skewed: bool = False) -> Float64:
    """(n_seeds, 6 orders) around TRUTH: pairs of orders share a first phase, all orders of a seed share its R*."""
    first = rng.gamma(1.0, 0.2, (n_seeds, 3)) - 0.2 if skewed else rng.normal(0, 0.2, (n_seeds, 3))
    r_star = rng.normal(1, 0.1, (n_seeds, 1))
    return (TRUTH + np.repeat(first, 2, axis=1) + rng.normal(0, 0.15, (n_seeds, 6))) * r_star


def coverage(n_seeds: int, skewed: bool = False) -> float:
    rng = np.random.default_rng(n_seeds)
    hits = 0
    for _ in range(N_TRIALS):
        values = Values(tuple(range(n_seeds)), tuple("abcdef"), simulated(rng, n_seeds, skewed))
        assert values.interval
        hits += values.interval[0] <= TRUTH <= values.interval[1]
    return hits / N_TRIALS


@pytest.mark.parametrize("n_seeds", [3, 5, 10])
def test_an_interval_over_seeds_covers_the_truth(n_seeds: int) -> None:
    assert 0.93 <= coverage(n_seeds) <= 0.97
    assert 0.91 <= coverage(n_seeds, skewed=True) <= 0.97


def bootstrap(values: Float64, rng: np.random.Generator) -> tuple[float, float]:
    """Percentiles of means of seeds drawn with replacement: what we do not do, and why."""
    means = values.mean(axis=1)
    drawn = means[rng.integers(len(means), size=(400, len(means)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def test_a_bootstrap_of_three_seeds_would_promise_too_much() -> None:
    rng = np.random.default_rng(0)
    ends = [bootstrap(simulated(rng, 3), rng) for _ in range(600)]
    assert np.mean([low <= TRUTH <= high for low, high in ends]) < 0.85


@pytest.mark.parametrize("n_seeds", [3, 5, 10])
def test_what_is_called_detectable_is_found_in_nine_of_ten_studies(n_seeds: int) -> None:
    rng = np.random.default_rng(n_seeds)
    # The effect is fixed before the study: it is what the true spread, not that of one sample, lets us find.
    spread = np.array([-1.0, 1.0] * (n_seeds // 2) + [0.0] * (n_seeds % 2))
    effect = detectable(spread / spread.std(ddof=1))
    assert effect
    found = 0
    for _ in range(4000):
        ends = interval(rng.normal(effect, 1, n_seeds))
        found += bool(ends and ends[0] > 0)
    assert 0.885 <= found / 4000 <= 0.915


def test_too_few_seeds_give_no_interval() -> None:
    for n_seeds in range(1, MIN_SEEDS):
        assert interval(np.zeros(n_seeds)) is None
        assert detectable(np.zeros(n_seeds)) is None


def test_quantiles_are_those_of_the_tables() -> None:
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 30: 2.042}
    for freedom, value in table.items():
        assert t_quantile(0.95, freedom) == pytest.approx(value, abs=6e-4)
