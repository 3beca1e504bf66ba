"""One set of bits for every number of threads and lanes, instruction set, code path and order of candidates."""

import dataclasses
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evergait.engines.planar import PlanarEngine
from planar_reference import episodes

TASKS = ("Hopper-v5", "Walker2d-v5", "Swimmer-v5@observation_noise=0.1", "HalfCheetah-v5", "InvertedDoublePendulum-v5")


def digest(name: str, n_threads: int = 1, n_lanes: int = 0, any_tree: bool = False) -> str:
    request = dataclasses.replace(episodes(name, n=21, horizon=60, sigma=0.2), gather_statistics=True)
    outcome = PlanarEngine(n_lanes, any_tree).run(request, n_threads)
    return hashlib.sha256(
        outcome.returns.tobytes() + outcome.lengths.tobytes() + outcome.statistics.tobytes()
    ).hexdigest()


@pytest.mark.parametrize("name", TASKS)
def test_threads_lanes_and_code_paths(name: str) -> None:
    expected = digest(name)
    assert {digest(name, n_threads=n) for n in (2, 7)} == {expected}
    assert {digest(name, n_lanes=n, any_tree=True) for n in (1, 2, 4, 8)} == {expected}


@pytest.mark.parametrize("name", TASKS)
def test_order_of_candidates(name: str) -> None:
    request = episodes(name, n=21, horizon=60, sigma=0.2)
    order = np.random.default_rng(0).permutation(21)
    mixed = dataclasses.replace(request, pair=request.pair[order], sign=request.sign[order], seed=request.seed[order])
    ours, theirs = PlanarEngine().run(request, 2), PlanarEngine().run(mixed, 2)
    np.testing.assert_array_equal(ours.returns[order], theirs.returns)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_instruction_sets(isa: str) -> None:
    path = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})"
    what = f"print(_native.ISA, *map(digest, {TASKS!r}))"
    script = f"{path}; from evergait import _native; from test_planar_bits import digest; {what}"
    run = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "EVERGAIT_ISA": isa, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "this machine does not have" in run.stderr:
        pytest.skip(f"no {isa} here")
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [isa, *map(digest, TASKS)]
