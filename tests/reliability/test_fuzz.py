"""Whatever bytes a file has, a loader returns what it should or raises EvergaitError: nothing else."""

import json
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import write_counts
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from evergait.config import read_config
from evergait.data import to_toml
from evergait.files import read_json, read_tensors, read_toml, write_tensors
from evergait.ledger import parse_ledger
from evergait.policy import Policy
from evergait.run import Run
from evergait.state import State
from evergait.store import PhaseFolder
from evergait.studies.base import parse_study
from evergait.studies.folder import read_cells
from evergait.tasks import parse_stream, parse_task
from evergait.types import EvergaitError

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
)


def changed(original: bytes) -> st.SearchStrategy[bytes]:
    """A valid file with a few bytes replaced, inserted or taken away."""

    def apply(cuts: list[tuple[int, int, bytes]]) -> bytes:
        content = original
        for place, n_removed, inserted in cuts:
            at = place % (len(content) + 1)
            content = content[:at] + inserted + content[at + n_removed :]
        return content

    cut = st.tuples(st.integers(0, 1 << 20), st.integers(0, 20), st.binary(max_size=6))
    return st.lists(cut, min_size=1, max_size=4).map(apply)


def swapped(data: Any) -> st.SearchStrategy[Any]:
    """Valid data of which one part, at any depth, is something else."""
    if isinstance(data, dict) and data:
        key = st.sampled_from(sorted(data))
        inside = key.flatmap(lambda k: swapped(data[k]).map(lambda value: {**data, k: value}))
        gone = key.map(lambda k: {other: value for other, value in data.items() if other != k})
        return inside | gone | trees
    if isinstance(data, list) and data:
        place = st.integers(0, len(data) - 1)
        return place.flatmap(lambda i: swapped(data[i]).map(lambda value: [*data[:i], value, *data[i + 1 :]])) | trees
    return trees


def load_state(path: Path, policy: Policy) -> None:
    State.load(*read_tensors(path), policy, path)


class Target:
    """A loader, a file that it likes, and how its content is made anew from data, if it can be."""

    def __init__(self, name: str, load: Callable[[Path], object], good: bytes, data: Any, dump: Any) -> None:
        self.name, self.load, self.good, self.data, self.dump = name, load, good, data, dump


def dump_json(data: Any) -> bytes:
    return json.dumps(data).encode()


def dump_toml(data: Any) -> bytes:
    return to_toml(data).encode()


