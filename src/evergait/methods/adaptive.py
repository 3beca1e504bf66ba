"""Adaptive replay: the budget goes where most has been lost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from evergait.core.arrays import Float32
from evergait.core.data import require
from evergait.methods.base import Batch, Collect, Context, Memory, Method, Stage, Step, split_evenly


@dataclass(frozen=True)
class Adaptive(Method, name="adaptive"):
    """Splits the replay budget by what each earlier task has lost: write `replay+adaptive`.

    A task's level is the running mean m ← m + rate (F̄ − m) of its replayed members' returns F̄, and its loss the share
    (best − m) / |best| by which that has fallen below its best since the task was left, above 1 where returns have
    become negative. Every task keeps one pair, to be measured; the others are split in proportion to the losses. With
    no more pairs than earlier tasks there is nothing to split, and this is replay. Of several starts, each goes on from
    the levels that the one before it left. No episode is simulated beyond those of replay. (The rule is ours; that
    replay should favour what is lost most is an idea of Aljundi et al. 2019, arXiv:1908.04742.)
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
