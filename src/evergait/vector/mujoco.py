"""Robots of the mujoco engine: every bit as Gymnasium has it, for tasks that the planar engine refuses.

What Gymnasium's environments tell beside the reward are rules on arrays, too; the parts of the reward among it are
those of engines/mujoco/tasks.py.
"""
# ruff: noqa: D102 - the methods are documented once, in Infos and Robots

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from evergait.core.arrays import Array, Bool, Float32, Float64
from evergait.core.errors import EvergaitError
from evergait.engines.mujoco.simulation import Simulation
from evergait.engines.mujoco.tasks import norms
from evergait.tasks import Task, Variant
from evergait.tasks.quiet import quiet
from evergait.vector.robots import Columns, Generators


class Infos(ABC):
    """Infos of one task; a subclass says which."""

    extra: ClassVar[tuple[str, ...]] = ()
    """Fields of MuJoCo's data that a reset tells as they are."""
    n_axes: ClassVar[int] = 1
    """Along how many axes positions and speeds are told."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.at, self.env = simulation.at, simulation.rules.env
        self.rules: Any = simulation.rules
        self.start: Float64 = simulation.start
        self._fields = {name: simulation.bind(name) for name in self.extra}
        self.before = self.place().copy()
        self.step_columns: dict[str, Array] = {}

    def place(self) -> Float64:
        """(n, n_axes) where robots are, as far as their speed is concerned."""
        return self.at.qpos[:, : self.n_axes]

    def begin(self, which: Bool) -> None:
        """Some robots are somewhere else."""
        self.before[which] = self.place()[which]

    def reset_columns(self) -> Columns:
        """What a reset tells."""
        return {}

    def step(self, actions: Float32) -> None:
        """Look at what a step has done."""
        place = self.place()
        speed = (place - self.before) / self.rules.dt
        self.before[:] = place
        self.step_columns = {**self.reset_columns(), **self.tell(speed, actions)}

    def hide(self, which: Bool) -> None:
        """Tell zeros of robots whose step has come to nothing."""
        for values in self.step_columns.values():
            values[which] = 0

    @abstractmethod
    def tell(self, speed: Float64, actions: Float32) -> dict[str, Array]:
        """What a step tells beside what a reset tells."""

    def _survive(self) -> Float64:
        return np.asarray(self.rules.healthy(self.at) * self.rules.healthy_reward, np.float64)


class Runner(Infos):
    """HalfCheetah."""

    def reset_columns(self) -> Columns:
        return {"x_position": self.at.qpos[:, 0].copy()}

    def tell(self, speed: Float64, actions: Float32) -> dict[str, Array]:
        forward = self.env._forward_reward_weight * speed[:, 0]
        return {"x_velocity": speed[:, 0], "reward_forward": forward, "reward_ctrl": -self.rules.control_cost(actions)}


class Walker(Runner):
    """Hopper and Walker2d."""

    def reset_columns(self) -> Columns:
        height = self.at.qpos[:, 1] - self.start[1]
        return {"x_position": self.at.qpos[:, 0].copy(), "z_distance_from_origin": height}

    def tell(self, speed: Float64, actions: Float32) -> dict[str, Array]:
        return {**super().tell(speed, actions), "reward_survive": self._survive()}


class Swimmer(Runner):
    """In two dimensions."""

    n_axes = 2

    def reset_columns(self) -> Columns:
        flat = self.at.qpos[:, :2].copy()
        return {"x_position": flat[:, 0], "y_position": flat[:, 1], "distance_from_origin": norms(flat)}

    def tell(self, speed: Float64, actions: Float32) -> dict[str, Array]:
        return {**super().tell(speed, actions), "y_velocity": speed[:, 1]}


class Ant(Swimmer):
    """Its speed is its main body's."""

    def place(self) -> Float64:
        """(n, 2) of the main body."""
        place: Float64 = self.at.xpos[:, self.rules.main_body, :2]
        return place

    def tell(self, speed: Float64, actions: Float32) -> dict[str, Array]:
        costs = {"reward_contact": -self.rules.contact_cost(self.at), "reward_survive": self._survive()}
        return {**super().tell(speed, actions), **costs}


class Humanoid(Swimmer):
    """Its speed is its centre of mass's."""

    extra = ("ten_length", "ten_velocity")

    def place(self) -> Float64:
        """(n, 2) of the centre of mass."""
        place: Float64 = self.rules.centre(self.at)[:, :2]
        return place

    def reset_columns(self) -> Columns:
        return {**super().reset_columns(), **self._tendons()}

    def _tendons(self) -> dict[str, Array]:
        return {name.replace("ten_", "tendon_"): values.copy() for name, values in self._fields.items()}

    def tell(self, speed: Float64, actions: Float32) -> dict[str, Array]:
        costs = {"reward_contact": -self.rules.contact_cost(self.at), "reward_survive": self._survive()}
        return {**super().tell(speed, actions), **costs, "reward_ctrl": -self.rules.control_cost(self.at.ctrl)}


