"""The examples run, small."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str, folder: Path) -> str:
    assert len((EXAMPLES / name).read_text().splitlines()) <= 80
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_cem_improves(tmp_path: Path) -> None:
    out = run(
        "vector_cem.py", "--task", "InvertedPendulum-v5", "--generations", "8", "--population", "64", folder=tmp_path
    )
    assert "generation 7" in out
    assert float(out.split("mean policy: ")[1].split()[0]) > 200


@pytest.mark.skipif(importlib.util.find_spec("ribs") is None, reason="pyribs is the example's own dependency, not ours")
def test_map_elites_draws_a_map(tmp_path: Path) -> None:
    out = run("vector_map_elites.py", "--iterations", "3", "--batch", "24", folder=tmp_path)
    assert "gaits" in out
    assert (tmp_path / "gaits.png").exists()


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is the example's own dependency, not ours")
def test_ppo_runs_on_both_kinds_of_environments(tmp_path: Path) -> None:
    small = ("--task", "InvertedPendulum-v5", "--steps", "4096", "--envs", "8")
    for where in ((), ("--gymnasium",)):
        out = run("vector_ppo.py", *small, *where, folder=tmp_path)
        assert "4096 steps" in out
        assert float(out.rsplit("mean return ", 1)[1]) > 5
