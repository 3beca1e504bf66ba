"""Multi-task training, the bound without forgetting: all tasks of the stream are learnt at once, in a single phase."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evergait.methods.base import Batch, Method, Stage
from evergait.tasks import Task


@dataclass(frozen=True)
class Multitask(Method, name="multitask"):
    """Learns the whole stream as one phase."""

    each_generation: Literal["one-task", "all-tasks"] = "one-task"
    """Whether a generation works on one task, in turn, or splits the pairs evenly over all of them."""

    def stages(self, stream: Sequence[Task], n_pairs: int, seed: int) -> tuple[Stage, ...]:
        """One stage for the whole stream."""
        return (Stage(0, tuple(dict.fromkeys(stream)), (), n_pairs, seed),)

    def plan(self, stage: Stage, generation: int) -> tuple[Batch, ...]:
        """One task in turn, or all with a share of the pairs each (the remainder to the first)."""
        n_tasks = len(stage.tasks)
        if self.each_generation == "one-task":
            return (Batch(stage.tasks[(generation - 1) % n_tasks], stage.n_pairs),)
        share, rest = divmod(stage.n_pairs, n_tasks)
        batches = (Batch(task, share + (i < rest)) for i, task in enumerate(stage.tasks))
        return tuple(batch for batch in batches if batch.n_pairs)
