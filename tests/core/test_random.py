"""Noise against a published vector, a slow reference, and the distribution that it must have."""

import hashlib
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergait import _native
from evergait.core.random import PERTURBATION, Noise, uniform


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x32-10 as in the paper of Salmon et al., one word at a time."""
    x, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(b >> 32) ^ x[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ x[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return x


def reference_normal(seed: int, generation: int, purpose: int, index: int, j: int) -> float:
    x = philox([j // 4, index, generation, purpose], [seed & 0xFFFFFFFF, seed >> 32])
    a, b = x[:2] if j % 4 < 2 else x[2:]
    radius, angle = math.sqrt(-2 * math.log((a + 1) / 2**32)), 2 * math.pi * (b / 2**32 - 1 / 8)
    return radius * (math.sin(angle) if j % 2 else math.cos(angle))


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # kat_vectors of the Random123 distribution, philox4x32 10
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_reference_gives_the_published_vectors(counter: list[int], key: list[int], expected: list[int]) -> None:
    assert philox(counter, key) == expected


def test_core_gives_the_published_vector_of_zeros() -> None:
    assert _native.words(Noise(0, 0), 0, 4).tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@given(
    seed=st.integers(0, 2**64 - 1),
    generation=st.integers(0, 2**32 - 1),
    purpose=st.integers(0, 2**32 - 1),
    index=st.integers(0, 2**32 - 1),
    n=st.integers(1, 300),
)
def test_words_equal_the_reference(seed: int, generation: int, purpose: int, index: int, n: int) -> None:
    noise = Noise(seed, purpose % 256, generation, purpose // 256)
    words = _native.words(noise, index, n).tolist()
    key = [seed & 0xFFFFFFFF, seed >> 32]
    expected = [philox([j // 4, index, generation, purpose], key)[j % 4] for j in range(n)]
    assert words == expected


@given(
    seed=st.integers(0, 2**64 - 1), index=st.integers(0, 2**32 - 1), begin=st.integers(0, 500), n=st.integers(0, 150)
)
def test_normals_equal_the_reference_to_float32(seed: int, index: int, begin: int, n: int) -> None:
    noise = Noise(seed, PERTURBATION, generation=7, stage=3)
    expected = [reference_normal(seed, 7, 3 * 256 + PERTURBATION, index, j) for j in range(begin, begin + n)]
    np.testing.assert_allclose(noise.normals(index, begin, begin + n), expected, rtol=2e-7, atol=1e-10)


def test_normals_are_normal() -> None:
    sample = np.concatenate([Noise(1, PERTURBATION, g).normals(p, 0, 5000) for g in range(5) for p in range(40)])
    n = len(sample)
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(np.mean(sample.astype(float) ** power) - moment) < 4 * math.sqrt(spread / n)
    below = np.mean(sample[:, None] < np.linspace(-3, 3, 25), axis=0)
    expected = [0.5 * math.erfc(-x / math.sqrt(2)) for x in np.linspace(-3, 3, 25)]
    assert np.abs(below - expected).max() < 1.63 / math.sqrt(n)  # Kolmogorov-Smirnov, 1 %


def test_neighbouring_counters_are_uncorrelated() -> None:
    rows = np.stack([Noise(s, PERTURBATION, g, t).normals(p, 0, 4096) for s, g, t, p in np.ndindex(2, 3, 2, 3)])
    off_diagonal = np.corrcoef(rows) - np.eye(len(rows))
    assert np.abs(off_diagonal).max() < 5 / math.sqrt(4096)


def test_uniform_lies_in_the_unit_interval() -> None:
    assert uniform(np.array([0, 2**32 - 1], np.uint32)).tolist() == [0.0, 1 - 2.0**-24]


@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_gradient_is_the_sum_over_pairs_in_order(n_threads: int) -> None:
    pairs, weights = np.array([3, 0, 9], np.uint32), np.array([0.3, -1.5, 2.0])
    noise, gradient = Noise(5, PERTURBATION, 2), np.zeros(700)
    _native.accumulate_noise(noise, pairs, weights, 10, 650, gradient, n_threads)
    expected = np.zeros(700)
    for pair, weight in zip(pairs, weights, strict=True):
        expected[10:650] += weight * noise.normals(int(pair), 10, 650).astype(np.float64)
    assert (gradient == expected).all()


def test_every_instruction_set_gives_the_same_bits() -> None:
    code = """
from types import SimpleNamespace
import numpy as np
from evergait import _native as native
from evergait.core.random import Noise
from evergait.policy import ActiveLayer, Network
layers = (
    ActiveLayer(0, 704, 11, 64, "tanh"), ActiveLayer(768, 4864, 64, 64, "relu"), ActiveLayer(4928, 5120, 64, 3, "tanh")
)
network = Network(layers, np.zeros(3, np.float32), np.ones(3, np.float32))
theta = Noise(3, 0).normals(0, 0, 5200)
packed = np.zeros((9, network.native.packed_size), np.float32)
signs, pairs = np.array([1, -1, 0] * 3, np.float32), np.arange(9, dtype=np.uint32)
rows = SimpleNamespace(network=network, theta=theta, sigma=0.1, noise=Noise(5, 0, 1), pair=pairs, sign=signs)
native.pack_candidates(rows, packed, 2)
observations = Noise(4, 0).normals(0, 0, 99).astype(float).reshape(9, 11)
actions = np.zeros((9, 3), np.float32)
native.act(network.native, packed, observations, actions, 2)
gradient = np.zeros(5200)
native.accumulate_noise(Noise(1, 3, 2), np.arange(50, dtype=np.uint32), np.linspace(-1, 1, 50), 0, 5200, gradient, 2)
slopes = np.zeros(5200)
for squared in (False, True):
    slopes += network.pull_back(theta.astype(float), observations, actions.astype(float), squared)
import hashlib
parts = b"".join(part.tobytes() for part in (theta, packed, actions, gradient, slopes))
print(native.ISA, hashlib.sha256(parts).hexdigest())
"""
    found = {}
    for isa in ("baseline", "avx2", "avx512"):
        environment = {**os.environ, "EVERGAIT_ISA": isa}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            name, digest = done.stdout.split()
            assert name == isa
            found[isa] = digest
        else:
            assert "does not have" in done.stderr
    assert "baseline" in found
    assert len(set(found.values())) == 1
    assert len(found["baseline"]) == hashlib.sha256().digest_size * 2
