"""Replay of earlier tasks: joint (the paper's section 3), at intervals (its Algorithm 1), and where most is lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from evergait.core.arrays import Float32, Float64
from evergait.core.data import added, require
from evergait.core.errors import EvergaitError
from evergait.core.random import CHOICE, Noise
from evergait.es import Shaping, shape
from evergait.methods.base import Batch, Collect, Context, Memory, Method, Stage, Step, split_evenly


@dataclass(frozen=True)
class Replay(Method, name="replay"):
    """Adds `budget` evaluations on earlier tasks to every generation."""

    budget: int = 192
    """Extra evaluations per generation, an even number: they come in mirrored pairs."""
    budget_is: Literal["total", "per-task", "pairs-per-task"] = "total"
    """Whether earlier tasks share the budget (evenly, the remainder to the earliest), each gets all of it, or each gets
    as many pairs, which are twice as many evaluations."""
    ranks: Literal["joint", "per-task"] = "joint"
    """Whether fitness is ranked over all evaluations together, or for each task on its own."""
    update: Literal["active", "shared"] = "active"
    """Whether replayed candidates update all of their task's parameters, or only those shared with other tasks."""
    weight: float = 1.0
    """Factor on the gradient of the replayed part."""
    average: Literal["members", "tasks"] = added("members")
    """Whether the gradient is one mean over all members, so that a task weighs as much as its share of them; or the
    mean over the current task's members plus `weight` times the mean over earlier tasks of each one's own mean."""

    def check(self, stages: Sequence[Stage], where: str = "method") -> None:
        """Raise EvergaitError for a budget that cannot be spent."""
        require(self.weight > 0, f"{where}.weight", self.weight, "above 0")
        n_members = 2 * stages[0].n_pairs
        if self.budget_is == "pairs-per-task":
            right = f"from 1 to the {stages[0].n_pairs} pairs of the population"
            require(1 <= self.budget <= stages[0].n_pairs, f"{where}.budget", self.budget, right)
        else:
            right = f"an even number from 2 to the population of {n_members} (mirrored pairs)"
            holds = 2 <= self.budget <= n_members and self.budget % 2 == 0
            require(holds, f"{where}.budget", self.budget, right)
        if not any(stage.earlier for stage in stages):
            raise EvergaitError(
                f"method: replay needs an earlier task, and the stream {stages[0].name!r} has none; "
                "add a task to the stream, or use the method naive"
            )

    def plan(self, stage: Stage, generation: int, batches: tuple[Batch, ...], memory: Memory) -> tuple[Batch, ...]:
        """What there is, and the budget on earlier tasks."""
        n_earlier, n_pairs = len(stage.earlier), self.budget // (1 if self.budget_is == "pairs-per-task" else 2)
        if not n_earlier:
            return batches
        shares = split_evenly(n_pairs, n_earlier) if self.budget_is == "total" else [n_pairs] * n_earlier
        alone = self.average == "tasks"
        weight = self.weight / sum(share > 0 for share in shares) if alone else self.weight
        replayed = (
            Batch(task, share, replay=True, update=self.update, weight=weight)
            for task, share in zip(stage.earlier, shares, strict=True)
            if share
        )
        return tuple(replace(batch, averaged_alone=alone) for batch in (*batches, *replayed))

    def utilities(
        self, batches: Sequence[Batch], fitness: Sequence[Float64], shaping: Shaping, utilities: list[Float64]
    ) -> list[Float64]:
        """Ranks over all members, or per task."""
        return utilities if self.ranks == "joint" else [shape(part, shaping) for part in fitness]


