"""One set of bits for every number of threads and lanes, instruction set, code path and order of candidates."""

import dataclasses
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from planar_reference import episodes

from evergait import _native
from evergait.engines.planar.engine import PlanarEngine

TASKS = ("Hopper-v5", "Walker2d-v5", "Swimmer-v5@observation_noise=0.1", "HalfCheetah-v5", "InvertedDoublePendulum-v5")


def digest(name: str, n_threads: int = 1, n_lanes: int = 0, any_tree: bool = False) -> str:
    request = dataclasses.replace(episodes(name, n=21, horizon=60, sigma=0.2), gather_statistics=True)
    outcome = PlanarEngine(n_lanes, any_tree).run(request, n_threads)
    return hashlib.sha256(
        outcome.returns.tobytes() + outcome.lengths.tobytes() + outcome.statistics.tobytes()
    ).hexdigest()


def digests() -> set[str]:
    """Of all tasks, by specialised and general code, with as many lanes as a register holds and with the fewest."""
    ways = [(0, False), *((lanes, True) for lanes in _native.PLANAR_LANES)]
    return {" ".join(digest(name, 1, *way) for name in TASKS) for way in ways}


@pytest.mark.parametrize("name", TASKS)
def test_threads(name: str) -> None:
    assert len({digest(name, n_threads=n) for n in (1, 2, 7)}) == 1


@pytest.mark.parametrize("name", TASKS)
def test_order_of_candidates(name: str) -> None:
    request = episodes(name, n=21, horizon=60, sigma=0.2)
    order = np.random.default_rng(0).permutation(21)
    mixed = dataclasses.replace(request, pair=request.pair[order], sign=request.sign[order], seed=request.seed[order])
    ours, theirs = PlanarEngine().run(request, 2), PlanarEngine().run(mixed, 2)
    np.testing.assert_array_equal(ours.returns[order], theirs.returns)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_instruction_sets_lanes_and_code_paths(isa: str) -> None:
    path = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})"
    what = "print(_native.ISA, *_native.PLANAR_LANES, *digests(), sep='|')"
    script = f"{path}; from evergait import _native; from test_planar_bits import digests; {what}"
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
    lanes = {"baseline": ("1", "2"), "avx2": ("4", "4"), "avx512": ("8", "8")}[isa]
    assert run.stdout.strip().split("|") == [isa, *lanes, " ".join(map(digest, TASKS))]
