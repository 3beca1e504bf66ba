"""The layout of θ and the network against plain NumPy."""

import numpy as np
import pytest

from evergait import _native
from evergait.core.arrays import Float32, Float64
from evergait.core.errors import EvergaitError
from evergait.core.random import PERTURBATION, Noise
from evergait.engines import Episodes
from evergait.policy import Activation, ActiveLayer, Network, Policy, PolicyConfig, Statistics
from evergait.tasks import Task, spaces

HOPPER, SWIMMER, WALKER = Task("Hopper-v5"), Task("Swimmer-v5"), Task("Walker2d-v5")
FUNCTIONS = {"linear": lambda x: x, "relu": lambda x: np.maximum(x, 0), "tanh": np.tanh}


def reference_action(policy: Policy, theta: Float32, task: Task, observation: Float64) -> Float64:
    """The paper's h(f(g(o))), layer by layer in float64."""
    x = observation
    for layer, n_out, activation in policy.path(task):
        weight = theta[layer.offset : layer.bias].reshape(layer.n_out, layer.n_in)[:n_out].astype(np.float64)
        bias = theta[layer.bias : layer.end][:n_out].astype(np.float64)
        x = FUNCTIONS[activation](weight @ x + bias)  # type: ignore[operator]
    return spaces(task).action_middle + spaces(task).action_half_range * x


def act(policy: Policy, theta: Float32, task: Task, observations: Float64, sigma: float = 0.0, sign: float = 0.0):  # type: ignore[no-untyped-def]
    network = policy.network(task)
    n = len(observations)
    packed = np.zeros((n, network.native.packed_size), np.float32)
    pairs, signs = np.arange(n, dtype=np.uint32), np.full(n, sign, np.float32)
    rows = Episodes(task, network, theta, sigma, Noise(3, PERTURBATION, 1), pairs, signs, seed=pairs)
    _native.pack_candidates(rows, packed, 2)
    actions = np.zeros((n, network.n_actions), np.float32)
    _native.act(network.native, packed, observations, actions, 2)
    return actions


@pytest.mark.parametrize("heads", ["shared", "separate"])
@pytest.mark.parametrize("activation", ["linear", "relu", "tanh"])
@pytest.mark.parametrize("hidden", [(), (64,), (17, 33)])
def test_network_equals_numpy(heads: str, activation: Activation, hidden: tuple[int, ...]) -> None:
    config = PolicyConfig(hidden=hidden, activation=activation, input_activation=activation, heads=heads)  # type: ignore[arg-type]
    policy = Policy.build(config, [HOPPER, SWIMMER, WALKER, Task("InvertedPendulum-v5")])
    theta = policy.initial(seed=1)
    for task in policy.tasks:
        observations = np.random.default_rng(0).normal(size=(5, spaces(task).n_observations))
        expected = [reference_action(policy, theta, task, o) for o in observations]
        np.testing.assert_allclose(act(policy, theta, task, observations), expected, rtol=2e-5, atol=2e-6)


