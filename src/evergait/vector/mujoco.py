"""Robots of the mujoco engine: every bit as Gymnasium has it, for tasks that the planar engine refuses."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evergait.core.arrays import Array, Bool, Float32
from evergait.core.errors import EvergaitError
from evergait.engines.mujoco.simulation import Simulation
from evergait.tasks import Task, Variant
from evergait.tasks.quiet import quiet
from evergait.vector.generators import Generators
from evergait.vector.infos import INFOS
from evergait.vector.robots import Columns


class MujocoRobots:
    """n robots of one task and variant; see Robots for what they do."""

    def __init__(self, task: Task, n: int, limit: int, n_threads: int, dtype: type[Any]) -> None:
        if task.variant.observation_noise:
            raise EvergaitError(f"task {task.name!r}: observation noise needs the planar engine")
        self.n, self.task, self.limit = n, task, limit
        with quiet():
            self.simulation = Simulation(task, n, n_threads)
        self.simulation.keep(n)
        self.generators = Generators(n)
        self._infos = INFOS[task.id](self.simulation)
        self.observations: Array = np.zeros(self.simulation.seen.shape, dtype)
        self.rewards = np.zeros(n)
        self.terminated, self.truncated, self.diverged = np.zeros((3, n), bool)
        self.variants = [task.variant] * n

    def set_variants(self, variants: Sequence[Variant]) -> None:
        """Refused: a batch of MuJoCo has one model."""
        if any(variant != self.task.variant for variant in variants):
            raise EvergaitError(f"variant: {self.task.id} is simulated by MuJoCo, which has one variant for all")

    def begin(self, which: Bool) -> None:
        """New episodes, from the generators."""
        rows = np.flatnonzero(which).astype(np.int32)
        generators = [self.generators.get(row) for row in rows.tolist()]
        with quiet():
            self.simulation.begin(rows, generators)
        for row, generator in zip(rows.tolist(), generators, strict=True):
            self.generators.put(row, generator)
        self._infos.begin(which)
        self.observations[which] = self.simulation.observe()[which]
        self.diverged[which] = False

    def step(self, actions: Float32, which: Bool) -> None:
        """One step of every robot that is named."""
        bad = np.flatnonzero(which & ~np.isfinite(actions).all(axis=1))
        if bad.size:
            raise EvergaitError(f"actions[{bad[0]}]: is {actions[bad[0]].tolist()}; it must be finite numbers")
        with quiet(), np.errstate(all="ignore"):
            rewards, terminated = self.simulation.advance(actions, which)
            self._infos.step(actions)
            seen = self.simulation.observe()
        self.observations[which], self.rewards[which] = seen[which], rewards[which]
        self.terminated[which] = terminated[which]
        if self.limit:
            self.truncated[which] = (self.simulation.elapsed >= self.limit)[which]
        self.diverged[which] = self.simulation.diverged()[which]

    def step_infos(self) -> Columns:
        """What Gymnasium's environment tells after a step."""
        return self._infos.step_columns

    def reset_infos(self) -> Columns:
        """What it tells after a reset."""
        return self._infos.reset_columns()

    def save(self) -> dict[str, Array]:
        """Copies of all that decides what comes next."""
        kept = {name: values.copy() for name, values in self.simulation.kept().items()}
        return kept | {"generator": self.generators.words.copy()}

    def twin(self) -> "MujocoRobots":
        """As many of the same kind, without their states."""
        dtype = self.observations.dtype.type
        return MujocoRobots(self.task, self.n, self.limit, self.simulation.n_threads, dtype)

    def load(self, saved: Mapping[str, Array]) -> None:
        """Go back to what was saved."""
        self.generators.words[:] = saved["generator"]
        for name, values in self.simulation.kept().items():
            values[:] = saved[name]
        self._infos.begin(np.ones(self.n, bool))
