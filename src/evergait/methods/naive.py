"""Sequential ES without any protection: the paper's baseline, and on a stream of one its single-task run."""

from dataclasses import dataclass

from evergait.methods.base import Batch, Method, Stage


@dataclass(frozen=True)
class Naive(Method, name="naive"):
    """Every candidate is evaluated on the task being learnt."""

    def plan(self, stage: Stage, generation: int) -> tuple[Batch, ...]:
        """The whole population on the current task."""
        return (Batch(stage.task, stage.n_pairs),)
