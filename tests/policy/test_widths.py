"""Policies of any width: the bits of a float32 sum in NumPy on every instruction set, or a clear refusal."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small import tiny_config

from evergait import _native, train
from evergait.config import Config
from evergait.core.errors import EvergaitError
from evergait.core.random import PERTURBATION, Noise
from evergait.methods import Naive
from evergait.policy import ActiveLayer, Candidates, Network, PolicyConfig
from evergait.policy.network import act

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


def check_all() -> None:
    """What every instruction set must pass."""
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
    script = f"import sys; sys.path[:0] = {folders!r}; import test_widths; test_widths.check_all()"
    environment = {**os.environ, "EVERGAIT_ISA": isa, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    if "this machine does not have" in done.stderr:
        pytest.skip(f"no {isa} here")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SUPPORT))


def wide_config(n: int) -> Config:
    stream = (f"wide_environments:Wide{n}-v0",)
    return tiny_config(stream=stream, engine="gymnasium", method=Naive(), policy=PolicyConfig(4, ()), generations=1)


@pytest.mark.usefixtures("wide")
def test_twenty_thousand_observations_can_be_trained_on(tmp_path: Path) -> None:
    run = train(wide_config(20_000), tmp_path / "run", threads=1)
    assert np.isfinite(run.theta).all()
    assert len(run.theta) == 20_000 * 4 + 4 + 4 * 2 + 2


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
