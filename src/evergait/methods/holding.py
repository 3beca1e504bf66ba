"""Methods that hold what earlier tasks need: frozen, anchored or elastic parameters, and projected gradients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from evergait.core.arrays import Bool, Float32, Float64
from evergait.core.data import require
from evergait.methods.base import Batch, Collect, Collection, Context, Memory, Method, Stage, Step
from evergait.policy import Network, Policy


@dataclass(frozen=True)
class Freeze(Method, name="freeze"):
    """Changes only a task's own layers after the first task: nothing is forgotten, and little can be learnt.

    The floor for plasticity: progressive networks (Rusu et al. 2016, arXiv:1606.04671) without their new columns.
    Candidates are still perturbed everywhere; of the gradient Σ u ε only the part of the task's input layer, and of
    its own head if there is one, is followed.
    """

    alone: ClassVar[str] = "nothing that an earlier task uses changes, so there is nothing left to keep"

    def plan(self, stage: Stage, generation: int, batches: tuple[Batch, ...], memory: Memory) -> tuple[Batch, ...]:
        """The same evaluations, for the task's own layers."""
        return tuple(replace(batch, update="own") for batch in batches) if stage.earlier else batches


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
    collected when a task is left; or, black box, from the squared search gradients of the task's phase."""
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
