"""What training in a page needs beyond θ: which settings it knows, and what distillation remembers of earlier tasks."""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evergait.config import Config
from evergait.core.arrays import Array, Float32
from evergait.core.data import to_data
from evergait.core.files import sha256
from evergait.core.random import layer_index
from evergait.live.robots import encoded
from evergait.methods import Distill, Naive
from evergait.methods.distill import memory_names
from evergait.policy import Policy, Statistics
from evergait.policy.network import ActiveLayer
from evergait.store.ledger import Record
from evergait.studies.results import Entry, Results
from evergait.tasks import Task, parse_task
from evergait.tasks.base import short
from evergait.training.evaluate import Collector
from evergait.training.run import Run
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
    seen, outputs = memory_names(task)
    return (state.memory[seen], state.memory[outputs]) if seen in state.memory else None


def _collect(entry: Entry, stage: int, state: State, method: Distill, task: Task) -> tuple[Array, Array]:
    network = entry.run.policy.network(task, state.statistics)
    with closing(LocalWorkers(1)) as workers:
        seen = Collector(workers, entry.seed, stage + 1).collect(task, network, state.theta, method.collection)
    return seen, network.outputs(state.theta.astype(np.float64), seen).astype(np.float32)


MOST_BYTES = 1_000_000
"""Bytes of θ, and of what they teach, in base64; the whole page must stay below 1.5 MB."""


@dataclass
class Shelves:
    """What has been put on the page so far."""

    tasks: tuple[Task, ...]
    """All tasks that live on the page."""
    most_bytes: int = MOST_BYTES
    policies: list[dict[str, Any]] = field(default_factory=list)
    thetas: list[str] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    left_out: dict[str, bool] = field(default_factory=dict)
    """Digests of the policies that had no room, and whether they end a phase."""
    n_untaught: int = 0
    """Runs without all of what distillation needs."""
    _numbers: dict[str, int] = field(default_factory=dict)
    _n_bytes: int = 0
    _n_lesson_bytes: int = 0

    def fill(self, results: Results) -> None:
        """All runs: the ends of all phases; then, while there is room, what they teach, and what was kept between."""
        entries = [entry for entry in results.entries if entry.run.has_policies and self._lives(entry.run)]
        listed = [(entry, [entry.run.state(i) for i in range(len(entry.run.phases))]) for entry in entries]
        for _, states in listed:
            for state in states:
                self._put(state.theta, end=True)
        taught = [list(self._lessons(entry, states, results)) for entry, states in listed]
        for _, states in listed:
            for state in states:
                for theta in state.snapshots.values():
                    self._put(theta)
        for (entry, states), lessons_of_it in zip(listed, taught, strict=True):
            self.runs.append(self._run(entry, states, lessons_of_it))

    def _lessons(self, entry: Entry, states: list[State], results: Results) -> Iterator[dict[str, Any]]:
        if cannot_train(entry.run.config):
            return
        for lesson in lessons(entry, states, results):
            data = lesson.data()
            n_bytes = sum(len(part) for parts in data["memory"].values() for part in parts)
            if self._n_lesson_bytes + n_bytes > self.most_bytes // 4:
                self.n_untaught += 1
                return
            self._n_lesson_bytes += n_bytes
            self._n_bytes += n_bytes
            yield data

    def _lives(self, run: Run) -> bool:
        return set(run.ledgers[0].tasks) <= {task.name for task in self.tasks}

    def _put(self, theta: Float32, end: bool = False) -> int | None:
        digest = sha256(theta.tobytes())
        if digest not in self._numbers:
            text = encoded(theta)
            if self._n_bytes + len(text) > self.most_bytes:
                self.left_out.setdefault(digest, end)
                return None
            self._numbers[digest] = len(self.thetas)
            self._n_bytes += len(text)
            self.thetas.append(text)
        return self._numbers[digest]

    def _run(self, entry: Entry, states: list[State], taught: list[dict[str, Any]]) -> dict[str, Any]:
        run = entry.run
        moments = [self._initial(run)]
        for stage, state in enumerate(states):
            moments += self._moments(run, stage, state)
        return {
            "condition": entry.condition,
            "order": entry.order,
            "seed": entry.seed,
            "policy": self._policy(run.policy),
            "stream": [" + ".join(ledger.learning) for ledger in run.ledgers],
            "config": to_data(run.config),
            "cannotTrain": cannot_train(run.config),
            "moments": moments,
            "curves": [_curve(run, stage) for stage in range(len(states))],
            "memory": taught,
        }

    def _initial(self, run: Run) -> dict[str, Any]:
        returns = _means(run.ledgers[0].records[0])
        moment = {"stage": 0, "generation": 0, "end": False, "label": "before training", "theta": None}
        return {**moment, "tasks": list(returns), "returns": returns, "sha256": ""}

    def _moments(self, run: Run, stage: int, state: State) -> list[dict[str, Any]]:
        """Snapshots and the end. A normalising policy keeps statistics at the end only: on what it was learning then,
        its snapshots are not what they were, and are not shown."""
        ledger, normalises = run.ledgers[stage], run.config.policy.normalise
        learning, last = " + ".join(map(short, ledger.learning)), ledger.generations[-1]
        found = []
        kept = {int(generation): theta for generation, theta in state.snapshots.items()} | {last: state.theta}
        for generation, theta in sorted(kept.items()):
            record = next((r for r in ledger.records if r.generation == generation), None)
            if record is None:
                continue
            end = generation == last
            shown = [task for task in ledger.tasks if end or not normalises or task not in ledger.learning]
            found.append(
                {
                    "stage": stage,
                    "generation": generation,
                    "end": end,
                    "label": f"after {learning}" if end else f"{learning}, generation {generation} of {last}",
                    "theta": self._put(theta),
                    "sha256": sha256(theta.tobytes()),
                    "tasks": shown,
                    "returns": _means(record),
                    **({"statistics": _statistics(state.statistics)} if normalises else {}),
                }
            )
        return [moment for moment in found if moment["theta"] is not None]

    def _policy(self, policy: Policy) -> int:
        data = describe_policy(policy)
        if data not in self.policies:
            self.policies.append(data)
        return self.policies.index(data)


