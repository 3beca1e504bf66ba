"""A phase at full scale stays below a ceiling that `evergait doctor` knows."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from faults import write_counts
from many_phases import write_study

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


READ = """
import sys
from pathlib import Path
from evergait.cli import main

assert main(sys.argv[1:]) == 0
(line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(line.split()[1], file=sys.stderr)
"""
SIZES: Mapping[str, tuple[int, ...]] = {
    "status": (10, 1000, 10_000),
    "show": (10, 1000, 10_000),
    "report": (10, 100, 1000),
}
"""Phases of the studies that each is tried on; a report of 10,000 takes the better part of an hour."""
SLOPES = {"status": 16, "show": 16, "report": 64}
"""KiB per phase that each may take."""


def read_peak(command: str, study: Path) -> int:
    """KiB of resident memory at its highest while a command reads a study."""
    words = {"status": ["study", "status"], "show": ["show"], "report": ["report"]}[command]
    more = {"status": [], "show": ["--seed", "1"], "report": ["--output", str(study.parent / "page.html")]}[command]
    code = [sys.executable, "-c", READ, *words, str(study), *more]
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stderr.split()[-1])


def slopes(folder: Path, sizes: Mapping[str, tuple[int, ...]]) -> dict[str, list[float]]:
    """KiB per phase between one size and the next, which must not grow with the size."""
    studies = {n: write_study(folder / f"{n}" / "study", n) for n in {n for found in sizes.values() for n in found}}
    found = {}
    for command, counts in sizes.items():
        peaks = [read_peak(command, studies[n]) for n in counts]
        pairs = zip(peaks, peaks[1:], counts, counts[1:], strict=False)
        found[command] = [(high - low) / (more - less) for low, high, less, more in pairs]
        assert found[command][-1] < SLOPES[command], (command, peaks)
    return found


def test_memory_of_reading_is_linear_in_phases(tmp_path: Path) -> None:
    slopes(tmp_path, {"status": (10, 400), "show": (10, 400)})


@pytest.mark.prove
def test_memory_of_reading_is_linear_up_to_ten_thousand_phases(tmp_path: Path) -> None:
    found = slopes(tmp_path, SIZES)
    note = ", ".join(f"{command} {values[-1]:.1f} KiB per phase" for command, values in found.items())
    write_counts("memory-phases", sum(map(len, SIZES.values())), 0, f"{note}; the report up to 1,000")


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
