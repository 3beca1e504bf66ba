"""How much is too much is known before work starts, and what is accepted can be read again."""

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from faults import write_counts
from small import tiny_config, tiny_study
from synthetic import write_study

from evergait.commands.doctor import PHASE_MEMORY
from evergait.config import Config, Evaluation
from evergait.core.data import MOST_CELLS
from evergait.core.errors import EvergaitError
from evergait.core.files import LEDGER_LIMIT, LIMIT, read_json, sha256, write_json, write_tensors
from evergait.methods import Collection, Distill
from evergait.policy import PolicyConfig
from evergait.studies.base import parse_study
from evergait.training.run import Run

Ask = Callable[..., tuple[int, str]]
SECONDS = 20.0
"""Within which a file that is too much must be refused, on a crowded machine."""
STUDY = tiny_study()
ELEVEN = ", ".join(f'"InvertedPendulum-v5@gravity=0.{i}"' for i in range(10, 21))
MANY = ", ".join(f'"InvertedPendulum-v5@gravity={1 + i / 100000}"' for i in range(40_000))
STUDIES = {
    "eleven tasks in all orders": (STUDY.replace('"InvertedPendulum-v5", ', f"{ELEVEN}, "), "there would be"),
    "a milliard seeds": (STUDY.replace('orders = "all"', 'orders = "all"\nseeds = 1000000000'), "there would be"),
    "20,000 seeds": (STUDY.replace('orders = "all"', 'orders = "all"\nseeds = 20000'), f"at most {MOST_CELLS:,}"),
    "40,000 tasks": (STUDY.replace('"InvertedPendulum-v5", ', f"{MANY}, "), "at most"),
    "300,000 phases": (STUDY.replace('orders = "all"', f'orders = ["{">".join(["H"] * 300_000)}"]'), "at most"),
}


def refused_soon(name: str) -> None:
    """A study that is too large is refused with the number and the limit, before it is written out."""
    text, words = STUDIES[name]
    begun = time.monotonic()
    with pytest.raises(EvergaitError, match=words):
        parse_study(text.encode(), "big.toml")
    assert time.monotonic() - begun < SECONDS


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_that_is_too_large_is_refused_before_it_is_written_out(name: str) -> None:
    refused_soon(name)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sigma": math.inf}, "sigma: is inf; it must be finite"),
        ({"generations": 2**32}, "generations: is 4294967296; it must be at most 4,294,967,295"),
        ({"pairs": 2**40}, "pairs: is 1099511627776; it must be at most"),
        ({"episodes": 2**62}, "episodes"),
        ({"pairs": 2**20, "episodes": 16}, "of a generation, at most"),
        ({"horizon": 2**62}, "horizon"),
        ({"evaluation": Evaluation(episodes=2**62)}, "evaluation.episodes"),
        ({"evaluation": Evaluation(snapshots=2**62)}, "evaluation.snapshots"),
        ({"generations": 2**31, "evaluation": Evaluation(every=1)}, "evaluation.every: .* ledger"),
        (
            {
                "generations": 99,
                "policy": PolicyConfig(hidden=(512,) * 12),
                "evaluation": Evaluation(every=1, snapshots=60),
            },
            "a checkpoint would have",
        ),
        (
            {"stream": ("HalfCheetah-v5", "Reacher-v5"), "method": Distill(collection=Collection(2**22, 2**20))},
            "method: is 'distill'; it must be one that keeps fewer observations: .* would have 385875968 bytes",
        ),
    ],
)
def test_a_config_that_could_not_finish_is_refused_before_work(changes: dict[str, object], words: str) -> None:
    with pytest.raises(EvergaitError, match=words):
        tiny_config(**changes).check()


