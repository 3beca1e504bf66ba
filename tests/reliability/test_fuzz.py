"""Whatever bytes a file has, a loader returns what it should or raises EvergaitError: nothing else."""

import json
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import write_counts
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from small import tiny_config

from evergait.analysis.plane import plane_data
from evergait.config import read_config
from evergait.core.data import to_toml
from evergait.core.errors import EvergaitError
from evergait.core.files import (
    locked,
    parse_toml,
    read_json,
    read_tensors,
    read_toml,
    sha256,
    write_json,
    write_tensors,
)
from evergait.figures.drawing import plane_figure
from evergait.live.answers import Answers, read_curve, to_json
from evergait.paper.study import analyse
from evergait.policy import Policy, PolicyConfig
from evergait.report.gait import moments, recorder
from evergait.report.html import still
from evergait.report.plane import sketch
from evergait.report.redo import facts
from evergait.report.video import frames
from evergait.store.ledger import parse_ledger
from evergait.store.phases import PARTS, PhaseFolder, identity_hash
from evergait.studies.base import parse_study
from evergait.studies.folder import load_results, read_cells
from evergait.studies.progress import study_status
from evergait.studies.results import Results
from evergait.tasks import parse_stream, parse_task
from evergait.training.observer import Observer, Position
from evergait.training.run import Run, train
from evergait.training.state import State
from formats import unpack
from store.test_archive import archive_targets

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


def dump_sealed(data: Any) -> bytes:
    """JSON with a checksum that is right, so that what is behind it is reached."""
    with tempfile.TemporaryDirectory() as folder:
        write_json(Path(folder) / "f", data)
        return (Path(folder) / "f").read_bytes()


def plane_target(scratch: Path) -> Target:
    """A study's plane.json."""
    folder = scratch / "plane"
    unpack("v1", scratch)
    shutil.copytree(scratch / "v1" / "study", folder)  # finished single-task runs of two tasks, and a stream of both
    results = load_results(folder)
    tasks = [entry.run.config.stream[0] for entry in results.entries if entry.condition == "single"]
    analysis = analyse(results)
    assert analysis.scale.is_share
    plane_data(results, threads=1)
    good, content = read_json(folder / "plane.json"), (folder / "plane.json").read_bytes()
    assert plane_data(results, measure=False) == good

    def load(path: Path) -> None:
        path.replace(folder / "plane.json")
        if isinstance(plane_data(results, measure=False), dict):
            plane_figure(analysis, measure=False)
        shown = sketch(read_json(folder / "plane.json"), tasks, analysis.scale)
        json.dumps(shown.data, allow_nan=False)
        drawn = "".join(panel.picture.partition(">")[2] for panel in shown.panels)
        assert "nan" not in drawn
        assert "inf" not in drawn

    return Target("plane.json", load, content, good, dump_sealed)


def gait_target(scratch: Path, trained: Path) -> Iterator[Target]:
    """A gait in the cache: a damaged one is recorded again, and any other can be drawn."""
    run = Run.load(trained)
    moment = moments(run)[-1]
    with closing(recorder("InvertedPendulum-v5", scratch / "gaits")) as one:
        good, robot = one.record(run, moment), one.robot.describe()
        file = scratch / "gaits" / f"{good['id']}.json"
        assert one._read(good["id"])

        def load(path: Path) -> None:
            path.replace(file)
            gait = one.record(run, moment)
            assert (gait["motion"], gait["score"]) == (good["motion"], good["score"])
            still(robot, gait, 0, "it")
            next(frames(robot, gait))

        yield Target("gait", load, file.read_bytes(), read_json(file), dump_sealed)


def status_targets(scratch: Path) -> list[Target]:
    """What the scheduler tells others, of a study with a phase that failed and one that is being trained."""
    folder = scratch / "status"
    folder.mkdir()
    unpack("v1", scratch)
    shutil.copy(scratch / "v1" / "study" / "study.json", folder)
    names = sorted({name for cell in read_cells(folder)[1] for name in cell.phases})
    lock = folder / "phases" / names[0] / "lock"
    lock.parent.mkdir(parents=True)

    def load(path: Path, name: str) -> None:
        path.replace(folder / name)
        try:
            with locked(lock):
                study_status(folder)
        finally:
            (folder / name).unlink()

    failures = dict.fromkeys(names[1:], "no reason")
    running = {names[0]: {"at": "3 of 4 generations", "seconds_left": 75.5}}
    return [
        Target("failures.json", lambda p: load(p, "failures.json"), dump_sealed(failures), failures, dump_sealed),
        Target("running.json", lambda p: load(p, "running.json"), dump_sealed(running), running, dump_sealed),
    ]


