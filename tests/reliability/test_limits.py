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

from evergait.config import Config, Evaluation
from evergait.core.errors import EvergaitError
from evergait.core.files import LEDGER_LIMIT, LIMIT, read_json, sha256, write_json, write_tensors
from evergait.core.limits import MOST_CELLS
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
    record["evaluations"][task] = {"returns": [1] * (each // 2), "lengths": [1]}
    many = [{**record, "generation": i} for i in range(max(1, n_bytes // each))]
    path.write_bytes(b"\n".join([head, *(json.dumps(r, separators=(",", ":")).encode() for r in many), b""]))
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