def test_tanh_is_right_over_its_whole_range() -> None:
    one = np.ones(1, np.float32)
    network = Network((ActiveLayer(weight=0, bias=1, n_in=1, n_out=1, activation="tanh"),), one, one)
    x = np.concatenate([np.linspace(-25, 25, 200_001), np.linspace(-2, 2, 200_001), np.geomspace(1e-12, 1, 10_001)])
    found = network.outputs(np.array([1.0, 0.0]), x[:, None])
    np.testing.assert_allclose(found[:, 0], np.tanh(x), rtol=2e-13, atol=0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_candidates_are_theta_plus_sign_sigma_noise(sign: float) -> None:
    policy = Policy.build(PolicyConfig(), [HOPPER, WALKER])
    theta = policy.initial(seed=1)
    observation = np.random.default_rng(0).normal(size=(1, 11))
    noise = Noise(3, PERTURBATION, 1).normals(0, 0, policy.n_parameters)
    moved = theta + np.float32(sign * 0.1) * noise
    assert (act(policy, theta, HOPPER, observation, 0.1, sign) == act(policy, moved, HOPPER, observation)).all()


def test_not_a_number_reaches_the_action() -> None:
    policy = Policy.build(PolicyConfig(), [HOPPER])
    assert np.isnan(act(policy, policy.initial(0), HOPPER, np.full((1, 11), np.nan))).all()


def test_layout_does_not_depend_on_the_order_of_tasks() -> None:
    one, other = (
        Policy.build(PolicyConfig(), [HOPPER, SWIMMER]),
        Policy.build(PolicyConfig(), [SWIMMER, HOPPER, SWIMMER]),
    )
    assert one == other
    assert one.layers == other.layers


def test_a_layers_first_numbers_do_not_depend_on_other_tasks() -> None:
    small, large = Policy.build(PolicyConfig(), [HOPPER]), Policy.build(PolicyConfig(), [HOPPER, SWIMMER])
    for name in ("hidden.0", "input.Hopper-v5"):
        a, b = small.layers[name], large.layers[name]
        assert (small.initial(7)[a.offset : a.end] == large.initial(7)[b.offset : b.end]).all()


def test_initial_weights_fill_their_range() -> None:
    policy = Policy.build(PolicyConfig(), [HOPPER])
    hidden = policy.layers["hidden.0"]
    values = policy.initial(0)[hidden.offset : hidden.end] * 8  # √64
    assert -1 <= values.min() < -0.99
    assert 0.99 < values.max() <= 1
    assert abs(values.mean()) < 0.05


def test_active_parameters_are_those_that_change_the_action() -> None:
    policy = Policy.build(PolicyConfig(), [HOPPER, SWIMMER, WALKER])
    theta = policy.initial(0)
    observation = np.random.default_rng(0).normal(size=(1, 11))
    active = np.zeros(policy.n_parameters, bool)
    for begin, end in policy.active(HOPPER):
        active[begin:end] = True
    before = act(policy, theta, HOPPER, observation)
    idle = theta.copy()
    idle[~active] = 99
    assert (act(policy, idle, HOPPER, observation) == before).all()
    head = policy.layers["head"]
    assert active[head.offset : head.bias].sum() == 3 * 64  # three of six outputs
    shared = sum(end - begin for begin, end in policy.active(HOPPER, "shared"))
    assert active.sum() - shared == 11 * 64 + 64


def test_new_tasks_can_be_added() -> None:
    small, large = Policy.build(PolicyConfig(), [SWIMMER]), Policy.build(PolicyConfig(), [SWIMMER, WALKER])
    theta = small.initial(3)
    moved = large.transplant(small, theta, seed=9)
    observations = np.random.default_rng(0).normal(size=(4, 8))
    assert (act(large, moved, SWIMMER, observations) == act(small, theta, SWIMMER, observations)).all()


def test_statistics_normalise_observations() -> None:
    policy = Policy.build(PolicyConfig(normalise=True), [SWIMMER])
    empty = Statistics.empty(policy.tasks)
    assert policy.network(SWIMMER, empty).mean is None
    seen = np.random.default_rng(0).normal(3, 2, size=(2, 50, 8))
    sums = np.stack([seen.sum(axis=1), (seen**2).sum(axis=1)], axis=1)
    network = policy.network(SWIMMER, empty.add(SWIMMER, np.array([50, 50], np.int32), sums))
    np.testing.assert_allclose(network.mean, seen.reshape(-1, 8).mean(axis=0))  # type: ignore[arg-type]
    np.testing.assert_allclose(1 / network.scale, seen.reshape(-1, 8).std(axis=0), rtol=1e-9)  # type: ignore[operator]


def test_absurd_widths_are_refused() -> None:
    with pytest.raises(EvergaitError, match=r"policy.hidden\[1\]: is 0; it must be from 1"):
        PolicyConfig(hidden=(64, 0)).check()


@pytest.mark.parametrize("heads", ["shared", "separate"])
@pytest.mark.parametrize("activation", ["linear", "relu", "tanh"])
@pytest.mark.parametrize("hidden", [(), (5,), (4, 7)])
def test_back_propagation_equals_finite_differences(
    heads: str, activation: Activation, hidden: tuple[int, ...]
) -> None:
    config = PolicyConfig(input_width=6, hidden=hidden, activation=activation, heads=heads, normalise=True)  # type: ignore[arg-type]
    policy = Policy.build(config, [HOPPER, SWIMMER])
    random = np.random.default_rng(0)
    sums = Statistics.empty(policy.tasks).sums | {SWIMMER.name: np.array([[9.0] * 8, [4.0] * 8, [30.0] * 8])}  # type: ignore[operator]
    network = policy.network(SWIMMER, Statistics(sums))
    theta = policy.initial(seed=1).astype(np.float64)
    observations, cotangents = random.normal(size=(3, 8)), random.normal(size=(3, 2))
    rows = np.zeros((3, len(theta)))
    for j in range(len(theta)):
        shift = np.zeros(len(theta))
        shift[j] = 1e-6
        change = network.outputs(theta + shift, observations) - network.outputs(theta - shift, observations)
        rows[:, j] = np.sum(cotangents * change, axis=1) / 2e-6
    gradient = network.pull_back(theta, observations, cotangents)
    np.testing.assert_allclose(gradient, rows.sum(axis=0), rtol=1e-5, atol=1e-8)
    squares = network.pull_back(theta, observations, cotangents, squared=True)
    np.testing.assert_allclose(squares, (rows**2).sum(axis=0), rtol=1e-5, atol=1e-8)
    assert (gradient != 0).sum() > 30


def test_outputs_are_what_the_engines_see() -> None:
    policy = Policy.build(PolicyConfig(), [HOPPER, WALKER])
    theta, observations = policy.initial(seed=1), np.random.default_rng(0).normal(size=(5, 17))
    outputs = policy.network(WALKER).outputs(theta.astype(np.float64), observations)
    np.testing.assert_allclose(act(policy, theta, WALKER, observations), outputs, atol=1e-6)


def test_what_a_task_uses_is_shared_or_its_own() -> None:
    for heads in ("shared", "separate"):
        policy = Policy.build(PolicyConfig(heads=heads), [HOPPER, SWIMMER])
        parts = policy.active(SWIMMER, "shared") + policy.active(SWIMMER, "own")
        assert sorted(parts) == policy.active(SWIMMER)
