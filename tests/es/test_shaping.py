"""Utilities against slow definitions, and properties that all shapings share."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evergait.core.arrays import Float64
from evergait.es.shaping import SHAPINGS, centered_ranks, mean_ranks, nes, shape, z_score

returns = arrays(np.float64, st.integers(2, 40), elements=st.integers(-5, 5).map(float))


@given(returns)
def test_ranks_count_how_many_are_below_and_half_of_the_ties(fitness: Float64) -> None:
    expected = [np.sum(fitness < f) + (np.sum(fitness == f) - 1) / 2 for f in fitness]
    assert mean_ranks(fitness).tolist() == expected


@given(returns)
def test_centered_ranks_sum_to_zero_within_half(fitness: Float64) -> None:
    utility = centered_ranks(fitness)
    assert abs(utility.sum()) < 1e-9
    assert np.abs(utility).max() <= 0.5


@given(returns, st.sampled_from(sorted(SHAPINGS)))
def test_a_better_return_never_gets_a_lower_utility(fitness: Float64, shaping: Any) -> None:
    utility = shape(fitness, shaping)
    order = np.argsort(fitness, kind="stable")
    assert (np.diff(utility[order]) >= -1e-12).all()


@given(returns, st.permutations(range(10)))
def test_utilities_follow_their_members(fitness: Float64, order: Any) -> None:
    fitness = np.resize(fitness, 10)
    shaping: Any
    for shaping in SHAPINGS.keys() - {"ordered-ranks"}:
        np.testing.assert_allclose(shape(fitness[order], shaping), shape(fitness, shaping)[order], atol=1e-12)


@given(returns)
def test_ordered_ranks_are_those_of_members_told_apart_by_their_place(fitness: Float64) -> None:
    told_apart = sorted(range(len(fitness)), key=lambda i: (fitness[i], i))
    expected = [told_apart.index(i) / (len(fitness) - 1) - 0.5 for i in range(len(fitness))]
    np.testing.assert_allclose(shape(np.array(fitness, dtype=float), "ordered-ranks"), expected, atol=1e-12)


@pytest.mark.parametrize("shaping", sorted(SHAPINGS))
def test_diverged_members_are_worst(shaping: Any) -> None:
    utility = shape(np.array([1.0, np.nan, 0.0, 5.0]), shaping)
    assert utility[1] == utility.min()
    assert np.isfinite(utility).all()
    if shaping == "centered-ranks":
        assert utility.tolist() == pytest.approx([1 / 6, -0.5, -1 / 6, 0.5])


@pytest.mark.parametrize("shaping", sorted(SHAPINGS))
def test_when_all_diverged_nothing_is_learnt(shaping: Any) -> None:
    assert shape(np.full(4, np.nan), shaping).tolist() == [0.0] * 4


def test_z_score_by_hand() -> None:
    np.testing.assert_allclose(z_score(np.array([1.0, 3.0])), [-1, 1])
    assert z_score(np.full(3, 2.0)).tolist() == [0, 0, 0]


def test_nes_by_hand() -> None:
    # four members: max(0, ln 3 - ln place) = ln 3, ln 3/2, 0, 0
    weight = np.log([3, 1.5, 1, 1])
    np.testing.assert_allclose(nes(np.array([9.0, 5.0, 3.0, 1.0])), 4 * weight / weight.sum() - 1)
