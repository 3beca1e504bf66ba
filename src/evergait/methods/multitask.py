"""Multi-task training, the bound without forgetting: all tasks of the stream are learnt at once, in a single phase."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from evergait.core.data import require, to_identity
from evergait.methods.base import Batch, Memory, Method, Stage, split_evenly
from evergait.tasks import Task


@dataclass(frozen=True)
class Multitask(Method, name="multitask"):
    """Learns the whole stream as one phase."""

    alone: ClassVar[str] = "it has no earlier tasks that another method could keep"

    each_generation: Literal["one-task", "all-tasks"] = "one-task"
    """Whether a generation works on one task, in turn, or splits the pairs evenly over all of them."""

    def stages(self, stream: Sequence[Task], n_pairs: int, seed: int) -> tuple[Stage, ...]:
        """One stage for the whole stream."""
        return (Stage(0, tuple(dict.fromkeys(stream)), (), n_pairs, seed),)

    def check(self, stages: Sequence[Stage], where: str = "method") -> None:
        """Raise EvergaitError for tasks that no pair would be left for."""
        enough = stages[0].n_pairs >= len(stages[0].tasks)
        right = f"'one-task' with fewer pairs than tasks ({stages[0].n_pairs} and {len(stages[0].tasks)})"
        require(self.each_generation == "one-task" or enough, f"{where}.each_generation", self.each_generation, right)

    def settings(self, stage: Stage) -> Mapping[str, Any]:
        """All of them."""
        settings: Mapping[str, Any] = to_identity(self)
        return settings

    def plan(self, stage: Stage, generation: int, batches: tuple[Batch, ...], memory: Memory) -> tuple[Batch, ...]:
        """One task in turn, or all with a share of the pairs each (the remainder to the first)."""
        n_tasks = len(stage.tasks)
        if self.each_generation == "one-task":
            return (Batch(stage.tasks[(generation - 1) % n_tasks], stage.n_pairs),)
        shares = zip(stage.tasks, split_evenly(stage.n_pairs, n_tasks), strict=True)
        return tuple(Batch(task, share) for task, share in shares if share)