@dataclass(frozen=True)
class Interval(Method, name="interval"):
    """Replays an earlier task in generations R, 2R, 3R, …"""

    interval: int = 4
    """R: every R-th generation is a replay; 0 never replays."""
    choose: Literal["cycle", "uniform", "latest"] = "cycle"
    """Which earlier task: each in turn, one at random, or the one learnt last."""

    def check(self, stages: Sequence[Stage], where: str = "method") -> None:
        """Raise EvergaitError for an interval that leaves no room for the current task."""
        require(self.interval == 0 or self.interval >= 2, f"{where}.interval", self.interval, "0 (never) or at least 2")

    def settings(self, stage: Stage) -> Mapping[str, Any]:
        """Without replay, a phase is a naive one and shared with it."""
        return super().settings(stage) if self.interval else {"name": "naive"}

    def plan(self, stage: Stage, generation: int, batches: tuple[Batch, ...], memory: Memory) -> tuple[Batch, ...]:
        """The whole population on an earlier task, if it is time."""
        if not stage.earlier or not self.interval or generation % self.interval:
            return batches
        n_earlier, turn = len(stage.earlier), generation // self.interval - 1
        which = {
            "cycle": turn % n_earlier,
            "uniform": int(Noise(stage.seed, CHOICE, generation, stage.index).integers(1)[0]) % n_earlier,
            "latest": n_earlier - 1,
        }[self.choose]
        return (Batch(stage.earlier[which], stage.n_pairs, replay=True),)


@dataclass(frozen=True)
class Adaptive(Method, name="adaptive"):
    """Splits the replay budget by what each earlier task has lost: write `replay+adaptive`.

    A task's level is the running mean m ← m + rate (F̄ − m) of its replayed members' returns F̄, and its loss the share
    (best − m) / |best| by which that has fallen below its best since the task was left, above 1 where returns have
    become negative. Every task keeps one pair, to be measured; the others are split in proportion to the losses. No
    episode is simulated beyond those of replay. (The rule is ours; that replay should favour what is lost most is an
    idea of Aljundi et al. 2019, arXiv:1908.04742.)
    """

    needs: ClassVar[str] = "replay"

    rate: float = 0.2
    """Weight of the newest generation in the running mean."""

    def check(self, stages: Sequence[Stage], where: str = "method") -> None:
        """Raise EvergaitError for a rate that cannot work."""
        require(0 < self.rate <= 1, f"{where}.rate", self.rate, "above 0 and at most 1")

    def begin(self, context: Context, theta: Float32, memory: Memory, collect: Collect) -> Memory:
        """A task that is learnt again has no past to lose."""
        return {name: value for name, value in memory.items() if name not in map(_level, context.stage.tasks)}

    def plan(self, stage: Stage, generation: int, batches: tuple[Batch, ...], memory: Memory) -> tuple[Batch, ...]:
        """As many pairs as replay has, split anew."""
        replayed = [batch for batch in batches if batch.replay]
        extra = sum(batch.n_pairs for batch in replayed) - len(stage.earlier)
        levels = [memory.get(_level(task)) for task in stage.earlier]
        lost = [max(0.0, float(b - m)) / max(abs(float(b)), 1e-9) for b, m in (v for v in levels if v is not None)]
        if extra <= 0 or len(lost) < len(levels):
            return batches
        shares = apportion(extra, lost)
        changed = [replace(replayed[0], task=t, n_pairs=1 + n) for t, n in zip(stage.earlier, shares, strict=True)]
        return (*(batch for batch in batches if not batch.replay), *changed)

    def after_step(self, context: Context, step: Step, theta: Float32, memory: Memory) -> tuple[Float32, Memory]:
        """Note how well the earlier tasks still do."""
        memory = dict(memory)
        for batch, fitness in zip(step.batches, step.fitness, strict=True):
            if batch.replay and not np.isnan(fitness).all():
                name, mean = _level(batch.task), float(np.nanmean(fitness))
                best, level = memory.get(name, np.array([mean, mean]))
                level += self.rate * (mean - level)
                memory[name] = np.array([max(best, level), level])
        return theta, memory


def _level(task: object) -> str:
    return f"adaptive.{task}"


def apportion(total: int, weights: Sequence[float]) -> list[int]:
    """Whole shares of a total in proportion to weights: what is left goes to the largest remainders.

    >>> apportion(10, [3.0, 1.0, 0.0])
    [8, 2, 0]
    """
    whole = sum(weights)
    if whole == 0:
        return split_evenly(total, len(weights))
    exact = [total * weight / whole for weight in weights]
    shares = [int(share) for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: shares[i] - exact[i])
    for i in by_remainder[: total - sum(shares)]:
        shares[i] += 1
    return shares
