"""Joint replay (the paper's section 3): extra evaluations on earlier tasks, ranked together with the current ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from evergait.core.arrays import Float64
from evergait.core.data import added, require
from evergait.core.errors import EvergaitError
from evergait.es import Shaping, shape
from evergait.methods.base import Batch, Memory, Method, Stage, split_evenly


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
