"""What training in a page needs beyond θ: which settings it knows, and what distillation remembers of earlier tasks."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evergait.config import Config
from evergait.core.arrays import Array
from evergait.core.data import to_data
from evergait.live.robots import encoded
from evergait.methods import Distill, Naive
from evergait.studies.results import Entry, Results
from evergait.tasks import Task, parse_task
from evergait.training.evaluate import Collector
from evergait.training.state import State
from evergait.workers import LocalWorkers

FREE = ("stream", "tasks", "seed", "generations", "steps", "pairs", "sigma", "horizon", "healthy_bonus", "engine")
"""Settings that a page can follow whatever they are; of the others it knows the defaults."""


def cannot_train(config: Config) -> str:
    """Why a page cannot train as a run was trained, or an empty string if it can."""
    policy = replace(Config().policy, **{name: getattr(config.policy, name) for name in to_data(config.policy)})
    plain = replace(Config(), policy=policy, **{name: getattr(config, name) for name in FREE})
    changed = replace(config, method=Naive(), optimizer=plain.optimizer, evaluation=plain.evaluation)
    mine, known = to_data(changed), to_data(plain)
    other = [name for name in mine if mine[name] != known[name]]
    if other:
        return f"a page does not know {other[0]} = {mine[other[0]]!r}"
    if config.optimizer.name not in ("adam", "plain"):
        return f"a page does not know the optimizer {config.optimizer.name}"
    return ""


@dataclass(frozen=True)
class Teaching:
    """What the policy at the end of a stage teaches the next one: observations and outputs by task."""

    stage: int
    method: Distill
    memory: dict[str, tuple[Array, Array]]

    def data(self) -> dict[str, Any]:
        """For the page."""
        memory = {task: [encoded(part) for part in parts] for task, parts in self.memory.items()}
        return {"stage": self.stage, "method": to_data(self.method), "memory": memory}


def lessons(entry: Entry, states: Sequence[State], results: Results) -> Iterator[Teaching]:
    """Per stage, where the command line could go on with distillation: after the first, or in a run that distils."""
    run = entry.run
    method = next((e.run.config.method for e in results.entries if type(e.run.config.method) is Distill), Distill(30))
    for stage, state in enumerate(states):
        learning = run.ledgers[stage].learning
        if len(learning) > 1 or (stage and run.config.method != method):
            continue
        task = parse_task(learning[0])
        memory = {t.name: found for t in run.config.stages()[stage].earlier if (found := _kept(state, t))}
        known = _known(entry, stage, results, task)
        yield Teaching(stage, method, {**memory, task.name: known or _collect(entry, stage, state, method, task)})


def _known(entry: Entry, stage: int, results: Results, task: Task) -> tuple[Array, Array] | None:
    """As a run of the same results has collected it from the same phase."""
    for other in results.entries:
        phases = other.run.phases
        goes_on = len(phases) > stage + 1 and phases[stage].name == entry.run.phases[stage].name
        if goes_on and (found := _kept(other.run.state(stage + 1), task)):
            return found
    return None


def _kept(state: State, task: Task) -> tuple[Array, Array] | None:
    names = f"distill.{task}.observations", f"distill.{task}.outputs"
    return (state.memory[names[0]], state.memory[names[1]]) if names[0] in state.memory else None


def _collect(entry: Entry, stage: int, state: State, method: Distill, task: Task) -> tuple[Array, Array]:
    network = entry.run.policy.network(task, state.statistics)
    with closing(LocalWorkers(1)) as workers:
        seen = Collector(workers, entry.seed, stage + 1).collect(task, network, state.theta, method.collection)
    return seen, network.outputs(state.theta.astype(np.float64), seen).astype(np.float32)
