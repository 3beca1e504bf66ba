"""Bits are promises: one stored digest of θ per method, optimizer, shaping, option and engine.

A change that gives other bits on purpose raises the version of the part that it changes (training/phases.py, or
`version` in the part's class), which gives its phases other names, and stores anew: python tests/support/golden.py
"""

import json
import os
import subprocess
import sys
from collections import Counter

import golden
import pytest

from evergait.es import Optimizer
from evergait.methods import Method

pytestmark = pytest.mark.xdist_group("golden")
STORED = json.loads(golden.STORED.read_text())


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, str]]:
    """What the cases end with today."""
    return golden.bits(golden.CASES)


@pytest.mark.parametrize("name", golden.CASES)
def test_the_bits_are_those_that_were_stored(name: str, found: dict[str, dict[str, str]]) -> None:
    before, now = STORED.get(name), found[name]
    assert before, f"{name} has no stored bits; store them: python tests/support/golden.py"
    if before.get("libm") != now.get("libm"):
        pytest.skip("MuJoCo has other bits here: this machine's elementary functions are not those of the stored bits")
    if before["phase"] == now["phase"]:
        assert before["theta"] == now["theta"], "other bits under the same name: raise the version of what changed"
    assert before == now, "the phase has another name; if that is meant, store it: python tests/support/golden.py"


def test_every_case_has_bits_of_its_own(found: dict[str, dict[str, str]]) -> None:
    """A case that ends like another would not notice that its part has changed."""
    alike = {theta for theta, n in Counter(bits["theta"] for bits in found.values()).items() if n > 1}
    assert {name for name, bits in found.items() if bits["theta"] in alike} == {"optimizer plain", "shaping z-score"}


def test_every_part_has_a_case() -> None:
    parts = {part.name for config in golden.CASES.values() for part in config.method.parts}
    assert parts == set(Method.members)
    assert {config.optimizer.name for config in golden.CASES.values()} == set(Optimizer.members)
    assert set(STORED) == set(golden.CASES)


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_planar_bits_on_other_instruction_sets(isa: str) -> None:
    run = subprocess.run(
        [sys.executable, golden.__file__, "--planar"],
        env={**os.environ, "EVERGAIT_ISA": isa, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "this machine does not have" in run.stderr:
        pytest.skip(f"this machine does not have {isa}")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {name: bits for name, bits in STORED.items() if golden.is_planar(name)}
