"""Distillation: the policy is taught what it did itself when it left a task, by exact gradients, simulating nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evergait.core.arrays import Float32
from evergait.core.data import MOST_ROWS, require, within
from evergait.core.random import DISTILLATION, Noise
from evergait.es import Adam
from evergait.methods.base import Collect, Collection, Context, Memory, Method, Stage, Step, split_evenly

ROUNDING = 1e-7
"""Outputs are kept in float32 and lie in [−1, 1] with tanh: no smaller error is one."""


@dataclass(frozen=True)
class Distill(Method, name="distill"):
    """Keeps old tasks' actions on remembered observations by Adam steps after every ES step.

    When a task is left, a bounded set of observations o and of the outputs a that the policy had there is kept. Every
    generation of later phases then takes some steps down ½ Σ ‖π(o) − a‖², a mean over o and a sum over earlier tasks,
    through their own input layers and the shared ones (policy distillation: Rusu et al. 2016, arXiv:1511.06295; outputs
    in a reservoir: Buzzega et al. 2020, arXiv:2004.07211; noise in the teacher's actions: Laskey et al. 2017,
    arXiv:1703.09327). The outputs' unit is half the action's range, so tasks weigh alike.
    """

    steps: int = 10
    """Adam steps per generation."""
    batch: int = 256
    """Observations per step, split evenly over earlier tasks."""
    learning_rate: float = 1e-3
    """Size of an Adam step; its moments begin anew in every generation."""
    collection: Collection = field(default_factory=Collection)

    @property
    def n_recorded(self) -> int:
        """All that the collection asks for."""
        return self.collection.episodes

    @property
    def n_kept(self) -> int:
        """All of the sample."""
        return self.collection.observations

    def check(self, stages: Sequence[Stage], where: str = "method") -> None:
        """Raise EvergaitError for settings that cannot work."""
        within(self.steps, 1, 2**32 - 1, f"{where}.steps")
        most = max(1, *(len(stage.earlier) for stage in stages))
        require(self.batch >= most, f"{where}.batch", self.batch, f"at least {most}, one per earlier task")
        within(self.batch, 1, MOST_ROWS, f"{where}.batch")
        require(self.learning_rate > 0, f"{where}.learning_rate", self.learning_rate, "above 0")
        self.collection.check(f"{where}.collection")

    def begin(self, context: Context, theta: Float32, memory: Memory, collect: Collect) -> Memory:
        """Collect from the task that was just left; a task that is learnt again need not be remembered meanwhile."""
        forgotten = [name for task in context.stage.tasks for name in memory_names(task)]
        memory = {name: value for name, value in memory.items() if name not in forgotten}
        if task := context.stage.just_left:
            observations = collect(task, self.collection)
            outputs = context.network(task).outputs(theta.astype(np.float64), observations)
            memory |= zip(memory_names(task), (observations, outputs.astype(np.float32)), strict=True)
        return memory

    def after_step(self, context: Context, step: Step, theta: Float32, memory: Memory) -> tuple[Float32, Memory]:
        """Teach the old tasks' actions again, in float64 and rounded once."""
        if not context.stage.earlier:
            return theta, memory
        stage, adam, moved = context.stage, Adam(self.learning_rate), theta.astype(np.float64)
        noise = Noise(stage.seed, DISTILLATION, step.generation, stage.index)
        lessons = []
        for i, (task, share) in enumerate(
            zip(stage.earlier, split_evenly(self.batch, len(stage.earlier)), strict=True)
        ):
            observations, outputs = (memory[name] for name in memory_names(task))
            rows = noise.integers(self.steps * share, i).reshape(self.steps, share) % np.uint32(len(observations))
            lessons.append((context.network(task), observations, outputs, rows))
        state = adam.start(len(moved))
        for number in range(self.steps):
            gradient = np.zeros(len(moved))
            for network, observations, outputs, rows in lessons:
                network.approach(moved, observations, outputs, rows[number], gradient, ROUNDING)
            change, state = adam.step(gradient, state)
            moved += change
        return moved.astype(np.float32), memory


def memory_names(task: object) -> tuple[str, str]:
    """Of a task's observations and outputs, among what a method keeps."""
    return f"distill.{task}.observations", f"distill.{task}.outputs"
