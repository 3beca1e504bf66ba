"""A study of any number of finished phases, without the training."""

from dataclasses import replace
from pathlib import Path

from small import tiny_config

from evergait.config import Config
from evergait.core.data import to_data, to_toml
from evergait.core.files import canonical_json, sha256, write_json
from evergait.methods import Naive
from evergait.store.ledger import Ledger, Record, header_line, record_line
from evergait.store.phases import identity_hash
from evergait.studies.results import order_name
from evergait.training.phases import plan_phases

TASKS = ("InvertedPendulum-v5", "Reacher-v5")


def write_study(path: Path, n_phases: int) -> Path:
    """A study's folder of one condition and order with many seeds, two phases each; θ is not kept."""
    config = tiny_config(stream=TASKS, method=Naive())
    first, second = plan_phases(config)
    cells = []
    for seed in range(n_phases // 2):
        before = _write_phase(path / "phases", {**first.identity, "seed": seed}, 0)
        after = _write_phase(path / "phases", {**second.identity, "seed": seed, "parent": before}, 1)
        cells.append(_cell(replace(config, seed=seed), [before, after]))
    write_json(path / "study.json", {"title": "Many", "description": "", "scale": "", "cells": cells})
    return path


def _cell(config: Config, phases: list[str]) -> dict[str, object]:
    described = {"condition": "naive", "order": order_name(config.stream), "seed": config.seed}
    return {**described, "phases": phases, "config": to_data(config)}


def _write_phase(store: Path, identity: dict[str, object], stage: int) -> str:
    name = identity_hash(identity)
    folder = store / name
    folder.mkdir(parents=True)
    randoms = {task: [1.0, 2.0] for task in TASKS} if stage == 0 else {}
    lines = [header_line(Ledger(stage, (TASKS[stage],), TASKS, randoms))]
    for generation in (0, 2, 4):
        values = {task: [float(generation + stage), 1.5] for task in TASKS}
        lines.append(record_line(Record(generation, values, {task: [3, 4] for task in TASKS}, {"training": 5})))
    parts = {"config.toml": to_toml(identity).encode(), "ledger.jsonl": b"".join(lines)}
    for part, content in parts.items():
        (folder / part).write_bytes(content)
    digests = {part: sha256(content) for part, content in parts.items()}
    progress = {"generation": 4, "generations": 4, "status": "done", "sha256": digests}
    sealed = {**progress, "checksum": sha256(canonical_json(progress).encode())}
    (folder / "progress.json").write_text(canonical_json(sealed))  # as write_json does, without waiting for the disk
    return name
