"""Runs as a page carries them: the layout of θ, the θ of every moment with its hash, returns, and what training needs.

policies   layouts, each once
thetas     base64 of float32, each once however many runs share it; moments name them by number
runs       condition, order, seed, settings, moments, curves
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from evergait.core.arrays import Float32
from evergait.core.data import to_data
from evergait.core.files import sha256
from evergait.core.names import short
from evergait.core.random import layer_index
from evergait.live.robots import encoded
from evergait.live.teaching import Teaching, cannot_train, lessons
from evergait.policy import Policy, Statistics
from evergait.policy.network import ActiveLayer
from evergait.store.ledger import Record
from evergait.studies.results import Entry, Results
from evergait.tasks import Task
from evergait.training.run import Run
from evergait.training.state import State

BUDGET = 1_000_000
"""Bytes of θ in base64; the whole page must stay below 1.5 MB."""


@dataclass
class Shelves:
    """What has been put on the page so far."""

    tasks: tuple[Task, ...]
    """All tasks that live on the page."""
    budget: int = BUDGET
    policies: list[dict[str, Any]] = field(default_factory=list)
    thetas: list[str] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    n_left_out: int = 0
    _numbers: dict[str, int] = field(default_factory=dict)
    _n_bytes: int = 0

    def fill(self, results: Results, train: bool = True) -> None:
        """All runs: first the ends of all phases, then, while there is room, what was kept between."""
        entries = [entry for entry in results.entries if entry.run.has_policies and self._lives(entry.run)]
        listed = [(entry, [entry.run.state(i) for i in range(len(entry.run.phases))]) for entry in entries]
        for ends in (True, False):
            for _, states in listed:
                for state in states:
                    for theta in (state.theta,) if ends else state.snapshots.values():
                        self._put(theta)
        for entry, states in listed:
            teaching = lessons(entry, states, results) if train else ()
            self.runs.append(self._run(entry, states, teaching))

    def _lives(self, run: Run) -> bool:
        return set(run.ledgers[0].tasks) <= {task.name for task in self.tasks}

    def _put(self, theta: Float32) -> int | None:
        digest = sha256(theta.tobytes())
        if digest not in self._numbers:
            text = encoded(theta)
            if self._n_bytes + len(text) > self.budget:
                self.n_left_out += 1
                return None
            self._numbers[digest] = len(self.thetas)
            self._n_bytes += len(text)
            self.thetas.append(text)
        return self._numbers[digest]

    def _run(self, entry: Entry, states: list[State], teaching: Iterable[Teaching]) -> dict[str, Any]:
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
            "memory": [one.data() for one in teaching],
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
