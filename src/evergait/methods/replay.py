"""Joint replay (the paper's section 3): extra evaluations on earlier tasks, ranked together with the current ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

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
    """Whether earlier tasks share the budget (evenly, the remainder to the earliest; with fewer pairs than
    tasks these take turns), each gets all of it, or each gets as many pairs, which are twice as many evaluations."""
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

    def settings(self, stage: Stage) -> Mapping[str, Any]:
        """Taking turns is what phases of earlier versions did not do: the newest tasks had nothing."""
        takes_turns = self.budget_is == "total" and self.budget // 2 < len(stage.earlier)
        return {**super().settings(stage), "turns": True} if takes_turns else super().settings(stage)

    def plan(self, stage: Stage, generation: int, batches: tuple[Batch, ...], memory: Memory) -> tuple[Batch, ...]:
        """What there is, and the budget on earlier tasks."""
        if not stage.earlier:
            return batches
        shares = self._shares(len(stage.earlier), generation)
        alone = self.average == "tasks"
        weight = self.weight / sum(share > 0 for share in shares) if alone else self.weight
        replayed = (
            Batch(task, share, replay=True, update=self.update, weight=weight)
            for task, share in zip(stage.earlier, shares, strict=True)
            if share
        )
        return tuple(replace(batch, averaged_alone=alone) for batch in (*batches, *replayed))

    def _shares(self, n_earlier: int, generation: int) -> list[int]:
        """Pairs of each earlier task."""
        if self.budget_is == "pairs-per-task":
            return [self.budget] * n_earlier
        n_pairs = self.budget // 2
        if self.budget_is == "per-task":
            return [n_pairs] * n_earlier
        if n_pairs >= n_earlier:
            return split_evenly(n_pairs, n_earlier)
        first = (generation - 1) * n_pairs
        return [int((i - first) % n_earlier < n_pairs) for i in range(n_earlier)]

    def utilities(
        self, batches: Sequence[Batch], fitness: Sequence[Float64], shaping: Shaping, utilities: list[Float64]
    ) -> list[Float64]:
        """Ranks over all members, or per task."""
        return utilities if self.ranks == "joint" else [shape(part, shaping) for part in fitness]
