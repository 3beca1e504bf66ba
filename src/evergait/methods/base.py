"""A method is a part, or several joined by +, that changes what plain ES does; every hook starts from what is there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from evergait.core.arrays import Array, Bool, Float32, Float64
from evergait.core.data import MOST_ROWS, Family, require, to_identity, within
from evergait.es import Shaping, shape
from evergait.methods.hooks import guard
from evergait.policy import Network, Policy, Statistics
from evergait.tasks import Task

Memory = Mapping[str, Array]
"""Tensors that a method keeps from generation to generation and from phase to phase, under names `method.…`."""


@dataclass(frozen=True)
class Batch:
    """Pairs of candidates that are evaluated on one task in one generation."""

    task: Task
    n_pairs: int
    replay: bool = False
    """Whether the task is an earlier one, evaluated to be kept."""
    update: Literal["active", "shared", "own"] = "active"
    """Which of the task's parameters this batch may change: all that it uses, or only those that are (not) shared."""
    weight: float = 1.0
    """Factor on the batch's part of the gradient."""
    averaged_alone: bool = False
    """Whether the batch's part of the gradient is the mean over its own members, or a share of the mean over all."""


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
    previous: Task | None = None
    """What the phase before learnt."""

    @property
    def task(self) -> Task:
        """The task being learnt."""
        return self.tasks[0]

    @property
    def name(self) -> str:
        """How reports call this stage."""
        return " + ".join(task.name for task in self.tasks)

    @property
    def batches(self) -> tuple[Batch, ...]:
        """What plain ES evaluates in every generation: the whole population on the task being learnt."""
        return (Batch(self.task, self.n_pairs),)

    @property
    def just_left(self) -> Task | None:
        """The task that the phase before learnt and this one does not: now is the time to look back on it."""
        return self.previous if self.previous in self.earlier else None


@dataclass(frozen=True)
class Collection:
    """How observations of a task are collected when its phase has ended."""

    observations: int = 512
    """How many are kept, drawn uniformly from all that the policy meets."""
    episodes: int = 8
    """Episodes of the policy; every second one has action noise, which shows what to do off the beaten path."""
    noise: float = 0.2
    """Standard deviation of the action noise, as a share of half the action's range."""

    def check(self, where: str) -> None:
        """Raise EvergaitError for settings that cannot work."""
        within(self.observations, 1, MOST_ROWS, f"{where}.observations")
        within(self.episodes, 1, MOST_ROWS, f"{where}.episodes")
        require(self.noise >= 0, f"{where}.noise", self.noise, "at least 0")


Collect = Callable[[Task, Collection], Float32]
"""(n, n_observations) what the policy that a phase starts from meets in a task."""


@dataclass(frozen=True)
class Context:
    """The phase and the policy that a method works on."""

    stage: Stage
    policy: Policy
    statistics: Statistics

    def network(self, task: Task) -> Network:
        """The layers that a task uses, and what surrounds them."""
        return self.policy.network(task, self.statistics)


@dataclass(frozen=True)
class Step:
    """What a generation has just done."""

    generation: int
    batches: Sequence[Batch]
    fitness: Sequence[Float64]
    """Per batch (2·n_pairs,): returns of its members, NaN where they diverged."""
    gradient: Float64
    """(n_parameters,) what was followed."""
    touched: Bool
    """(n_parameters,) what may have changed."""


