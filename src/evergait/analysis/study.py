"""A study, analysed: the one object that the page, figures, tables and commands draw from, and its scale.

R* is played out over more episodes than a ledger has, for a best evaluation of ten episodes, picked among a hundred,
is a lucky one. references.json in the study's folder has, by phase, the mean return of its final policy over 50
episodes; a phase's name says all that decides it. A policy with an episode that has no finite return is among its
"undefined" ones: it has been played, and has no value.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from evergait.analysis.groups import Group, Measure, Values, group_entries, table_of, without_unfinished
from evergait.config import Config
from evergait.core.errors import EvergaitError
from evergait.core.files import parse_object, write_json
from evergait.engines import engine_name
from evergait.methods import Naive
from evergait.scores.metrics import Metrics
from evergait.scores.scale import Scale, Source, scale_of
from evergait.store.archive import read_beside
from evergait.store.ledger import Ledger, best_of
from evergait.studies.results import Entry, Results
from evergait.tasks import parse_task
from evergait.training.evaluate import Evaluator
from evergait.training.run import default_threads
from evergait.workers import LocalWorkers


class Published(Protocol):
    """Numbers that somebody else published for the same runs, to stand beside ours."""

    def single_task(self, task: str) -> float | None:
        """Best evaluation of single-task training."""

    def multi_task(self, config: Config, task: str) -> float | None:
        """Best evaluation of multi-task training."""

    def extremum(self, config: Config, order: str, step: int, task: str, which: str) -> float | None:
        """Best (`max`) or worst (`min`) evaluation of a task in a phase, steps counted from 1."""


@dataclass(frozen=True)
class Analysis:
    """Everything that is computed from results goes through this."""

    results: Results
    scales: Mapping[str, Scale]
    """By condition; the same one for all, unless the study asks for the paper's R̂."""
    published: Published | None = None
    """Only in a study that is somebody's published one."""

    @cached_property
    def _metrics(self) -> dict[int, Metrics]:
        return {id(e): Metrics(e.run.ledgers, self.scales[e.condition]) for e in self.results.entries}

    def metrics(self, entry: Entry) -> Metrics:
        """The measures of one run."""
        return self._metrics[id(entry)]

    @property
    def scale(self) -> Scale:
        """What values of the study are called and whether they are shares; conditions differ in R* at most."""
        return next(iter(self.scales.values()), Scale(source="nothing is finished"))

    @cached_property
    def scale_words(self) -> str:
        """What values mean, and where R* comes from."""
        told = {scale.words: scale for scale in self.scales.values()}
        if len(told) == 1:
            return next(iter(told))
        parts = []
        for words, scale in told.items():
            names = ", ".join(name for name, other in self.scales.items() if other.words == words)
            parts.append(f"For {names}: {words.removeprefix(scale.meaning).strip()}")
        return " ".join([self.scale.meaning, *parts])

    @cached_property
    def all_groups(self) -> list[Group]:
        """Every condition on every order, over its seeds."""
        return group_entries(self.results.entries, self.metrics)

    @cached_property
    def groups(self) -> list[Group]:
        """Those that are shown: unfinished streams only where there is nothing else."""
        return without_unfinished(self.all_groups)

    @cached_property
    def streams(self) -> list[Group]:
        """Those without single-task baselines, unless there is nothing else."""
        return [group for group in self.groups if not group.is_baseline] or self.groups

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Every task, in the order in which streams learn them: its place decides its colour everywhere."""
        learnt = [task for group in self.groups for learning in group.learning for task in learning]
        return tuple(dict.fromkeys([*learnt, *(task for group in self.groups for task in group.tasks)]))

    def finished(self, condition: str) -> list[Entry]:
        """The entries of a condition whose streams are trained to the end."""
        return [entry for entry in self.results.entries if entry.condition == condition and entry.run.is_done]

    def config(self, condition: str) -> Config:
        """The settings of a condition, in its first run."""
        return next(entry.run.config for entry in self.results.entries if entry.condition == condition)

    def gather(self, condition: str, measure: Measure, orders: Sequence[str] = ()) -> Values:
        """A measure of every finished run of a condition."""
        chosen = [entry for entry in self.finished(condition) if not orders or entry.order in orders]
        return table_of({(entry.seed, entry.order): measure(self.metrics(entry)) for entry in chosen})

    def orders(self, condition: str) -> list[str]:
        """The orders on which a condition has finished runs."""
        return list(dict.fromkeys(entry.order for entry in self.finished(condition)))


FILE = "references.json"
FORMAT = 1
FINAL_EPISODES = 50


def measured_references(path: Path) -> Mapping[str, float]:
    """Phase → mean return of its final policy on the task that it learnt; empty if nothing was measured.

    Not a number where the policy was played and an episode had no finite return.
    """
    content = read_beside(path / "phases", FILE)
    if content is None:
        return {}
    data = parse_object(content, path / FILE)
    if (data.get("format"), data.get("episodes")) != (FORMAT, FINAL_EPISODES):
        return {}
    returns = data.get("returns")
    if not isinstance(returns, dict) or not all(isinstance(value, float) for value in returns.values()):
        raise EvergaitError(f"{path / FILE}: `returns` must be a table of numbers; it was damaged or edited")
    undefined = data.get("undefined", [])
    if not isinstance(undefined, list) or not all(isinstance(name, str) for name in undefined):
        raise EvergaitError(f"{path / FILE}: `undefined` must be a list of phases; it was damaged or edited")
    return {**returns, **dict.fromkeys(undefined, math.nan)}


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
    undefined = [name for name, value in found.items() if not math.isfinite(value)]
    returns = {name: value for name, value in found.items() if math.isfinite(value)}
    data = {"format": FORMAT, "episodes": FINAL_EPISODES, "returns": returns}
    write_json(results.path / FILE, data | ({"undefined": undefined} if undefined else {}))


def _play(entry: Entry, workers: LocalWorkers) -> float:
    run, state = entry.run, entry.run.state(0)
    task = parse_task(run.ledgers[0].learning[0])
    many = replace(run.config.evaluation, episodes=FINAL_EPISODES)
    engines = {task: engine_name(run.config.engine, task)}
    returns, _ = Evaluator(run.policy, engines, workers, many, run.config.seed).measure(
        state.theta, state.statistics, (task,)
    )
    return float(returns[task.name].mean())


NAIVE = Naive()


def analyse_by_score(results: Results, references: Mapping[str, float]) -> Analysis:
    """One scale for every condition: a score means the same in every row."""
    if not results.entries:
        return Analysis(results, {})
    runs = [entry.run for entry in results.entries]
    phases = {phase.name: ledger for run in runs for phase, ledger in zip(run.phases, run.ledgers, strict=True)}
    ledgers = list(phases.values())  # each once, however many runs share it
    own = single_task_source(results, settings(results.baselines[0].run.config)) if results.baselines else None
    scale = scale_of(ledgers, references, own)
    return Analysis(results, dict.fromkeys((entry.condition for entry in results.entries), scale))


def settings(config: Config) -> Config:
    """What two runs have in common if their first phases are the same training: all but stream, seed and method."""
    return replace(config, stream=(), tasks=(), seed=0, method=NAIVE)


def single_task_phases(results: Results, shared: Config) -> dict[str, dict[int, tuple[str, Ledger]]]:
    """Task → seed → name and ledger of the phase that learnt it alone; a stream's first phase is one."""
    found: dict[str, dict[int, tuple[str, Ledger]]] = {}
    for entry in sorted(results.entries, key=lambda entry: not entry.is_baseline):
        first = entry.run.ledgers[0]
        if len(first.learning) == 1 and settings(entry.run.config) == shared:
            phase = entry.run.phases[0].name if entry.run.phases else ""
            found.setdefault(first.learning[0], {}).setdefault(entry.seed, (phase, first))
    return found