def describe_policy(policy: Policy) -> dict[str, Any]:
    """The layout of θ, as the page's engine takes it."""
    networks = {}
    for task in policy.tasks:
        network = policy.network(task)
        networks[task.name] = {
            "layers": [number for layer in network.layers for number in _layer(layer)],
            "middle": encoded(network.action_middle),
            "halfRange": encoded(network.action_half_range),
            "active": policy.active(task),
        }
    layers = [[layer.offset, layer.end, layer.n_in, layer_index(layer.name)] for layer in policy.layers.values()]
    return {"size": policy.n_parameters, "normalise": policy.config.normalise, "networks": networks, "layers": layers}


def _layer(layer: ActiveLayer) -> list[int]:
    """As struct Layer of native/kernels.h lists it."""
    return [layer.weight, layer.bias, layer.n_in, layer.n_out, ("linear", "relu", "tanh").index(layer.activation)]


def _statistics(statistics: Statistics) -> dict[str, str]:
    return {name: encoded(sums) for name, sums in statistics.sums.items()}


def _means(record: Record) -> dict[str, float | None]:
    """Mean returns by task; an evaluation without a finite one has no value."""
    means = {task: record.mean(task) for task in record.returns}
    return {task: mean if math.isfinite(mean) else None for task, mean in means.items()}


def _curve(run: Run, stage: int) -> dict[str, Any]:
    ledger = run.ledgers[stage]
    means = [_means(record) for record in ledger.records]
    returns = {task: [mean[task] for mean in means] for task in ledger.tasks}
    return {"generations": ledger.generations, "returns": returns}
