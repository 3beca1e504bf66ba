"""Robust statistics against slow definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergait.scores.stats import bootstrap_interval, interquartile_mean


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=30))
def test_interquartile_mean_is_the_mean_of_the_middle_half(values: list[int]) -> None:
    fine = np.sort(np.repeat(np.array(values, float), 4))  # four copies of each: a quarter is a whole number of them
    assert interquartile_mean(np.array(values, float)) == pytest.approx(fine[len(values) : 3 * len(values)].mean())


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    hits = 0
    for trial in range(100):
        low, high = bootstrap_interval(generator.normal(size=(30, 1)), n_resamples=200, seed=trial)
        hits += low <= 0 <= high
    assert 85 <= hits <= 100


def test_strata_are_resampled_on_their_own() -> None:
    # every stratum is constant, so no resample can differ
    values = np.tile(np.array([1.0, 2.0, 3.0, 4.0]), (5, 1))
    assert bootstrap_interval(values) == (2.5, 2.5)


def test_same_seed_same_interval() -> None:
    values = np.random.default_rng(1).normal(size=(5, 3))
    assert bootstrap_interval(values) == bootstrap_interval(values)
