"""Slow proofs of the planar engine, run by `make prove`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from oracles import TASKS, environment

from evergait.engines.planar.model import compile_model
from evergait.tasks import Task

ROOT = Path(__file__).parents[2]
FLAGS = ["-std=c++17", "-ffp-contract=off", "-fno-math-errno", "-Wno-psabi", "-I", str(ROOT / "native")]
NAMES = ("tests/native/fuzz_planar.cpp", "native/planar.cpp", "native/planar/description.cpp")
SOURCES = [str(ROOT / name) for name in NAMES]


@pytest.mark.agree
def test_agreement_with_mujoco_and_speed() -> None:
    """100,000 states and 200 episodes per task against MuJoCo, and the engines' speed; rewrites docs/physics.md."""
    subprocess.run([sys.executable, str(ROOT / "benchmarks" / "physics.py")], check=True)


@pytest.mark.agree
def test_where_the_time_goes() -> None:
    """Shares of time by part, operations per step and their share of the machine's peak; rewrites docs/physics.md."""
    missing = [name for name in ("perf", "valgrind", "addr2line", "objdump") if not shutil.which(name)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    subprocess.run([sys.executable, str(ROOT / "benchmarks" / "training_profile.py")], check=True)


def describe(folder: Path, name: str) -> list[str]:
    model = compile_model(environment(Task(name)).model)
    model.description.tofile(folder / name)
    return [str(folder / name), str(model.n_dofs), str(model.n_actuators)]


@pytest.mark.prove
def test_fuzz_under_sanitizers(tmp_path: Path) -> None:
    """Ten million MuJoCo steps from wild states: no report by the address and undefined-behaviour sanitizers."""
    program = str(tmp_path / "fuzz")
    checks = ["-O1", "-g1", "-fno-var-tracking", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["g++", *FLAGS, *checks, *SOURCES, "-o", program], check=True)
    for name in TASKS:
        subprocess.run([program, *describe(tmp_path, name), "1000", "45", "2"], check=True)


@pytest.mark.prove
def test_same_bits_on_aarch64(tmp_path: Path) -> None:
    """The core cross-compiled and run under qemu-user gives the hash of this machine."""
    native, foreign = str(tmp_path / "native"), str(tmp_path / "foreign")
    try:
        subprocess.run(["qemu-aarch64", "--version"], check=True, capture_output=True)
        subprocess.run(["aarch64-linux-gnu-g++", *FLAGS, "-O3", "-static", *SOURCES, "-o", foreign], check=True)
    except FileNotFoundError:
        pytest.skip("needs Debian's g++-aarch64-linux-gnu and qemu-user")
    subprocess.run(["g++", *FLAGS, "-O3", *SOURCES, "-o", native], check=True)
    for name in TASKS:
        arguments = [*describe(tmp_path, name), "64", "4", "2"]
        here = subprocess.run([native, *arguments], check=True, capture_output=True).stdout
        assert subprocess.run(["qemu-aarch64", foreign, *arguments], check=True, capture_output=True).stdout == here
