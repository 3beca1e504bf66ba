"""The eleven Gymnasium MuJoCo v5 environments as rules on arrays: observation, reward, ending.

Each rule repeats the arithmetic of `gymnasium/envs/mujoco/*_v5.py` operation by operation, so that every bit agrees;
constants and initial states are read from an instance of the environment itself. A control cost is computed in the
action's own float32, sums run as `np.sum` runs over one environment's array, and norms as `np.linalg.norm` does.
"""
# ruff: noqa: D102 - the methods are documented once, in Rules

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np

from evergait.core.arrays import Array, Bool, Float32, Float64
from evergait.tasks import Task
from evergait.tasks.robot_file import is_robot_file, read_robot


class Fields:
    """Live fields of MuJoCo's data, one row per running simulation; derived ones only if the rules ask for them."""

    qpos: Float64
    qvel: Float64
    ctrl: Float64
    xpos: Float64
    xipos: Float64
    site_xpos: Float64
    cinert: Float64
    cvel: Float64
    cfrc_ext: Float64
    qfrc_actuator: Float64
    qfrc_constraint: Float64


class Environment(Protocol):
    """What the rules read of a Gymnasium environment; none has all of it."""

    dt: float
    model: Any
    data: Any
    _forward_reward_weight: float
    _ctrl_cost_weight: float
    _contact_cost_weight: float
    _contact_cost_range: tuple[float, float]
    _contact_force_range: tuple[float, float]
    _impact_cost_weight: float
    _impact_cost_range: tuple[float, float]
    _healthy_z_range: tuple[float, float]
    _healthy_angle_range: tuple[float, float]
    _healthy_state_range: tuple[float, float]
    _reward_near_weight: float
    _reward_dist_weight: float
    _reward_control_weight: float
    _main_body: int | str


class Rules(ABC):
    """How one environment turns n simulations into observations (n, n_observations) and rewards (n,)."""

    id: ClassVar[str]
    derived: ClassVar[tuple[str, ...]] = ()
    """Fields of MuJoCo's data that the rules read, beside the state."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.dt = env.dt
        self.healthy_reward: float = getattr(env, "_healthy_reward", 0.0)

    @abstractmethod
    def observe(self, at: Fields) -> list[Array]:
        """The observation's parts, each (n, ...), in order."""

    def position(self, at: Fields) -> Float64:
        """(n,) where the simulations are on the axis along which speed is rewarded."""
        return at.qpos[:, 0].copy()

    def healthy(self, at: Fields) -> Bool:
        """(n,) whether the episode may go on; NaN must compare as unhealthy."""
        return np.ones(len(at.qpos), bool)

    @abstractmethod
    def reward(self, at: Fields, speed: Float64, healthy: Bool, actions: Float32) -> Float64:
        """(n,) from the speed since the last step, `healthy` and the action."""

    def control_cost(self, actions: Array) -> Array:
        """(n,) of actions, or of what MuJoCo made of them."""
        return self.env._ctrl_cost_weight * sums_of_squares(actions)


class Swimmer(Rules):
    """Rewarded for speed, charged for control; never ends."""

    id = "Swimmer-v5"
    n_hidden: ClassVar[int] = 2
    """Leading positions that the policy does not see."""

    def observe(self, at: Fields) -> list[Array]:
        return [at.qpos[:, self.n_hidden :], at.qvel]

    def reward(self, at: Fields, speed: Float64, healthy: Bool, actions: Float32) -> Float64:
        return self.env._forward_reward_weight * speed - self.control_cost(actions)


class HalfCheetah(Swimmer):
    """As Swimmer, in a plane."""

    id = "HalfCheetah-v5"
    n_hidden = 1


class Walker2d(Rules):
    """Rewarded for speed and for being upright."""

    id = "Walker2d-v5"

    def observe(self, at: Fields) -> list[Array]:
        return [at.qpos[:, 1:], np.clip(at.qvel, -10, 10)]

    def healthy(self, at: Fields) -> Bool:
        return _inside(at.qpos[:, 1], self.env._healthy_z_range) & _inside(at.qpos[:, 2], self.env._healthy_angle_range)

    def reward(self, at: Fields, speed: Float64, healthy: Bool, actions: Float32) -> Float64:
        gain = self.env._forward_reward_weight * speed + healthy * self.healthy_reward
        return gain - self.control_cost(actions)


class Hopper(Walker2d):
    """As Walker2d; the whole state but x and z must also stay within bounds."""

    id = "Hopper-v5"

    def healthy(self, at: Fields) -> Bool:
        bounds = self.env._healthy_state_range
        calm = _inside(at.qpos[:, 2:], bounds).all(axis=1) & _inside(at.qvel, bounds).all(axis=1)
        return calm & super().healthy(at)


