"""Elastic weight consolidation: parameters that earlier tasks need are held to where those tasks left them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from evergait.core.arrays import Float32, Float64
from evergait.core.data import require
from evergait.methods.base import Collect, Collection, Context, Memory, Method, Stage, Step
from evergait.policy import Network


@dataclass(frozen=True)
class Ewc(Method, name="ewc"):
    """Pulls every parameter to where earlier tasks left it, by its importance for them.

    The penalty ½ s Σ_i F_i (θ − θ_i)² over the phases i before (Kirkpatrick et al. 2017, arXiv:1612.00796) is, for each
    parameter, one parabola with F = Σ F_i around θ* = Σ F_i θ_i / F, so two vectors remember any number of them.
    The pull is its exact proximal step, stable for any strength, after the ES step: θ ← (θ + s F θ*) / (1 + s F).
    Importances of a task are scaled to a mean of one where they are not zero. A task that returns is free in its own
    layers; in the shared ones it counts once for each of its phases. (Huszár 2018, arXiv:1712.03847, derives a single
    parabola around the latest θ instead.)
    """

    strength: float = 0.1
    """s: how hard a parameter of mean importance is pulled; 1 goes half of the way back in every generation."""
    importance: Literal["outputs", "search"] = "outputs"
    """F from the Gauss-Newton diagonal Σ_k (∂π_k/∂θ)² of the policy's outputs, a mean over observations that are
    collected when a task is left; or, black box, from the squared search gradients of the task's phase (those of starts
    that were given up included)."""
    decay: float = 1.0
    """Share of older importances kept when a task is added, as online EWC has it (Schwarz et al. 2018,
    arXiv:1805.06370)."""
    collection: Collection = field(default_factory=Collection)

    @property
    def n_recorded(self) -> int:
        """None if importances come from search."""
        return self.collection.episodes if self.importance == "outputs" else 0

    def check(self, stages: Sequence[Stage], where: str = "method") -> None:
        """Raise EvergaitError for settings that cannot work."""
        require(self.strength > 0, f"{where}.strength", self.strength, "above 0")
        require(0 <= self.decay <= 1, f"{where}.decay", self.decay, "from 0 to 1")
        self.collection.check(f"{where}.collection")

    def settings(self, stage: Stage) -> Mapping[str, Any]:
        """Where squared gradients are summed up, even a first phase is no naive one, but the same for any strength."""
        if self.importance == "search" and not stage.earlier:
            return {"name": self.name, "importance": self.importance}
        return super().settings(stage)

    def begin(self, context: Context, theta: Float32, memory: Memory, collect: Collect) -> Memory:
        """Add the task that was just left, and let go of what is only the new one's."""
        memory, task = dict(memory), context.stage.just_left
        if task is None:
            return memory
        if self.importance == "search":
            found = memory.pop("ewc.squares").astype(np.float64)
        else:
            found = gauss_newton_diagonal(context.network(task), theta, collect(task, self.collection))
        found /= max(float(np.mean(found[found > 0])), 1e-30) if found.any() else 1.0
        here = theta.astype(np.float64)
        before = self.decay * memory.get("ewc.importance", np.zeros_like(found)).astype(np.float64)
        anchor = memory.get("ewc.anchor", theta).astype(np.float64)
        total = before + found
        for returning in context.stage.tasks:
            for begin, end in context.policy.active(returning, "own"):
                total[begin:end] = 0
        anchor = np.where(total > 0, (before * anchor + found * here) / np.where(total > 0, total, 1.0), here)
        return {**memory, "ewc.importance": total.astype(np.float32), "ewc.anchor": anchor.astype(np.float32)}

    def after_step(self, context: Context, step: Step, theta: Float32, memory: Memory) -> tuple[Float32, Memory]:
        """Pull what the generation touched; sum up squared gradients if they are to be importances."""
        if self.importance == "search":
            squares = memory.get("ewc.squares", np.zeros(len(theta), np.float32))
            memory = {**memory, "ewc.squares": (squares + step.gradient**2).astype(np.float32)}
        if "ewc.importance" not in memory:
            return theta, memory
        touched = step.touched
        pull = self.strength * memory["ewc.importance"][touched].astype(np.float64)
        after = theta.copy()
        after[touched] = (theta[touched] + pull * memory["ewc.anchor"][touched]) / (1 + pull)
        return after, memory


def gauss_newton_diagonal(network: Network, theta: Float32, observations: Float32) -> Float64:
    """(n_parameters,) mean over observations of Σ_k (∂π_k/∂θ)², k over the outputs."""
    each = np.tile(np.eye(network.n_actions), (len(observations), 1))
    repeated = np.repeat(observations, network.n_actions, axis=0)
    return network.pull_back(theta.astype(np.float64), repeated, each, squared=True) / len(observations)