@pytest.fixture(scope="module")
def targets(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    run = Run.load(trained)
    phase = run.phases[1].path
    scratch = tmp_path_factory.mktemp("fuzz")
    study = b'title = "T"\ntasks = ["Hopper-v5"]\nseeds = 2\n[base]\npairs = 4\n[conditions.naive]\nmethod = "naive"\n'
    cell = {"condition": "naive", "order": "x", "seed": 0, "phases": ["abc"], "config": {"stream": ["Hopper-v5"]}}
    cells = {"title": "T", "description": "", "scale": "", "cells": [cell]}
    ledger = (phase / "ledger.jsonl").read_bytes()
    line = json.loads(ledger.splitlines()[1])
    tensors, metadata = read_tensors(phase / "theta.safetensors")
    numbers = json.loads(metadata["state"])

    def dump_line(data: Any) -> bytes:
        return ledger.splitlines()[0] + b"\n" + json.dumps(data).encode() + b"\n"

    def dump_state(data: Any) -> bytes:
        write_tensors(scratch / "state", tensors, {"state": json.dumps(data)})
        return (scratch / "state").read_bytes()

    def load_study(path: Path) -> None:
        folder = path.parent
        (folder / "study.json").write_bytes(path.read_bytes())
        try:
            read_cells(folder)
        finally:
            (folder / "study.json").unlink()

    def load_progress(path: Path) -> None:
        path.replace(path.parent / "progress.json")
        folder = PhaseFolder(path.parent)
        folder.is_done()

    run_data = read_json(trained / "run.json")
    progress = read_json(phase / "progress.json")
    found = [
        Target("config", read_config, run.config.to_toml().encode(), tomllib.loads(run.config.to_toml()), dump_toml),
        Target(
            "study file", lambda p: parse_study(p.read_bytes(), "s"), study, tomllib.loads(study.decode()), dump_toml
        ),
        Target("toml", read_toml, study, {}, dump_toml),
        Target("json", read_json, (trained / "run.json").read_bytes(), {}, dump_json),
        Target("ledger", lambda p: parse_ledger(p.read_bytes(), p), ledger, line, dump_line),
        Target(
            "tensors",
            lambda p: load_state(p, run.policy),
            (phase / "theta.safetensors").read_bytes(),
            numbers,
            dump_state,
        ),
        Target("study.json", load_study, dump_json(cells), cells, dump_json),
        Target("progress.json", load_progress, (phase / "progress.json").read_bytes(), progress, dump_json),
        Target("run.json", lambda p: _load_run(p, trained), (trained / "run.json").read_bytes(), run_data, dump_json),
        Target("stream", lambda p: parse_stream([p.read_bytes().decode(errors="replace")]), b"H>S>W", "H>S", _text),
        Target(
            "task", lambda p: parse_task(p.read_bytes().decode(errors="replace")), b"Hopper-v5@gravity=1", "", _text
        ),
    ]
    return {target.name: target for target in found}


def _text(data: Any) -> bytes:
    return str(data).encode(errors="replace")


def _load_run(path: Path, trained: Path) -> None:
    if not (path.parent / "config.toml").exists():
        (path.parent / "config.toml").write_bytes((trained / "config.toml").read_bytes())
    path.replace(path.parent / "run.json")
    run = Run.load(path.parent)
    _ = [phase.ledger() for phase in run.phases]


NAMES = ("config", "study file", "toml", "json", "ledger", "tensors", "study.json", "progress.json", "run.json")
WORDS = ("stream", "task")


def fuzz(target: Target, folder: Path, n_examples: int) -> int:
    """So many files; the number that were refused."""
    counts = {"tried": 0, "refused": 0}
    path = folder / "file"

    def attempt(content: bytes) -> None:
        counts["tried"] += 1
        path.write_bytes(content)
        try:
            target.load(path)
        except EvergaitError as error:
            counts["refused"] += 1
            assert str(error)  # noqa: PT017 - it must say something

    def attempt_data(data: Any) -> None:
        try:
            content = target.dump(data)
        except (ValueError, TypeError, AttributeError, OverflowError):
            return  # nothing that could be written
        attempt(content)

    kinds = ((changed(target.good), attempt), (st.binary(max_size=200), attempt), (swapped(target.data), attempt_data))
    for strategy, check in kinds:
        quick = settings(max_examples=n_examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        seed(1)(quick(given(strategy)(check)))()
    return counts["tried"]


@pytest.mark.parametrize("name", [*NAMES, *WORDS])
def test_loaders(targets: dict[str, Target], name: str, tmp_path: Path) -> None:
    target = targets[name]
    (tmp_path / "file").write_bytes(target.good)
    target.load(tmp_path / "file")
    fuzz(target, tmp_path, 40)


@pytest.mark.prove
def test_loaders_at_length(targets: dict[str, Target], tmp_path: Path) -> None:
    n_tried = sum(fuzz(target, tmp_path, 500) for target in targets.values())
    write_counts("fuzz", n_tried, 0, f"files made by Hypothesis for {len(targets)} loaders")


@given(st.dictionaries(st.text(), st.lists(st.floats(allow_nan=False, allow_infinity=False)), max_size=4), st.data())
def test_tensors_and_text_come_back(data: dict[str, list[float]], more: st.DataObject) -> None:
    metadata = more.draw(st.dictionaries(st.text(), st.text(), max_size=3))
    metadata.pop("sha256", None)
    data.pop("__metadata__", None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        write_tensors(path, {name: np.array(values) for name, values in data.items()}, metadata)
        tensors, read = read_tensors(path)
    assert read == metadata
    assert {name: tensor.tolist() for name, tensor in tensors.items()} == data
