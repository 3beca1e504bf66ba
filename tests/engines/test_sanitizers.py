"""Small cases of every kernel, and damaged descriptions, under the address and undefined-behaviour sanitizers."""

import shutil
import subprocess
from pathlib import Path

import pytest
from oracles import TASKS

from evergait.engines.planar.robot import compile_robot
from evergait.tasks import parse_task

ROOT = Path(__file__).parents[2]
SOURCES = ("native/planar.cpp", "native/kernels.cpp", "native/checks.cpp", "native/planar/description.cpp")
FLAGS = "-std=c++17 -O1 -g1 -ffp-contract=off -fno-math-errno -Wno-psabi -DEVERGAIT_RUNTIME_TREES"
CHECKS = "-fno-var-tracking -fsanitize=address,undefined -fno-sanitize-recover=all"


def test_no_kernel_leaves_its_arrays(tmp_path: Path) -> None:
    if not shutil.which("g++"):
        pytest.skip("there is no C++ compiler")
    parts = [(ROOT / name, tmp_path / f"{i}.o") for i, name in enumerate((*SOURCES, "tests/native/sanitized.cpp"))]
    command = ["g++", *FLAGS.split(), *CHECKS.split(), "-I", str(ROOT / "native")]
    compilers = [subprocess.Popen([*command, "-c", str(source), "-o", str(target)]) for source, target in parts]
    codes = [compiler.wait() for compiler in compilers]
    assert not any(codes)
    program = str(tmp_path / "sanitized")
    subprocess.run([*command, *(str(target) for _, target in parts), "-o", program], check=True)
    files = []
    for name in TASKS:
        robot = compile_robot(parse_task(f"{name}@observation_noise=0.1"))
        for part, numbers in (("robot", robot.model.description), ("rules", robot.rules.flat())):
            files.append(str(tmp_path / f"{name}.{part}"))
            numbers.tofile(files[-1])
    done = subprocess.run([program, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000  # damaged descriptions that were refused
