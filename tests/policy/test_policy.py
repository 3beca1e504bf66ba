"""The layout of θ and the network against plain NumPy; at any width the bits of its float32 sums, or a refusal."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from safetensors import safe_open
from small import tiny_config

from evergait import _native, train
from evergait.config import Config
from evergait.core.arrays import Float32, Float64
from evergait.core.errors import EvergaitError
from evergait.core.random import PERTURBATION, Noise
from evergait.engines import Episodes
from evergait.methods import Naive
from evergait.policy import Activation, ActiveLayer, Candidates, Network, Policy, PolicyConfig, Statistics
from evergait.policy.layout import export_policy
from evergait.policy.network import Acting, act
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


def actions_of(
    policy: Policy, theta: Float32, task: Task, observations: Float64, sigma: float = 0.0, sign: float = 0.0
) -> Float32:
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
        np.testing.assert_allclose(actions_of(policy, theta, task, observations), expected, rtol=2e-5, atol=2e-6)


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
    assert (
        actions_of(policy, theta, HOPPER, observation, 0.1, sign) == actions_of(policy, moved, HOPPER, observation)
    ).all()


def test_not_a_number_reaches_the_action() -> None:
    policy = Policy.build(PolicyConfig(), [HOPPER])
    assert np.isnan(actions_of(policy, policy.initial(0), HOPPER, np.full((1, 11), np.nan))).all()


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
    before = actions_of(policy, theta, HOPPER, observation)
    idle = theta.copy()
    idle[~active] = 99
    assert (actions_of(policy, idle, HOPPER, observation) == before).all()
    head = policy.layers["head"]
    assert active[head.offset : head.bias].sum() == 3 * 64  # three of six outputs
    shared = sum(end - begin for begin, end in policy.active(HOPPER, "shared"))
    assert active.sum() - shared == 11 * 64 + 64


def test_new_tasks_can_be_added() -> None:
    small, large = Policy.build(PolicyConfig(), [SWIMMER]), Policy.build(PolicyConfig(), [SWIMMER, WALKER])
    theta = small.initial(3)
    moved = large.transplant(small, theta, seed=9)
    observations = np.random.default_rng(0).normal(size=(4, 8))
    assert (actions_of(large, moved, SWIMMER, observations) == actions_of(small, theta, SWIMMER, observations)).all()


def test_statistics_normalise_observations() -> None:
    policy = Policy.build(PolicyConfig(normalise=True), [SWIMMER])
    empty = Statistics.empty(policy.tasks)
    assert policy.network(SWIMMER, empty).mean is None
    seen = np.random.default_rng(0).normal(3, 2, size=(2, 50, 8))
    sums = np.stack([seen.sum(axis=1), (seen**2).sum(axis=1)], axis=1)
    network = policy.network(SWIMMER, empty.add(SWIMMER, np.array([50, 50], np.int32), sums))
    np.testing.assert_allclose(network.mean, seen.reshape(-1, 8).mean(axis=0))  # type: ignore[arg-type]
    np.testing.assert_allclose(1 / network.scale, seen.reshape(-1, 8).std(axis=0), rtol=1e-9)  # type: ignore[operator]


class Countdown(gymnasium.Env[Float32, int]):
    """Its first action is not 0."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,))
    action_space = gymnasium.spaces.Discrete(4, start=-2)  # type: ignore[assignment]


def test_an_exported_policy_knows_where_discrete_actions_begin(tmp_path: Path) -> None:
    gymnasium.register("Countdown-v0", entry_point=Countdown)  # type: ignore[arg-type]
    task, other = Task("Countdown-v0"), Task("CartPole-v1")
    policy = Policy.build(PolicyConfig(), [task, other])
    theta = policy.initial(seed=1)
    export_policy(tmp_path / "policy.safetensors", policy, theta, Statistics.empty(policy.tasks))
    page = (Path(__file__).parents[2] / "docs" / "policy-file.md").read_text()
    code = page.split("```python\n")[1].split("```")[0].replace("Hopper-v5", task.id)
    space: dict[str, Any] = {}
    exec(code.replace("policy.safetensors", str(tmp_path / "policy.safetensors")), space)  # noqa: S102
    acting, actions = Acting.of(policy.network(task), theta), set()
    for seen in np.random.default_rng(0).normal(size=(50, 3)):
        action = int(np.argmax(space["act"](seen))) + space["task"]["discrete_start"]
        assert action == acting(seen)
        actions.add(action)
    assert len(actions) > 1
    with safe_open(tmp_path / "policy.safetensors", "numpy") as file:
        layout = json.loads(json.loads(file.metadata()["evergait"])["tasks"])
    assert "discrete_start" not in layout[other.id]


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
    np.testing.assert_allclose(actions_of(policy, theta, WALKER, observations), outputs, atol=1e-6)


