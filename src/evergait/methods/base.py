"""A method decides which tasks a generation evaluates, how fitness becomes utility, and what gradient is followed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evergait.data import Family, to_data
from evergait.shaping import Shaping, shape
from evergait.tasks import Task
from evergait.types import Float64


@dataclass(frozen=True)
class Stage:
    """Where a phase stands in its stream."""

    index: int
    """Position in the stream, from 0."""
    tasks: tuple[Task, ...]
    """What is being learnt: one task, or all of them in multi-task training."""
    earlier: tuple[Task, ...]
    """Tasks learnt before and different from these, earliest first, without repeats."""
    n_pairs: int
    """Mirrored pairs per generation on the tasks being learnt."""
    seed: int = 0
    """The run's seed, for methods that choose at random."""

    @property
    def task(self) -> Task:
        """The task being learnt."""
        return self.tasks[0]

    @property
    def name(self) -> str:
        """How reports call this stage."""
        return " + ".join(task.name for task in self.tasks)


@dataclass(frozen=True)
class Batch:
    """Pairs of candidates that are evaluated on one task in one generation."""

    task: Task
    n_pairs: int
    replay: bool = False
    """Whether the task is an earlier one, evaluated to be kept."""
    update: Literal["active", "shared"] = "active"
    """Which of the task's parameters this batch may change."""
    weight: float = 1.0
    """Factor on the batch's part of the gradient."""


@dataclass(frozen=True)
class Method(Family):
    """What happens in a generation beyond plain ES."""

    def check(self, stages: Sequence[Stage]) -> None:
        """Raise EvergaitError for options that cannot work on these stages."""

    def stages(self, stream: Sequence[Task], n_pairs: int, seed: int) -> tuple[Stage, ...]:
        """The phases that a stream is trained in: one per task."""
        return tuple(
            Stage(i, (task,), tuple(dict.fromkeys(t for t in stream[:i] if t != task)), n_pairs, seed)
            for i, task in enumerate(stream)
        )

    def settings(self, stage: Stage) -> Mapping[str, Any]:
        """What of this method decides the bits of a phase; equal settings make phases shared between methods."""
        settings: Mapping[str, Any] = to_data(self)
        return settings

    def plan(self, stage: Stage, generation: int) -> tuple[Batch, ...]:
        """What generation 1, 2, … evaluates."""
        raise TypeError(f"{type(self).__name__} does not say what to evaluate")

    def utilities(self, batches: Sequence[Batch], fitness: Sequence[Float64], shaping: Shaping) -> list[Float64]:
        """Fitness of each batch's members (2·n_pairs,) → utilities, ranked over all batches together."""
        sizes = np.cumsum([len(part) for part in fitness])[:-1]
        return np.split(shape(np.concatenate(fitness), shaping), sizes)

    def combine(self, batches: Sequence[Batch], gradients: Sequence[Float64]) -> Float64:
        """The gradient to follow, from one (n_parameters,) gradient per batch, which already share one 1/(λσ)."""
        total = np.zeros_like(gradients[0])
        for batch, gradient in zip(batches, gradients, strict=True):
            total += batch.weight * gradient
        return total
