"""Anchored weight decay: shared layers are pulled back to where the phase began."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evergait.core.arrays import Bool, Float32
from evergait.core.data import require
from evergait.methods.base import Collect, Context, Memory, Method, Stage, Step
from evergait.policy import Policy


@dataclass(frozen=True)
class Anchor(Method, name="anchor"):
    """Takes back a share of what the shared layers have moved: θ ← θ − rate (θ − θ₀), θ₀ from the phase's start.

    Weight decay towards a starting point instead of zero (L2-SP: Li, Grandvalet & Davoine 2018, arXiv:1802.01483),
    after the step and apart from its learning rate, as AdamW decays.
    """

    rate: float = 0.05
    """Share of the way back to the phase's start, per generation."""

    def check(self, stages: Sequence[Stage], where: str = "method") -> None:
        """Raise EvergaitError for a rate that cannot work."""
        require(0 < self.rate <= 1, f"{where}.rate", self.rate, "above 0 and at most 1")

    def begin(self, context: Context, theta: Float32, memory: Memory, collect: Collect) -> Memory:
        """Remember the shared layers."""
        return {**memory, "anchor.start": theta[shared(context.policy)]} if context.stage.earlier else memory

    def after_step(self, context: Context, step: Step, theta: Float32, memory: Memory) -> tuple[Float32, Memory]:
        """Go a part of the way back."""
        if not context.stage.earlier:
            return theta, memory
        layers = shared(context.policy)
        here, start = theta[layers].astype(np.float64), memory["anchor.start"].astype(np.float64)
        after = theta.copy()
        after[layers] = here - self.rate * (here - start)
        return after, memory


def shared(policy: Policy) -> Bool:
    """(n_parameters,) all that is no task's own, outputs of the head that the task being learnt lacks included."""
    layers = np.ones(policy.n_parameters, np.bool_)
    for task in policy.tasks:
        for begin, end in policy.active(task, "own"):
            layers[begin:end] = False
    return layers