def single_task_source(results: Results, shared: Config) -> Source:
    """R* of every task: the best of all seeds' final policies, over 50 episodes each where those were played.

    A policy without a finite return is no candidate. A task that has no other has no R* here: its last evaluations do
    not stand in for it, for they are of another kind than what the other tasks are measured by.
    """
    phases = single_task_phases(results, shared)
    played = measured_references(results.path)
    names = [name for by_seed in phases.values() for name, _ in by_seed.values()]
    if names and all(name in played for name in names):
        found = {task: [played[name] for name, _ in by_seed.values()] for task, by_seed in phases.items()}
        how = f"{FINAL_EPISODES} episodes each"
    else:
        found = {
            task: [ledger.records[-1].mean(task) for _, ledger in by_seed.values()] for task, by_seed in phases.items()
        }
        how = "their last evaluation"
    if n_undefined := sum(not math.isfinite(value) for values in found.values() for value in values):
        how += f"; {n_undefined} of {len(names)} policies {'has' if n_undefined == 1 else 'have'} no finite return"
    best = {task: value for task, values in found.items() if math.isfinite(value := best_of(np.array(values)))}
    return f"{_seeds(phases.values())} single-task phases of this study ({how})", best


def _seeds(phases: Iterable[Mapping[int, object]]) -> str:
    n_seeds = max((len(by_seed) for by_seed in phases), default=1)
    return f"the best of {n_seeds} seeds' final policies in" if n_seeds > 1 else "the final policies of"