def test_what_a_task_uses_is_shared_or_its_own() -> None:
    for heads in ("shared", "separate"):
        policy = Policy.build(PolicyConfig(heads=heads), [HOPPER, SWIMMER])
        parts = policy.active(SWIMMER, "shared") + policy.active(SWIMMER, "own")
        assert sorted(parts) == policy.active(SWIMMER)


SUPPORT = Path(__file__).parents[1] / "support"
WIDTHS = [(600, 3), (20_000, 64, 2), (513, 1000, 4), (3, 5000, 17, 600), (65_536, 1), (1, 65_536)]


def network_of(widths: tuple[int, ...]) -> tuple[Network, int]:
    """Linear and rectified layers in turn, one behind the other in θ; and how long θ is."""
    layers, offset = [], 0
    for i, (n_in, n_out) in enumerate(itertools.pairwise(widths)):
        layers.append(ActiveLayer(offset, offset + n_in * n_out, n_in, n_out, "relu" if i % 2 else "linear"))
        offset = layers[-1].bias + n_out
    edges = np.linspace(-1, 1, widths[-1], dtype=np.float32), np.full(widths[-1], 2, np.float32)
    return Network(tuple(layers), *edges), offset


def slow_action(network: Network, theta: np.ndarray, observation: np.ndarray) -> np.ndarray:
    """A float32 sum in the order of inputs, from the bias on."""
    x = observation.astype(np.float32)
    for layer in network.layers:
        weight = theta[layer.weight : layer.weight + layer.n_in * layer.n_out].reshape(layer.n_out, layer.n_in)
        y = theta[layer.bias : layer.bias + layer.n_out].copy()
        for i in range(layer.n_in):
            y += weight[:, i] * x[i]
        x = np.maximum(y, 0) if layer.activation == "relu" else y
    return network.action_middle + network.action_half_range * x


def slow_pull_back(network: Network, theta: np.ndarray, observations: np.ndarray, squared: bool) -> np.ndarray:
    """Of ones, one observation after another, every sum in the order of its terms."""
    gradient = np.zeros(len(theta))
    for observation in observations:
        values = [observation]
        for layer in network.layers:
            weight = theta[layer.weight : layer.weight + layer.n_in * layer.n_out].reshape(layer.n_out, layer.n_in)
            y = theta[layer.bias : layer.bias + layer.n_out].copy()
            for i in range(layer.n_in):
                y += weight[:, i] * values[-1][i]
            values.append(np.maximum(y, 0) if layer.activation == "relu" else y)
        ahead = np.ones(network.n_actions)
        for layer, x, y in reversed(list(zip(network.layers, values, values[1:], strict=False))):
            ahead = np.where((y > 0) | (layer.activation != "relu"), ahead, 0.0)
            slopes = np.concatenate([np.outer(ahead, x).ravel(), ahead])
            gradient[layer.weight : layer.bias + layer.n_out] += slopes**2 if squared else slopes
            weight = theta[layer.weight : layer.weight + layer.n_in * layer.n_out].reshape(layer.n_out, layer.n_in)
            behind = np.zeros(layer.n_in)
            for out in range(layer.n_out):
                behind += ahead[out] * weight[out]
            ahead = behind
    return gradient


def check_approach(network: Network, theta: np.ndarray, observations: np.ndarray, n_rows: int) -> None:
    """The same as from outputs and a pull-back of the errors; and nothing where nothing is left to learn."""
    random = np.random.default_rng(n_rows)
    targets = random.normal(size=(n_rows, network.n_actions)).astype(np.float32)
    rows = random.integers(0, n_rows, 2 * n_rows + 1).astype(np.uint32)
    errors = targets[rows] - network.outputs(theta, observations[rows])
    before = random.normal(size=len(theta))
    for least in (0.0, np.abs(errors).max()):
        found = before.copy()
        network.approach(theta, observations, targets, rows, found, least)
        slope = network.pull_back(theta, observations[rows], errors / len(rows)) if not least else 0.0
        np.testing.assert_array_equal(found, before + slope)


