"""The fingerprint tells machines apart on which the `mujoco` engine's bits differ, and no others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evergait.core.versions import libm_fingerprint

FMA = "fma" in Path("/proc/cpuinfo").read_text().split() and "glibc" in os.confstr("CS_GNU_LIBC_VERSION")  # type: ignore[operator]


def elsewhere(**environment: str) -> str:
    """The fingerprint of a process with other surroundings."""
    code = "from evergait.core.versions import libm_fingerprint; print(libm_fingerprint())"
    command = [sys.executable, "-c", code]
    return subprocess.check_output(command, env={**os.environ, **environment}, text=True).strip()


def test_it_is_the_same_in_every_process_and_for_any_number_of_threads() -> None:
    assert elsewhere() == elsewhere(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1") == libm_fingerprint()


@pytest.mark.skipif(not FMA, reason="the C library has one variant of its functions on this processor")
def test_it_knows_the_variants_of_the_c_library() -> None:
    assert elsewhere(GLIBC_TUNABLES="glibc.cpu.hwcaps=-FMA") != libm_fingerprint()


@pytest.mark.skipif(not FMA, reason="numpy and BLAS have one variant on this processor")
def test_it_knows_the_variants_of_blas() -> None:
    assert elsewhere(OPENBLAS_CORETYPE="Prescott") != libm_fingerprint()
