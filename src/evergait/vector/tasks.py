"""Gymnasium's planar tasks as a source of robots: compiled once per variant, with the environment's own options."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from evergait.core.arrays import Float64
from evergait.core.errors import EvergaitError
from evergait.engines.planar.robot import Robot, compile_environment
from evergait.tasks import Task, Variant
from evergait.vector.planar import Group, Start

_FORWARD = {"x_velocity": float, "reward_forward": float, "reward_ctrl": np.float32}
_UPRIGHT_RESET = {"x_position": float, "z_distance_from_origin": float}
_FLAT_RESET = {"x_position": float, "y_position": float, "distance_from_origin": float}
_PENALTIES = {"distance_penalty": float, "velocity_penalty": float}

RESET_COLUMNS: dict[str, dict[str, type[Any]]] = {
    "HalfCheetah-v5": {"x_position": float},
    "Hopper-v5": _UPRIGHT_RESET,
    "InvertedDoublePendulum-v5": {},
    "InvertedPendulum-v5": {},
    "Swimmer-v5": _FLAT_RESET,
    "Walker2d-v5": _UPRIGHT_RESET,
}
"""Infos by task and their types, as Gymnasium's environments give them after a reset."""
STEP_COLUMNS: dict[str, dict[str, type[Any]]] = {
    "HalfCheetah-v5": {"x_position": float, **_FORWARD},
    "Hopper-v5": {**_UPRIGHT_RESET, **_FORWARD, "reward_survive": float},
    "InvertedDoublePendulum-v5": {"reward_survive": float, **_PENALTIES},
    "InvertedPendulum-v5": {"reward_survive": int},
    "Swimmer-v5": {**_FLAT_RESET, "y_velocity": float, **_FORWARD},
    "Walker2d-v5": {**_UPRIGHT_RESET, **_FORWARD, "reward_survive": float},
}
_NORMAL_VELOCITIES = ("HalfCheetah-v5", "InvertedDoublePendulum-v5")


class TaskSource:
    """Robots of one Gymnasium id; keyword arguments are those of its environment."""

    def __init__(self, task: Task, options: Mapping[str, Any]) -> None:
        self.id, self.options = task.id, dict(options)
        self._robots: dict[Variant, Robot] = {}
        first = self.robot(task.variant)
        self.n_dofs, self.n_actions = first.model.n_dofs, first.model.n_actuators
        self.ends: bool = getattr(first.env, "_terminate_when_unhealthy", True)
        self.start: Start = "normal" if task.id in _NORMAL_VELOCITIES else "uniform"
        self.step_columns, self.reset_columns = STEP_COLUMNS[task.id], RESET_COLUMNS[task.id]

    def robot(self, variant: Variant) -> Robot:
        """The compiled robot of a variant."""
        if variant not in self._robots:
            self._robots[variant] = compile_environment(Task(self.id, variant), self._make)
        return self._robots[variant]

    def _make(self, task: Task) -> gymnasium.Env[Any, Any]:
        return make_environment(task.id, self.options)

    def group(self, variant: Variant) -> Group:
        """The robot of a variant; raises EvergaitError if there is none."""
        robot = self.robot(variant)
        env, rules = robot.env, robot.rules
        n_observations = 2 * robot.model.n_dofs - rules.n_hidden
        n_observations += robot.model.n_dofs if rules.kind == "double pendulum" else 0
        start = env.init_qpos, env.init_qvel, float(env._reset_noise_scale)
        return Group(robot.model.description, rules.flat(), *start, n_observations)

    def draw(self, variant: Variant, generator: np.random.Generator) -> tuple[Float64, Float64]:
        """Position and velocity at the start of an episode, by the environment's own reset."""
        env, drawn = self.robot(variant).env, list[Float64]()
        env.set_state = lambda qpos, qvel: drawn.extend((qpos, qvel))
        env._get_obs = lambda: None
        env.np_random = generator
        env.reset_model()
        return drawn[0], drawn[1]


def make_environment(identifier: str, options: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    """Gymnasium's own environment, without its passive checker."""
    try:
        return gymnasium.make(identifier, disable_env_checker=True, **options)
    except gymnasium.error.Error as error:
        raise EvergaitError(f"id {identifier!r}: Gymnasium cannot make it: {error}") from error
    except (TypeError, ValueError, ArithmeticError) as error:
        raise EvergaitError(f"id {identifier!r}: its environment does not take these options: {error}") from error
