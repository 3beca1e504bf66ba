"""R* played out: the final policies of single-task phases over more episodes than a ledger has.

A best evaluation of ten episodes, picked among a hundred, is a lucky one. references.json in the study's folder has, by
phase, the mean return of its final policy over 50 episodes; a phase's name says all that decides it.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from evergait.core.errors import EvergaitError
from evergait.core.files import read_json, write_json
from evergait.engines import engine_name
from evergait.studies.results import Entry, Results
from evergait.tasks import parse_task
from evergait.training.evaluate import Evaluator
from evergait.training.run import default_threads
from evergait.workers import LocalWorkers

FILE = "references.json"
FORMAT = 1
FINAL_EPISODES = 50


def measured_references(path: Path) -> Mapping[str, float]:
    """Phase → mean return of its final policy on the task that it learnt; empty if nothing was measured."""
    if not (path / FILE).exists():
        return {}
    data = read_json(path / FILE)
    if (data.get("format"), data.get("episodes")) != (FORMAT, FINAL_EPISODES):
        return {}
    returns = data.get("returns")
    if not isinstance(returns, dict) or not all(isinstance(value, float) for value in returns.values()):
        raise EvergaitError(f"{path / FILE}: `returns` must be a table of numbers; it was damaged or edited")
    return returns


def measure_references(results: Results, threads: int | None = None) -> None:
    """Play what is missing, wherever a phase has learnt one task alone and its policy was kept."""
    found = dict(measured_references(results.path))
    first: dict[str, Entry] = {}
    for entry in results.entries:
        phase, ledger = entry.run.phases[0], entry.run.ledgers[0]
        if len(ledger.learning) == 1 and phase.has_policy and phase.name not in found:
            first.setdefault(phase.name, entry)
    if not first:
        return
    workers = LocalWorkers(threads or default_threads())
    try:
        for name, entry in first.items():
            found[name] = _play(entry, workers)
    finally:
        workers.close()
    write_json(results.path / FILE, {"format": FORMAT, "episodes": FINAL_EPISODES, "returns": found})


def _play(entry: Entry, workers: LocalWorkers) -> float:
    run, state = entry.run, entry.run.state(0)
    task = parse_task(run.ledgers[0].learning[0])
    many = replace(run.config.evaluation, episodes=FINAL_EPISODES)
    engines = {task: engine_name(run.config.engine, task)}
    returns, _ = Evaluator(run.policy, engines, workers, many, run.config.seed).measure(
        state.theta, state.statistics, (task,)
    )
    return float(returns[task.name].mean())
