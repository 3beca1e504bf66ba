"""Every registered optimizer runs the same suite; each formula is also checked by hand."""

import numpy as np
import pytest

from evergait.core.errors import EvergaitError
from evergait.es.optimizers import Adam, ClipUp, Momentum, Optimizer, Plain

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
