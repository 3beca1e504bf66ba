"""What people and programs may see of training while it runs, and what a notebook shows of it below the cell."""

import importlib
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from evergait.core.arrays import Float64
from evergait.methods import Stage, Step
from evergait.store.ledger import Record


@dataclass(frozen=True)
class Position:
    """Where training is."""

    stage: Stage
    generation: int
    n_steps: int
    """Environment steps of the phase so far, evaluations included."""
    used: int
    """How much of the phase is done: generations or, where steps decide its length, steps."""
    length: int
    """The whole phase, in the same unit."""

    @property
    def in_stream(self) -> int:
        """The same, counted from the start of the stream."""
        return self.stage.index * self.length + self.used


@dataclass(frozen=True)
class Diagnostics:
    """What a generation did."""

    step: Step
    """Its batches, the fitness of every member of each, the gradient, and which parameters it may have changed."""
    step_norm: float
    """Length of the change of θ, the method's own moves included."""
    horizon: int
    """Where its training episodes were cut; 0 leaves the task's own limit."""

    @property
    def gradient_norm(self) -> float:
        """Length of the gradient that was followed."""
        return norm(self.step.gradient)

    @property
    def fitness(self) -> Float64:
        """(n_members,) returns of the population on what is being learnt; NaN where a member diverged."""
        parts = zip(self.step.batches, self.step.fitness, strict=True)
        return np.concatenate([np.zeros(0), *(part for batch, part in parts if not batch.replay)])

    @property
    def mean_fitness(self) -> float:
        """Of the members that did not diverge; −∞ where all did."""
        survivors = self.fitness[np.isfinite(self.fitness)]
        return float(survivors.mean()) if survivors.size else -math.inf

    def numbers(self) -> dict[str, float]:
        """For the ledger and for dashboards; what is not a finite number is left out."""
        fitness = self.fitness[np.isfinite(self.fitness)]
        numbers = {"gradient_norm": self.gradient_norm, "step_norm": self.step_norm, "horizon": float(self.horizon)}
        if fitness.size:
            parts = {"mean": fitness.mean(), "sd": fitness.std(), "best": fitness.max()}
            numbers |= {f"fitness_{name}": float(part) for name, part in parts.items()}
        return {name: value for name, value in numbers.items() if math.isfinite(value)}


def norm(vector: Float64) -> float:
    """Euclidean length, by sums whose order no library chooses."""
    return float(np.sqrt(np.sum(np.square(vector, dtype=np.float64))))


class Observer:
    """Is told what happens, where and when; subclass it and write what you want to see. It cannot change anything.

    A method that raises ends training where it is; the same call again goes on from the last checkpoint.
    """

    def phase_started(self, at: Position) -> None:
        """A phase begins (generation 0), or goes on from where it was left."""

    def evaluated(self, at: Position, record: Record) -> None:
        """The unperturbed policy has been evaluated: before the first generation, and then now and again."""

    def generation_done(self, at: Position, seen: Diagnostics) -> None:
        """A generation has been trained; an evaluation may follow."""

    def phase_done(self, at: Position) -> None:
        """The phase has reached its length and its last evaluation."""


def add(sums: Mapping[str, float], numbers: Mapping[str, float]) -> dict[str, float]:
    """Sums of numbers since the last evaluation, with one more generation's; `n.…` says how many each has."""
    sums = dict(sums)
    for name, value in numbers.items():
        sums[name] = sums.get(name, 0.0) + value
        sums[f"n.{name}"] = sums.get(f"n.{name}", 0) + 1
    return sums


def means(sums: Mapping[str, float]) -> dict[str, float]:
    """What `add` summed up, divided by how many there were.

    >>> means(add(add({}, {"step_norm": 1.0}), {"step_norm": 2.0}))
    {'step_norm': 1.5}
    """
    found = {name: value / (sums.get(f"n.{name}") or math.inf) for name, value in sums.items() if name[:2] != "n."}
    return {name: value for name, value in found.items() if math.isfinite(value)}


SECONDS_BETWEEN_VIEWS = 1.0


def in_notebook() -> bool:
    """Whether this is a notebook's kernel; IPython is not imported for the question's sake."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


class NotebookProgress(Observer):
    """A bar and the last return on every task, below the cell."""

    def __init__(self, n_stages: int, display: Callable[[str], None] | None = None) -> None:
        self._update: Callable[[str], None] = display or _below_the_cell()
        self._n_stages, self._last, self._returns = n_stages, 0.0, dict[str, float]()

    def evaluated(self, at: Position, record: Record) -> None:
        """Always shown."""
        self._returns = {task: record.mean(task) for task in record.returns}
        self._show(at)

    def generation_done(self, at: Position, seen: Diagnostics) -> None:
        """Shown now and then."""
        if time.monotonic() - self._last > SECONDS_BETWEEN_VIEWS:
            self._show(at)

    def _show(self, at: Position) -> None:
        self._last = time.monotonic()
        returns = ", ".join(f"{escape(task)} {value:,.1f}" for task, value in self._returns.items())
        total = at.length * self._n_stages
        self._update(
            f"<progress max={total} value={min(at.in_stream, total)}></progress> "
            f"phase {at.stage.index + 1}/{self._n_stages} {escape(at.stage.name)}, generation {at.generation}"
            f"<br>mean returns: {returns}"
        )


def _below_the_cell() -> Callable[[str], None]:
    """Replaces one output of the cell that runs."""
    display: Any = importlib.import_module("IPython.display")
    handle = display.display(display.HTML(""), display_id=True)

    def update(text: str) -> None:
        handle.update(display.HTML(text))

    return update
