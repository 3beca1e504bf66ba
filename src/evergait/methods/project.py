"""Gradient projection: what of the new gradient would undo the old tasks is taken out of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from evergait.core.arrays import Float64
from evergait.methods.base import Batch, Method


@dataclass(frozen=True)
class Project(Method, name="project"):
    """Projects the current task's gradient where it opposes that of replay: write `replay+project`.

    g̃ = g − (gᵀr / rᵀr) r if gᵀr < 0, else g, where g is the search gradient of the current task and r that of the
    replayed ones (A-GEM: Chaudhry et al. 2019, arXiv:1812.00420, eq. 11).
    """

    needs: ClassVar[str] = "replay"

    follow: Literal["projected", "both"] = "projected"
    """Whether only g̃ is followed, as in A-GEM, or g̃ + r."""

    def combine(self, batches: Sequence[Batch], gradients: Sequence[Float64], combined: Float64) -> Float64:
        """g̃, or g̃ + r; where there is only one of g and r, that one."""
        gradient, replayed = np.zeros_like(combined), np.zeros_like(combined)
        for batch, part in zip(batches, gradients, strict=True):
            total = replayed if batch.replay else gradient
            total += batch.weight * part
        if not gradient.any() or not replayed.any():
            return combined
        opposing = float(np.sum(gradient * replayed))
        if opposing < 0:
            gradient = gradient - opposing / float(np.sum(replayed * replayed)) * replayed
        return gradient if self.follow == "projected" else gradient + replayed
