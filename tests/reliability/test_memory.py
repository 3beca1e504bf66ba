"""A phase at full scale stays below a ceiling that `evergait doctor` knows."""

import subprocess
import sys
from pathlib import Path

import pytest
from faults import write_counts

from evergait.commands.doctor import PHASE_MEMORY

SCRIPT = """
import dataclasses, sys
from pathlib import Path
from evergait import Config, train
from evergait.config import Evaluation, preset

small = Evaluation(every=5, random_policies=2)
config = dataclasses.replace(preset("paper"), stream=(sys.argv[2],), generations=int(sys.argv[3]), evaluation=small)
assert (config.pairs, config.engine) == (384, "auto")
run = train(config, sys.argv[1])
assert set(run.phases[0].identity()["engine"].values()) == {"planar"}
(line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(line.split()[1])  # not ru_maxrss, which begins with what the parent had
"""


def peak(folder: Path, task: str, n_generations: int) -> int:
    """Bytes of resident memory at its highest."""
    command = [sys.executable, "-c", SCRIPT, str(folder / task), task, str(n_generations)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return 1024 * int(done.stdout.split()[-1])


def test_a_phase_at_full_scale_stays_below_the_ceiling(tmp_path: Path) -> None:
    assert peak(tmp_path, "Hopper-v5", 2) < PHASE_MEMORY


@pytest.mark.prove
def test_memory_does_not_grow(tmp_path: Path) -> None:
    peaks = {}
    for task in ("Hopper-v5", "Swimmer-v5", "Walker2d-v5"):
        peaks[task] = peak(tmp_path, task, 10)
        assert peaks[task] < PHASE_MEMORY
    short, long = (peak(tmp_path / str(n), "Hopper-v5", n) for n in (10, 60))
    assert long < short + 16 * 2**20
    figures = ", ".join(f"{task} {value / 2**20:.0f} MiB" for task, value in peaks.items())
    write_counts("memory", len(peaks) + 2, 0, f"λ = 768, planar: {figures}; ceiling {PHASE_MEMORY / 2**20:.0f} MiB")