def test_nothing_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    import numpy as np

    with pytest.raises(EvergaitError, match="could not be read again"):
        write_tensors(tmp_path / "t.safetensors", {"a": np.zeros(LIMIT // 8 + 1)}, {})
    with pytest.raises(EvergaitError, match="could not be read again"):
        write_json(tmp_path / "a.json", {"a": "x" * (1 << 24)})
    assert not list(tmp_path.iterdir())


FLAGS: dict[tuple[str, ...], str] = {
    ("train", "--threads", "99999999999999999999"): "threads",
    ("train", "--checkpoint-seconds", "nan"): "checkpoint_seconds",
    ("train", "--sigma", "inf"): "sigma",
    ("train", "--generations", "4294967296"): "it must be at most 4,294,967,295",
    ("eval", "--episodes", "9223372036854775807"): "episodes",
    ("eval", "--threads", "99999999999999999999"): "threads",
    ("eval", "--seed", "-1"): "seed",
    ("verify", "--episodes", "9223372036854775807"): "episodes",
    ("verify", "--tolerance", "nan"): "tolerance",
    ("bench", "--population", "9223372036854775807"): "population",
    ("doctor", "--threads", "99999999999999999999"): "threads",
}


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_flags_out_of_range_are_refused_and_nothing_is_written(
    flags: tuple[str, ...], ask: Ask, trained: Path, tmp_path: Path
) -> None:
    where = {"train": ("--out", tmp_path / "run"), "eval": (trained,), "verify": (trained,)}.get(flags[0], ())
    code, output = ask(*flags, *where)
    assert code == 2
    assert FLAGS[flags] in output
    assert not list(tmp_path.iterdir())


def big_ledger(trained: Path, out: Path, n_bytes: int) -> Path:
    """A copy of a run whose first ledger a stranger has blown up with the cheapest numbers."""
    import shutil

    shutil.copytree(trained, out)
    phase = Run.load(out).phases[0]
    path = phase.path / "ledger.jsonl"
    head, *lines = path.read_bytes().splitlines()
    record = json.loads(lines[-1])
    task = next(iter(record["evaluations"]))
    each = 5_000_000
    record["evaluations"][task] = {part: [1] * (each // 4) for part in ("returns", "lengths")}
    text = json.dumps({**record, "generation": -1}, separators=(",", ":")).encode()
    many = (text.replace(b":-1,", b":%d," % i) for i in range(max(1, n_bytes // each)))
    path.write_bytes(b"\n".join([head, *many, b""]))
    progress = read_json(phase.path / "progress.json")
    progress["sha256"]["ledger.jsonl"] = sha256(path.read_bytes())
    write_json(phase.path / "progress.json", progress)
    return out


@pytest.mark.parametrize("n_bytes", [LEDGER_LIMIT - 5_000_000, 187_000_000])
def test_a_ledger_of_any_size_is_shown_or_refused_in_bounded_memory(
    n_bytes: int, trained: Path, tmp_path: Path
) -> None:
    out = big_ledger(trained, tmp_path / "run", n_bytes)

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

    command = [sys.executable, "-m", "evergait", "show", str(out)]
    shown = subprocess.run(command, preexec_fn=bound, capture_output=True, text=True, check=False)
    assert "Traceback" not in shown.stderr
    assert "memory" not in shown.stderr
    assert shown.returncode == (2 if n_bytes > LEDGER_LIMIT else 0), shown.stderr


@pytest.mark.prove
def test_no_size_gets_through(tmp_path: Path) -> None:
    for name in STUDIES:
        refused_soon(name)
    configs: list[Config] = [replace(tiny_config(), **{name: 2**62}) for name in ("pairs", "episodes", "horizon")]  # type: ignore[arg-type]
    for config in configs:
        with pytest.raises(EvergaitError):
            config.check()
    note = "studies, configs and flags, refused with the number and the limit before work started"
    write_counts("limits", len(STUDIES) + len(configs), 0, note)


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
SIZES = (10, 1000, 10_000)
"""Phases of the studies that each is tried on."""
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


def slopes(folder: Path, commands: tuple[str, ...], sizes: tuple[int, ...]) -> dict[str, list[float]]:
    """KiB per phase between one size and the next, which must not grow with the size."""
    studies = [write_study(folder / f"{n}" / "study", n) for n in sizes]
    found = {}
    for command in commands:
        peaks = [read_peak(command, study) for study in studies]
        pairs = zip(peaks, peaks[1:], sizes, sizes[1:], strict=False)
        found[command] = [(high - low) / (more - less) for low, high, less, more in pairs]
        assert found[command][-1] < SLOPES[command], (command, peaks)
    return found


def test_memory_of_reading_is_linear_in_phases(tmp_path: Path) -> None:
    slopes(tmp_path, ("status", "show"), (10, 400))


@pytest.mark.prove
@pytest.mark.parametrize("command", SLOPES)
def test_memory_of_reading_is_linear_up_to_ten_thousand_phases(command: str, tmp_path: Path) -> None:
    first, then = slopes(tmp_path, (command,), SIZES)[command]
    note = f"{first:.1f} KiB per phase from 10 to 1,000, {then:.1f} from there to 10,000; at most {SLOPES[command]}"
    write_counts(f"memory-{command}", len(SIZES), 0, note)


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
