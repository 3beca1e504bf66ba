"""Every registered optimizer runs the same suite; each formula is also checked by hand."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evergait.core.arrays import Float64
from evergait.core.errors import EvergaitError
from evergait.es import (
    SHAPINGS,
    Adam,
    ClipUp,
    Momentum,
    Optimizer,
    Plain,
    centered_ranks,
    mean_ranks,
    nes,
    shape,
    z_score,
)

EVERY = [pytest.param(member(), id=name) for name, member in Optimizer.members.items()]


def climb(optimizer: Optimizer, n_generations: int) -> np.ndarray:
    """Ascend −|θ − 1|²/2."""
    theta, state = np.zeros(3, np.float32), optimizer.start(3)
    for _ in range(n_generations):
        theta, state = optimizer.update(theta, (1 - theta).astype(float), np.ones(3, bool), state)
    return theta


@pytest.mark.parametrize("optimizer", EVERY)
def test_climbs_a_hill(optimizer: Optimizer) -> None:
    assert np.abs(climb(optimizer, 1000) - 1).max() < 0.2


@pytest.mark.parametrize("optimizer", EVERY)
def test_leaves_untouched_parameters_and_their_state_alone(optimizer: Optimizer) -> None:
    theta, state = np.arange(4, dtype=np.float32), optimizer.start(4)
    theta, state = optimizer.update(theta, np.ones(4), np.ones(4, bool), state)
    touched = np.array([True, False, True, False])
    after, later = optimizer.update(theta, np.ones(4), touched, state)
    assert (after[~touched] == theta[~touched]).all()
    assert (after[touched] != theta[touched]).all()
    for key, value in state.items():
        if value.ndim:
            assert (later[key][~touched] == value[~touched]).all()


@pytest.mark.parametrize("optimizer", EVERY)
def test_does_not_change_its_arguments(optimizer: Optimizer) -> None:
    theta, gradient, state = np.zeros(3, np.float32), np.ones(3), optimizer.start(3)
    copies = {key: value.copy() for key, value in state.items()}
    optimizer.update(theta, gradient, np.ones(3, bool), state)
    assert (theta == 0).all()
    assert all((state[key] == copies[key]).all() for key in state)


@pytest.mark.parametrize("optimizer", EVERY)
def test_weight_decay_takes_its_share(optimizer: Optimizer) -> None:
    decaying = type(optimizer)(weight_decay=0.25)
    theta, state = np.full(3, 8, np.float32), decaying.start(3)
    after, _ = decaying.update(theta, np.zeros(3), np.ones(3, bool), state)
    assert after.tolist() == [6.0] * 3


@pytest.mark.parametrize("field", ["learning_rate", "weight_decay"])
@pytest.mark.parametrize("optimizer", EVERY)
def test_refuses_negative_settings(optimizer: Optimizer, field: str) -> None:
    with pytest.raises(EvergaitError, match=rf"optimizer.{field}: is -1.0; it must be"):
        type(optimizer)(**{field: -1.0}).check()


def test_plain_by_hand() -> None:
    step, _ = Plain(learning_rate=0.5).step(np.array([2.0, -4.0]), {})
    assert step.tolist() == [1.0, -2.0]


def test_momentum_by_hand() -> None:
    optimizer = Momentum(learning_rate=1.0, momentum=0.5)
    first, state = optimizer.step(np.array([4.0]), optimizer.start(1))
    second, _ = optimizer.step(np.array([4.0]), state)
    assert (first.tolist(), second.tolist()) == ([2.0], [3.0])


def test_adam_by_hand() -> None:
    optimizer = Adam(learning_rate=0.1)
    step, state = optimizer.step(np.array([5.0, -1e-3]), optimizer.start(2))
    np.testing.assert_allclose(step, [0.1, -0.1], rtol=1e-4)  # the first step has the size of the learning rate
    step, _ = optimizer.step(np.array([-5.0, -1e-3]), state)
    first, second = 0.9 * 0.5 - 0.1 * 5, 0.999 * 0.025 + 0.001 * 25
    assert step[0] == pytest.approx(0.1 * (first / (1 - 0.81)) / np.sqrt(second / (1 - 0.999**2)))


def test_clipup_limits_its_speed() -> None:
    optimizer = ClipUp(learning_rate=0.2, max_speed=0.3)
    state = optimizer.start(2)
    lengths = []
    for _ in range(5):
        step, state = optimizer.step(np.array([30.0, 40.0]), state)
        lengths.append(float(np.hypot(*step)))
    assert lengths[0] == pytest.approx(0.2)
    assert lengths[1:] == pytest.approx([0.3] * 4)


# Utilities against slow definitions, and properties that all shapings share.


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