class Own(Hopper):
    """A robot file's: as Hopper where it must stay upright, else as Swimmer."""

    id = ""
    env: Any

    def observe(self, at: Fields) -> list[Array]:
        velocity = np.clip(at.qvel, -10, 10) if self.env.file.clip_velocity else at.qvel
        return [at.qpos[:, self.env.file.hidden :], velocity]

    def healthy(self, at: Fields) -> Bool:
        return super().healthy(at) if self.env.file.stays_upright else Rules.healthy(self, at)

    def reward(self, at: Fields, speed: Float64, healthy: Bool, actions: Float32) -> Float64:
        if self.env.file.stays_upright:
            return super().reward(at, speed, healthy, actions)
        value: Float64 = self.env._forward_reward_weight * speed - self.control_cost(actions)
        return value


class Ant(Rules):
    """Rewarded for the torso's speed and for being upright, charged for control and contact."""

    id = "Ant-v5"
    derived = ("xpos", "cfrc_ext")

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self.main_body: int = env.data.body(env._main_body).id

    def observe(self, at: Fields) -> list[Array]:
        return [at.qpos[:, 2:], at.qvel, self._contact_forces(at)[:, 6:]]

    def position(self, at: Fields) -> Float64:
        return at.xpos[:, self.main_body, 0].copy()

    def healthy(self, at: Fields) -> Bool:
        low, high = self.env._healthy_z_range
        height = at.qpos[:, 2]
        finite = np.isfinite(at.qpos).all(axis=1) & np.isfinite(at.qvel).all(axis=1)
        return finite & (low <= height) & (height <= high)

    def reward(self, at: Fields, speed: Float64, healthy: Bool, actions: Float32) -> Float64:
        gain = speed * self.env._forward_reward_weight + healthy * self.healthy_reward
        return gain - (self.control_cost(actions) + self.contact_cost(at))

    def contact_cost(self, at: Fields) -> Float64:
        return self.env._contact_cost_weight * sums_of_squares(self._contact_forces(at))

    def _contact_forces(self, at: Fields) -> Float64:
        return np.clip(at.cfrc_ext.reshape(len(at.qpos), -1), *self.env._contact_force_range)


class HumanoidStandup(Rules):
    """Rewarded for height, charged for control and impact; never ends."""

    id = "HumanoidStandup-v5"
    derived: ClassVar[tuple[str, ...]] = ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")

    def observe(self, at: Fields) -> list[Array]:
        n = len(at.qpos)
        bodies = [field[:, 1:].reshape(n, -1) for field in (at.cinert, at.cvel, at.cfrc_ext)]
        return [at.qpos[:, 2:], at.qvel, bodies[0], bodies[1], at.qfrc_actuator[:, 6:], bodies[2]]

    def reward(self, at: Fields, speed: Float64, healthy: Bool, actions: Float32) -> Float64:
        height: Float64 = at.qpos[:, 2] / self.env.model.opt.timestep
        return height - self.control_cost(at.ctrl) - self.impact_cost(at) + 1

    def impact_cost(self, at: Fields) -> Float64:
        return self._impact(at, self.env._impact_cost_weight, self.env._impact_cost_range)

    def _impact(self, at: Fields, weight: float, bounds: tuple[float, float]) -> Float64:
        return np.clip(weight * sums_of_squares(at.cfrc_ext.reshape(len(at.qpos), -1)), *bounds)


class Humanoid(HumanoidStandup):
    """Rewarded for the centre of mass's speed and for being upright, charged for control and contact."""

    id = "Humanoid-v5"
    derived = (*HumanoidStandup.derived, "xipos")

    def position(self, at: Fields) -> Float64:
        return self.centre(at)[:, 0]

    def centre(self, at: Fields) -> Float64:
        """(n, 3) of mass, summed as Gymnasium sums it."""
        mass: Float64 = self.env.model.body_mass
        centre: Float64 = np.einsum("b,nbj->nj", mass, at.xipos) / mass.sum()
        return centre

    def healthy(self, at: Fields) -> Bool:
        return _inside(at.qpos[:, 2], self.env._healthy_z_range)

    def reward(self, at: Fields, speed: Float64, healthy: Bool, actions: Float32) -> Float64:
        gain = self.env._forward_reward_weight * speed + healthy * self.healthy_reward
        return gain - (self.control_cost(at.ctrl) + self.contact_cost(at))

    def contact_cost(self, at: Fields) -> Float64:
        return self._impact(at, self.env._contact_cost_weight, self.env._contact_cost_range)


class InvertedPendulum(Rules):
    """One for every step upright."""

    id = "InvertedPendulum-v5"

    def observe(self, at: Fields) -> list[Array]:
        return [at.qpos, at.qvel]

    def healthy(self, at: Fields) -> Bool:
        finite = np.isfinite(at.qpos).all(axis=1) & np.isfinite(at.qvel).all(axis=1)
        return finite & ~(np.abs(at.qpos[:, 1]) > 0.2)

    def reward(self, at: Fields, speed: Float64, healthy: Bool, actions: Float32) -> Float64:
        return healthy.astype(np.float64)