@dataclass(frozen=True)
class Method(Family):
    """What happens in a generation beyond plain ES. A hook that a method does not write changes nothing."""

    alone: ClassVar[str] = ""
    """Why the method cannot be joined with others; empty if it can."""
    pauses: ClassVar[bool] = False
    """Whether some generations are on earlier tasks alone."""
    needs: ClassVar[str] = ""
    """The method that must come before it; empty if it works by itself."""
    join: "ClassVar[Callable[[tuple[type[Method], ...], str], type[Any]]]"
    """Makes one method of several; `composite.py` says how."""

    def __init_subclass__(cls, name: str = "") -> None:
        super().__init_subclass__(name)
        if not cls.__module__.startswith("evergait."):
            guard(cls)

    @classmethod
    def named(cls, name: str, where: str) -> type[Self]:
        """The method with that name; `a+b` is the composite of a and b."""
        if "+" not in name:
            return super().named(name, where)
        parts = tuple(super(Method, cls).named(part.strip(), where) for part in name.split("+"))
        joined: type[Self] = cls.join(parts, where)
        return joined

    @property
    def parts(self) -> "tuple[Method, ...]":
        """The methods that were joined; one alone is its only part."""
        return (self,)

    @property
    def n_recorded(self) -> int:
        """Episodes that it records of a task that was just left."""
        return 0

    @property
    def n_kept(self) -> int:
        """Observations of them that it keeps, with the outputs there, while others are learnt."""
        return 0

    def check(self, stages: Sequence[Stage], where: str = "method") -> None:
        """Raise EvergaitError for options that cannot work on these stages."""

    def stages(self, stream: Sequence[Task], n_pairs: int, seed: int) -> tuple[Stage, ...]:
        """The phases that a stream is trained in: one per task."""
        stages = []
        for i, task in enumerate(stream):
            earlier = tuple(dict.fromkeys(t for t in stream[:i] if t != task))
            stages.append(Stage(i, (task,), earlier, n_pairs, seed, stream[i - 1] if i else None))
        return tuple(stages)

    def settings(self, stage: Stage) -> Mapping[str, Any]:
        """What of this method decides the bits of a phase; equal settings make phases shared between methods.

        With nothing to keep, a phase is a naive one: first phases are trained once for all methods.
        """
        settings: Mapping[str, Any] = to_identity(self) if stage.earlier else {"name": "naive"}
        return settings

    def begin(self, context: Context, theta: Float32, memory: Memory, collect: Collect) -> Memory:
        """Before the first generation of a phase: look back on the phase before, from the θ that was carried over."""
        return memory

    def plan(self, stage: Stage, generation: int, batches: tuple[Batch, ...], memory: Memory) -> tuple[Batch, ...]:
        """What generation 1, 2, … evaluates, from what it would evaluate without this method."""
        return batches

    def utilities(
        self, batches: Sequence[Batch], fitness: Sequence[Float64], shaping: Shaping, utilities: list[Float64]
    ) -> list[Float64]:
        """Utilities of each batch's members (2·n_pairs,), from those that `rank_together` gave them."""
        return utilities

    def combine(self, batches: Sequence[Batch], gradients: Sequence[Float64], combined: Float64) -> Float64:
        """The gradient to follow, from one (n_parameters,) gradient per batch and their weighted sum."""
        return combined

    def after_step(self, context: Context, step: Step, theta: Float32, memory: Memory) -> tuple[Float32, Memory]:
        """θ and memory after the optimizer has made its step."""
        return theta, memory


def rank_together(fitness: Sequence[Float64], shaping: Shaping) -> list[Float64]:
    """Fitness of each batch's members → utilities, shaped over all batches together."""
    sizes = np.cumsum([len(part) for part in fitness])[:-1]
    return np.split(shape(np.concatenate(fitness), shaping), sizes)


def weighted_sum(batches: Sequence[Batch], gradients: Sequence[Float64]) -> Float64:
    """(n_parameters,) the batches' gradients, which already share one 1/(λσ), times their weights."""
    total = np.zeros_like(gradients[0])
    for batch, gradient in zip(batches, gradients, strict=True):
        total += batch.weight * gradient
    return total


def split_evenly(total: int, n_parts: int) -> list[int]:
    """Whole shares of a total, the remainder to the first.

    >>> split_evenly(8, 3)
    [3, 3, 2]
    """
    return [total // n_parts + (i < total % n_parts) for i in range(n_parts)]