def check_derivatives() -> None:
    """Rows and widths around the sizes of registers, tiles and blocks; to the bit."""
    random = np.random.default_rng(1)
    for widths, n_rows in itertools.product([(11, 64, 64, 3), (17, 9, 23, 6), (1, 1)], [1, 7, 32, 33, 77]):
        network, n = network_of(widths)
        theta, observations = random.normal(size=n), random.normal(size=(n_rows, widths[0]))
        for squared in (False, True):
            found = network.pull_back(theta, observations, np.ones((n_rows, widths[-1])), squared)
            expected = slow_pull_back(network, theta, observations, squared)
            np.testing.assert_array_equal(found, expected, f"{widths}, {n_rows} rows")
        check_approach(network, theta, observations.astype(np.float32), n_rows)


def check_all() -> None:
    """What every instruction set must pass."""
    check_derivatives()
    for widths in WIDTHS:
        network, n = network_of(widths)
        theta, random = Noise(1, PERTURBATION).normals(0, 0, n), np.random.default_rng(0)
        observation = random.normal(size=widths[0])
        pairs, signs = np.array([0, 7], np.uint32), np.array([0, -1], np.float32)
        rows = Candidates(network, theta, 0.01, Noise(2, PERTURBATION), pairs, signs)
        packed = np.empty((2, network.native.packed_size), np.float32)
        _native.pack_candidates(rows, packed, 2)
        moved = theta + np.float32(-0.01) * rows.noise.normals(7, 0, n)
        for row, parameters in enumerate((theta, moved)):
            found = act(network, packed[row : row + 1], observation)
            np.testing.assert_array_equal(found, slow_action(network, parameters, observation), str(widths))
        stretched = network.action_middle + network.action_half_range * network.outputs(
            theta.astype(float), observation[None]
        )
        np.testing.assert_allclose(stretched[0], slow_action(network, theta, observation), rtol=1e-3, atol=1e-2)
        slope = network.pull_back(theta.astype(float), observation[None], np.ones((1, widths[-1])))
        np.testing.assert_array_equal(
            slope[network.layers[-1].bias :], np.ones(widths[-1]) * (slope[-widths[-1] :] != 0)
        )


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_any_width_has_the_bits_of_numpy_on_every_instruction_set(isa: str) -> None:
    folders = [str(Path(__file__).parent), str(SUPPORT)]
    script = f"import sys; sys.path[:0] = {folders!r}; import test_policy; test_policy.check_all()"
    environment = {**os.environ, "EVERGAIT_ISA": isa, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    if "this machine does not have" in done.stderr:
        pytest.skip(f"no {isa} here")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SUPPORT))


def wide_config(n: int) -> Config:
    stream = (f"careless_environments:Wide{n}-v0",)
    return tiny_config(stream=stream, engine="gymnasium", method=Naive(), policy=PolicyConfig(4, ()), generations=1)


@pytest.mark.usefixtures("wide")
def test_twenty_thousand_observations_can_be_trained_on(tmp_path: Path) -> None:
    run = train(wide_config(20_000), tmp_path / "run", threads=1)
    assert np.isfinite(run.theta).all()
    assert len(run.theta) == 20_000 * 4 + 4 + 4 * 2 + 2


@pytest.mark.usefixtures("wide")
def test_a_check_leaves_the_process_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = (list(sys.path), dict(os.environ), set(gymnasium.registry))
    wide_config(65_536).check()
    assert (list(sys.path), dict(os.environ), set(gymnasium.registry)) == before


@pytest.mark.usefixtures("wide")
def test_more_observations_than_the_limit_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    wide_config(65_536).check()
    words = r"Wide65537-v0': the number of its observations: is 65537; it must be from 1 to 65536"
    with pytest.raises(EvergaitError, match=words):
        train(wide_config(65_537), tmp_path / "run", threads=1)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (PolicyConfig(input_width=65_537), r"policy.input_width: is 65537; it must be from 1 to 65536"),
        (PolicyConfig(hidden=(64, 65_537)), r"policy.hidden\[1\]: is 65537; it must be from 1 to 65536"),
        (
            PolicyConfig(hidden=(4096, 4096)),
            r"policy: the number of its parameters: is \d+; it must be at most 8388608",
        ),
    ],
)
def test_policies_beyond_the_limits_are_refused(policy: PolicyConfig, words: str) -> None:
    with pytest.raises(EvergaitError, match=words):
        Config(stream=("Hopper-v5",), policy=policy).check()


def test_layers_of_other_widths_are_not_moved() -> None:
    narrow, wide = (Policy.build(PolicyConfig(input_width=width, hidden=(6,)), (SWIMMER,)) for width in (4, 8))
    with pytest.raises(EvergaitError, match="it must be as wide as in the other policy, which has 4 inputs"):
        wide.transplant(narrow, narrow.initial(1), seed=2)
