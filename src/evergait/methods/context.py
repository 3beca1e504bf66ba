"""What a method is told: where a phase stands, what a generation evaluates, and what has just been done."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evergait.core.arrays import Array, Bool, Float32, Float64
from evergait.core.data import require
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
        require(self.observations >= 1, f"{where}.observations", self.observations, "at least 1")
        require(self.episodes >= 1, f"{where}.episodes", self.episodes, "at least 1")
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
