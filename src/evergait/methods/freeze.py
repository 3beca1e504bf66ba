"""Frozen shared layers: what the first task made of them serves all later ones."""

from dataclasses import dataclass, replace
from typing import ClassVar

from evergait.methods.base import Batch, Memory, Method, Stage


@dataclass(frozen=True)
class Freeze(Method, name="freeze"):
    """Changes only a task's own layers after the first task: nothing is forgotten.

    Progressive networks (Rusu et al. 2016, arXiv:1606.04671) without their new columns.
    Candidates are still perturbed everywhere; of the gradient Σ u ε only the part of the task's input layer, and of
    its own head if there is one, is followed.
    """

    alone: ClassVar[str] = "nothing that an earlier task uses changes, so there is nothing left to keep"

    def plan(self, stage: Stage, generation: int, batches: tuple[Batch, ...], memory: Memory) -> tuple[Batch, ...]:
        """The same evaluations, for the task's own layers."""
        return tuple(replace(batch, update="own") for batch in batches) if stage.earlier else batches