def identity_target(scratch: Path, trained: Path) -> Target:
    """A phase's config.toml, in a folder that is named by it."""
    results = Results.of_run(trained)
    run = results.entries[0].run
    good = run.phases[0].path

    def load(path: Path) -> None:
        content = path.read_bytes()
        try:
            folder = scratch / "identity" / identity_hash(parse_toml(content, path))
        except (EvergaitError, ValueError, TypeError):
            folder = scratch / "identity" / good.name
        shutil.copytree(good, folder)
        (folder / "config.toml").write_bytes(content)
        digests = {part: sha256((folder / part).read_bytes()) for part in PARTS}
        write_json(folder / "progress.json", {"status": "done", "sha256": digests})
        entry = replace(results.entries[0], run=Run(trained, run.config, (PhaseFolder(folder),)))
        try:
            facts(replace(results, entries=(entry,)))
        finally:
            shutil.rmtree(folder)

    content = (good / "config.toml").read_bytes()
    return Target("identity", load, content, tomllib.loads(content.decode()), dump_toml)


class Leave(Observer):
    """Ends training where it goes on, or else after a generation."""

    def phase_started(self, at: Position) -> None:
        if at.generation:
            raise KeyboardInterrupt

    def generation_done(self, *_: object) -> None:
        raise KeyboardInterrupt


def checkpoint_target(scratch: Path) -> Target:
    """A phase in training, looked at and gone on with."""
    out = scratch / "training"
    config = tiny_config(policy=PolicyConfig(input_width=3, hidden=(3,)))

    def go_on() -> None:
        with suppress(KeyboardInterrupt):
            train(config, out, threads=1, observers=[Leave()], checkpoint_seconds=0)

    go_on()
    (file,) = out.glob("phases/*/checkpoint.safetensors")
    phase, content, ledger = PhaseFolder(file.parent), file.read_bytes(), (file.parent / "ledger.jsonl").read_bytes()
    tensors, metadata = read_tensors(file)
    lists = {name: tensor.tolist() for name, tensor in tensors.items()}

    def load(path: Path) -> None:
        path.replace(file)
        (phase.path / "ledger.jsonl").write_bytes(ledger)
        phase.ledger()
        go_on()

    def dump(data: Any) -> bytes:
        kinds = {name: tensor.dtype for name, tensor in tensors.items()}
        made = {name: np.array(values, kinds.get(name, np.float32)) for name, values in data.get("tensors", {}).items()}
        text = {**data.get("metadata", {}), "state": json.dumps(data.get("state"))}
        write_tensors(scratch / "checkpoint", made, text)
        return (scratch / "checkpoint").read_bytes()

    data = {"tensors": lists, "metadata": metadata, "state": json.loads(metadata["state"])}
    return Target("checkpoint", load, content, data, dump)


@pytest.fixture(scope="module")
def targets(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Target]]:
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
        path.replace(folder / "study.json")
        try:
            to_json(Answers(folder).everything())
            read_cells(folder)
        finally:
            (folder / "study.json").unlink()

    def load_ledger(path: Path) -> None:
        (path.parent / "ledger.jsonl").write_bytes(path.read_bytes())
        to_json(read_curve(PhaseFolder(path.parent)))
        parse_ledger(path.read_bytes(), path)

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
        Target("ledger", load_ledger, ledger, line, dump_line),
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
        plane_target(scratch),
        *status_targets(scratch),
        identity_target(scratch, trained),
        checkpoint_target(scratch),
        *(Target(*target) for target in archive_targets(scratch, trained)),
    ]
    for gait in gait_target(scratch, trained):
        yield {target.name: target for target in (*found, gait)}


def _text(data: Any) -> bytes:
    return str(data).encode(errors="replace")


def _load_run(path: Path, trained: Path) -> None:
    if not (path.parent / "config.toml").exists():
        (path.parent / "config.toml").write_bytes((trained / "config.toml").read_bytes())
    path.replace(path.parent / "run.json")
    to_json(Answers(path.parent).everything())
    run = Run.load(path.parent)
    _ = [phase.ledger() for phase in run.phases]


NAMES = ("config", "study file", "toml", "json", "ledger", "tensors", "study.json", "progress.json", "run.json")
NAMES += ("plane.json", "gait", "failures.json", "running.json", "identity", "checkpoint")  # type: ignore[assignment]
NAMES += ("columns", "archive")  # type: ignore[assignment]
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
        except (ValueError, TypeError, AttributeError, OverflowError, IndexError):
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