class InvertedDoublePendulum(Rules):
    """Rewarded for being upright, charged for distance and speed."""

    id = "InvertedDoublePendulum-v5"
    derived = ("site_xpos", "qfrc_constraint")

    def observe(self, at: Fields) -> list[Array]:
        angles, force = at.qpos[:, 1:], at.qfrc_constraint[:, :1]
        return [at.qpos[:, :1], np.sin(angles), np.cos(angles), np.clip(at.qvel, -10, 10), np.clip(force, -10, 10)]

    def healthy(self, at: Fields) -> Bool:
        return ~(at.site_xpos[:, 0, 2] <= 1)

    def reward(self, at: Fields, speed: Float64, healthy: Bool, actions: Float32) -> Float64:
        distance, velocity = self.penalties(at)
        return self.healthy_reward * healthy - distance - velocity

    def penalties(self, at: Fields) -> tuple[Float64, Float64]:
        """(n,) of the tip's distance from where it should be, and of speed."""
        x, y = at.site_xpos[:, 0, 0], at.site_xpos[:, 0, 2]
        distance = 0.01 * scalar_squares(x) + scalar_squares(y - 2)
        return distance, 1e-3 * scalar_squares(at.qvel[:, 1]) + 5e-3 * scalar_squares(at.qvel[:, 2])


class Reacher(Rules):
    """Charged for the distance between fingertip and target, and for control; never ends."""

    id = "Reacher-v5"
    derived = ("xpos",)

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self.bodies: dict[str, int] = {env.model.body(i).name: i for i in range(env.model.nbody)}

    def observe(self, at: Fields) -> list[Array]:
        angles = at.qpos[:, :2]
        return [np.cos(angles), np.sin(angles), at.qpos[:, 2:], at.qvel[:, :2], self._to_target(at)[:, :2]]

    def reward(self, at: Fields, speed: Float64, healthy: Bool, actions: Float32) -> Float64:
        return self.distance_reward(at) + self.control_reward(actions)

    def distance_reward(self, at: Fields) -> Float64:
        return -norms(self._to_target(at)) * self.env._reward_dist_weight

    def control_reward(self, actions: Float32) -> Array:
        return -sums_of_squares(actions) * self.env._reward_control_weight

    def _to_target(self, at: Fields) -> Float64:
        return self._body(at, "fingertip") - self._body(at, "target")

    def _body(self, at: Fields, name: str) -> Float64:
        return at.xpos[:, self.bodies[name]]


class Pusher(Reacher):
    """Charged for the distances between hand, object and goal, and for control; never ends."""

    id = "Pusher-v5"

    def observe(self, at: Fields) -> list[Array]:
        bodies = [self._body(at, name) for name in ("tips_arm", "object", "goal")]
        return [at.qpos[:, :7], at.qvel[:, :7], *bodies]

    def reward(self, at: Fields, speed: Float64, healthy: Bool, actions: Float32) -> Float64:
        return super().reward(at, speed, healthy, actions) + self.near_reward(at)

    def near_reward(self, at: Fields) -> Float64:
        return -norms(self._body(at, "object") - self._body(at, "tips_arm")) * self.env._reward_near_weight

    def _to_target(self, at: Fields) -> Float64:
        return self._body(at, "object") - self._body(at, "goal")


def _inside(x: Float64, bounds: tuple[float, float]) -> Bool:
    return (bounds[0] < x) & (x < bounds[1])


def sums_of_squares(x: Array) -> Array:
    """Of every row."""
    squares: Array = np.square(x).sum(axis=1)
    return squares


def norms(x: Float64) -> Float64:
    """np.linalg.norm of every row: it calls BLAS's dot, whose fused multiply-adds a plain sum would not repeat."""
    squares: Float64 = np.vecdot(x, x)
    return np.sqrt(squares)


def scalar_squares(x: Float64) -> Float64:
    """A NumPy scalar's `** 2` calls libm's pow, which differs from x·x, and from what arrays do, in the last bit."""
    return np.array([value**2 for value in x])


RULES: dict[str, type[Rules]] = {
    rules.id: rules
    for rules in (
        Ant,
        HalfCheetah,
        Hopper,
        Humanoid,
        HumanoidStandup,
        InvertedDoublePendulum,
        InvertedPendulum,
        Pusher,
        Reacher,
        Swimmer,
        Walker2d,
    )
}
"""Every environment that the `mujoco` engine knows, by Gymnasium id."""


def rules_of(task: Task) -> type[Rules] | None:
    """The rules of a task, if the engine knows them."""
    if is_robot_file(task):
        return None if read_robot(task).reward.function else Own
    return RULES.get(task.id)