class HumanoidStandup(Humanoid):
    """Told by its height."""

    def place(self) -> Float64:
        """Not asked for."""
        return self.at.qpos[:, :2]

    def reset_columns(self) -> Columns:
        qpos = self.at.qpos[:, :3].copy()
        height = qpos[:, 2] - self.start[2]
        return {"x_position": qpos[:, 0], "y_position": qpos[:, 1], "z_distance_from_origin": height, **self._tendons()}

    def tell(self, speed: Float64, actions: Float32) -> dict[str, Array]:
        height = self.at.qpos[:, 2] / self.env.model.opt.timestep
        costs = {"reward_quadctrl": -self.rules.control_cost(self.at.ctrl)}
        return {"reward_linup": height, **costs, "reward_impact": -self.rules.impact_cost(self.at)}


class Pendulum(Infos):
    """InvertedPendulum."""

    def tell(self, speed: Float64, actions: Float32) -> dict[str, Array]:
        return {"reward_survive": self.rules.healthy(self.at).astype(int)}


class DoublePendulum(Infos):
    """InvertedDoublePendulum."""

    def tell(self, speed: Float64, actions: Float32) -> dict[str, Array]:
        distance, velocity = self.rules.penalties(self.at)
        return {"reward_survive": self._survive(), "distance_penalty": -distance, "velocity_penalty": -velocity}


class Reacher(Infos):
    """Told by its distances."""

    def tell(self, speed: Float64, actions: Float32) -> dict[str, Array]:
        return {"reward_dist": self.rules.distance_reward(self.at), "reward_ctrl": self.rules.control_reward(actions)}


class Pusher(Reacher):
    """Between hand, object and goal."""

    def tell(self, speed: Float64, actions: Float32) -> dict[str, Array]:
        return {**super().tell(speed, actions), "reward_near": self.rules.near_reward(self.at)}


INFOS: dict[str, type[Infos]] = {
    "Ant-v5": Ant,
    "HalfCheetah-v5": Runner,
    "Hopper-v5": Walker,
    "Humanoid-v5": Humanoid,
    "HumanoidStandup-v5": HumanoidStandup,
    "InvertedDoublePendulum-v5": DoublePendulum,
    "InvertedPendulum-v5": Pendulum,
    "Pusher-v5": Pusher,
    "Reacher-v5": Reacher,
    "Swimmer-v5": Swimmer,
    "Walker2d-v5": Walker,
}
"""By Gymnasium id."""


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
        self.kind = f"{task.id} on the mujoco engine"

    def set_variants(self, variants: Sequence[Variant]) -> None:
        """Refused: a batch of MuJoCo has one model."""
        if any(variant != self.task.variant for variant in variants):
            raise EvergaitError(f"variant: {self.task.id} is simulated by MuJoCo, which has one variant for all")

    def begin(self, which: Bool) -> None:
        """New episodes, from the generators."""
        self._come_along()
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
        wrong = np.flatnonzero(which & ~np.isfinite(actions).all(axis=1))
        if wrong.size:
            raise EvergaitError(f"actions[{wrong[0]}]: is {actions[wrong[0]].tolist()}; it must be finite numbers")
        self._come_along()
        with quiet(), np.errstate(all="ignore"):
            rewards, terminated = self.simulation.advance(actions, which)
            self._infos.step(actions)
            seen = self.simulation.observe()
            bad = which & (self.simulation.diverged() | ~np.isfinite(rewards))
        fine = which & ~bad
        self.observations[fine], self.rewards[fine] = seen[fine], rewards[fine]
        self.terminated[fine] = terminated[fine]
        if self.limit:
            self.truncated[which] = (self.simulation.elapsed >= self.limit)[which]
        self.diverged[which] = bad[which]
        if bad.any():  # they stay where they were last seen, and their episodes are over
            self.rewards[bad], self.terminated[bad] = 0.0, True
            self._infos.hide(bad)

    def _come_along(self) -> None:
        """In a fork, which has no threads of the simulation's: go on in one of its own."""
        if not self.simulation.is_lost:
            return
        before, told = self._infos.before, self._infos.step_columns
        with quiet():
            self.simulation = self.simulation.again()
        self._infos = INFOS[self.task.id](self.simulation)
        self._infos.before[:], self._infos.step_columns = before, told

    def step_infos(self) -> Columns:
        """What Gymnasium's environment tells after a step."""
        return self._infos.step_columns

    def reset_infos(self) -> Columns:
        """What it tells after a reset."""
        return self._infos.reset_columns()

    def live(self) -> dict[str, Array]:
        """The arrays that decide what comes next; what is derived of them is not among them."""
        self._come_along()
        return self.simulation.kept() | {"generator": self.generators.words, "before": self._infos.before}

    def twin(self) -> "MujocoRobots":
        """As many of the same kind, without their states."""
        dtype = self.observations.dtype.type
        return MujocoRobots(self.task, self.n, self.limit, self.simulation.n_threads, dtype)
