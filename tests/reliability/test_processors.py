"""Other elementary functions and another BLAS: planar's bits stay, and what depends on them gets another name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults import write_counts

VARIANTS = {
    "the C library without FMA": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA"},
    "the C library without AVX2": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA"},
    "BLAS for an old processor": {"OPENBLAS_CORETYPE": "Prescott"},
    "NumPy without AVX2 and AVX-512": {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"},
    "baseline instructions": {"EVERGAIT_ISA": "baseline"},
}
SCRIPT = """
import sys, tempfile
from evergait.config import Config, Evaluation
from evergait.es.optimizers import Adam
from evergait.methods import Naive
from evergait.training.run import train

for task in sys.argv[2:]:
    evaluation = Evaluation(every=3, episodes=2, random_policies=1)
    config = Config(
        stream=(task,), generations=3, pairs=4, engine=sys.argv[1], horizon=200, evaluation=evaluation,
        optimizer=Adam(), method=Naive(),
    )
    with tempfile.TemporaryDirectory() as folder:
        run = train(config, folder + "/run", threads=1)
        ledger = (run.phases[0].path / "ledger.jsonl").read_bytes()
        print(task, run.phases[0].name, run.theta_sha256, hash(ledger))
"""


def trained_with(environment: dict[str, str], engine: str, *tasks: str) -> list[tuple[str, ...]]:
    """(task, name, θ, ledger) of short runs in a process with these variables."""
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, engine, *tasks]
    variables = {**os.environ, "PYTHONHASHSEED": "0", **environment}
    said = subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout
    return [tuple(line.split()) for line in said.splitlines()]


def holds(variants: dict[str, dict[str, str]], planar: tuple[str, ...], mujoco: tuple[str, ...]) -> int:
    """The planar engine has the same bits everywhere; the mujoco engine has them wherever it has the same name."""
    n = 0
    for engine, tasks in (("planar", planar), ("mujoco", mujoco)):
        here = trained_with({}, engine, *tasks)
        for environment in variants.values():
            for one, other in zip(here, trained_with(environment, engine, *tasks), strict=True):
                assert one == other or (engine == "mujoco" and one[1] != other[1])
                n += 1
    return n


def test_planar_has_the_same_bits_and_mujoco_another_name(tmp_path: Path) -> None:
    first = "the C library without FMA"
    holds({first: VARIANTS[first]}, ("Hopper-v5", "HalfCheetah-v5"), ("HalfCheetah-v5", "Ant-v5"))


@pytest.mark.prove
def test_no_processor_mixes_bits(tmp_path: Path) -> None:
    planar = ("Hopper-v5", "Swimmer-v5", "Walker2d-v5", "HalfCheetah-v5", "InvertedPendulum-v5")
    n = holds(VARIANTS, planar, ("HalfCheetah-v5", "Ant-v5", "Walker2d-v5", "Pusher-v5"))
    write_counts("processors", n, 0, f"{', '.join(VARIANTS)}; planar: same bits; mujoco: same bits or another name")
