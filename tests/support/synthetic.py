"""Studies that were never trained: ledgers written through the public classes, with curves that we choose."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from small import tiny_config

from evergait.config import Config, Evaluation
from evergait.core.data import to_data, to_toml
from evergait.core.files import canonical_json, sha256, write_json
from evergait.methods import Method, Naive, Replay
from evergait.policy import Statistics
from evergait.store.ledger import Ledger, Record, header_line, record_line
from evergait.store.phases import PhaseStore, identity_hash
from evergait.studies.base import read_study
from evergait.studies.folder import load_results, open_study
from evergait.studies.results import Entry, Results
from evergait.training.frame import order_name
from evergait.training.phases import Phase, plan_phases
from evergait.training.run import Run, open_folder
from evergait.training.state import State

GENERATIONS, EVERY, EPISODES = 12, 2, 3
Curve = Callable[[str, int, float, Sequence[str]], float]
"""(task, stage, share of its generations, stream) → mean return."""


def forgetting(task: str, stage: int, share: float, stream: Sequence[str]) -> float:
    """Rises to 300 in its own stage, and then falls to a tenth in the next."""
    own = list(stream).index(task) if task in stream else 99
    if stage < own:
        return 5.0
    return 300.0 * share if stage == own else 300.0 - 270.0 * min(1.0, share + stage - own - 1)


def keeping(task: str, stage: int, share: float, stream: Sequence[str]) -> float:
    """As above, but keeps nine tenths."""
    low = forgetting(task, stage, share, stream)
    own = list(stream).index(task) if task in stream else 99
    return low if stage <= own else 300.0 - (300.0 - low) / 9


def write_run(
    out: Path,
    config: Config,
    curve: Curve = forgetting,
    n_stages: int | None = None,
    store: Path | None = None,
) -> Run:
    """A run's folder with finished phases; θ is a random policy with some drift."""
    open_folder(config, out, store or out / "phases")
    rng = np.random.default_rng(config.seed)
    for phase in plan_phases(config)[:n_stages]:
        write_phase(PhaseStore(store or out / "phases"), phase, config, curve, rng)
    return Run.load(out, store)


def write_phase(store: PhaseStore, phase: Phase, config: Config, curve: Curve, rng: np.random.Generator) -> None:
    """A finished phase, unless the store has it."""
    policy, stage = config.build_policy(), phase.stage.index
    names = tuple(task.name for task in policy.tasks)
    stream = [task.name for task in config.stream_tasks]
    n_episodes = config.evaluation.episodes
    with store.writing(phase.identity) as writer:
        if writer is None:
            return
        randoms = {name: [4.0, 6.0] for name in names} if stage == 0 else {}
        learning = tuple(task.name for task in phase.stage.tasks)
        writer.append(header_line(Ledger(stage, learning, names, randoms)))
        for generation in range(0, config.generations + 1, config.evaluation.every):
            share = generation / config.generations
            mean = {name: curve(name, stage, share, stream) + rng.normal() for name in names}
            returns = {name: (mean[name] + np.linspace(-1, 1, n_episodes)).tolist() for name in names}
            lengths = {name: [10] * n_episodes for name in names}
            writer.append(record_line(Record(generation, returns, lengths, {"training": 100, "evaluation": 30})))
        theta = policy.initial(config.seed, index=stage + 1)
        middle = str(config.generations // 2)
        state = State(theta, {}, Statistics.empty(policy.tasks), config.generations, snapshots={middle: theta / 2})  # type: ignore[dict-item]
        best = policy.initial(config.seed, index=10 + names.index(learning[0]))
        state = replace(state, best_theta=best, best_return=300.0)
        writer.finish(state.result(), state.metadata(), {"generation": config.generations})


def make_paper_study(path: Path, n_seeds: int) -> Results:
    """Every run of the paper at its full size, none of them trained."""
    rng = np.random.default_rng(0)
    for cell in open_study(read_study("paper").at_scale("full").with_seeds(n_seeds), path):
        for phase in cell.phases:
            write_phase(PhaseStore(path / "phases"), phase, cell.config, forgetting, rng)
    return load_results(path)


def make_config(stream: Sequence[str], seed: int = 0, method: Method | None = None) -> Config:
    """Settings of a synthetic run."""
    return Config(
        stream=tuple(stream),
        seed=seed,
        generations=GENERATIONS,
        pairs=4,
        engine="mujoco",
        evaluation=Evaluation(every=EVERY, episodes=EPISODES, random_policies=2),
        method=method or Naive(),
    )


def make_study(
    path: Path,
    names: tuple[str, str] = ("naive", "replay"),
    n_seeds: int = 1,
    title: str = "A synthetic study",
    tasks: tuple[str, ...] = ("Hopper-v5", "InvertedPendulum-v5"),
) -> Results:
    """Two conditions on two orders: one forgets, one keeps."""
    entries = []
    methods: tuple[tuple[str, Method, Curve], ...] = (
        (names[0], Naive(), forgetting),
        (names[1], Replay(budget=2), keeping),
    )
    for seed in range(n_seeds):
        for number, (name, method, curve) in enumerate(methods):
            for order in (tasks, tasks[::-1]):
                config = make_config(order, seed, method)
                out = path / "runs" / f"{number}-{order[0]}-{seed}"
                # Naive and replay share their first phases in a common store.
                run = write_run(out, config, curve, store=path / "store")
                entries.append(Entry(name, order_name(order), seed, run))
    return Results(title, path, tuple(entries))


def write_foreign_phase(store: Path, learning: str, tasks: Sequence[str]) -> str:
    """A finished phase of tasks that Gymnasium need not know; returns its name."""
    identity = {"learning": [learning], "tasks": list(tasks), "mujoco": "0", "algorithm": 1}
    with PhaseStore(store).writing(identity) as writer:
        assert writer
        writer.append(header_line(Ledger(0, (learning,), tuple(tasks), {task: [1.0] for task in tasks})))
        for generation in (0, GENERATIONS):
            returns = {task: [float(generation), 2.0] for task in tasks}
            lengths = {task: [3, 4] for task in tasks}
            writer.append(record_line(Record(generation, returns, lengths, {"training": 5})))
        state = State(np.zeros(3, np.float32), {}, Statistics({}), GENERATIONS)
        writer.finish(state.result(), state.metadata(), {"generation": GENERATIONS})
    return identity_hash(identity)


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
