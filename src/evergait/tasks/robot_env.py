"""The Gymnasium environment of a robot file; its arithmetic is that of Gymnasium's Hopper and HalfCheetah."""

import importlib
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.spaces import Box

from evergait.core.arrays import Array, Float64
from evergait.core.errors import EvergaitError
from evergait.core.plugins import import_trusted
from evergait.tasks.base import Task
from evergait.tasks.robot_file import RobotFile, model_path, read_robot

EVERYWHERE = (-np.inf, np.inf)


class RobotEnv(MujocoEnv):
    """A robot that is rewarded for moving along its first joint."""

    def __init__(self, file: RobotFile, xml: str) -> None:
        self.file = file
        self._forward_reward_weight, self._ctrl_cost_weight = file.reward.forward, file.reward.control
        self._healthy_reward, self._reset_noise_scale = file.reward.healthy, file.reset_noise
        self._healthy_z_range, self._healthy_angle_range, self._healthy_state_range = (
            bounds or EVERYWHERE for bounds in (file.healthy.height, file.healthy.angle, file.healthy.state)
        )
        super().__init__(xml, file.frame_skip, observation_space=None)
        self.metadata = {**self.metadata, "render_fps": round(1.0 / self.dt)}
        size = self.model.nq + self.model.nv - file.hidden
        self.observation_space = Box(-np.inf, np.inf, (size,), np.float64)
        self._reward = _function(file.reward.function)

    @property
    def is_healthy(self) -> bool:
        """Whether the episode may go on."""
        if not self.file.stays_upright:
            return True
        position, velocity = self.data.qpos, self.data.qvel
        state = np.concatenate((position[2:], velocity))
        low, high = self._healthy_state_range
        upright = _inside(position[1], self._healthy_z_range) and _inside(position[2], self._healthy_angle_range)
        return bool(upright and np.all((low < state) & (state < high)))

    def step(self, action: Array) -> tuple[Float64, Any, bool, bool, dict[str, Any]]:
        """As in Gymnasium's own environments."""
        before = self.data.qpos[0]
        self.do_simulation(action, self.frame_skip)
        speed = (self.data.qpos[0] - before) / self.dt
        healthy = self.is_healthy
        if self._reward is not None:
            reward = self._reward(self, action, speed)
        else:
            gain = self._forward_reward_weight * speed
            if self.file.stays_upright:
                gain = gain + healthy * self._healthy_reward
            reward = gain - self._ctrl_cost_weight * np.sum(np.square(action))
        return self._get_obs(), reward, not healthy, False, {"speed": speed}

    def reset_model(self) -> Float64:
        """The model's own state, and noise."""
        noise = self._reset_noise_scale
        position = self.init_qpos + self.np_random.uniform(-noise, noise, size=self.model.nq)
        velocity = self.init_qvel + self.np_random.uniform(-noise, noise, size=self.model.nv)
        self.set_state(position, velocity)  # type: ignore[no-untyped-call]
        return self._get_obs()

    def _get_obs(self) -> Float64:
        velocity = np.clip(self.data.qvel, -10, 10) if self.file.clip_velocity else self.data.qvel
        return np.concatenate((self.data.qpos[self.file.hidden :], velocity))


def _inside(x: float, bounds: tuple[float, ...]) -> bool:
    return bool(bounds[0] < x < bounds[1])


def _function(place: str) -> Any:
    if not place:
        return None
    module, _, name = place.partition(":")
    import_trusted([module], "reward.function")
    found = getattr(importlib.import_module(module), name, None)
    if not callable(found):
        raise EvergaitError(f"reward.function: {module!r} has no function {name!r}")
    return found


def make_robot(task: Task) -> gymnasium.Env[Any, Any]:
    """The environment of a robot file, with its time limit."""
    file = read_robot(task)
    path = model_path(task, file)
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        raise EvergaitError(f"{task.id}: model: MuJoCo cannot read {path.name}: {str(error).strip()}") from error
    if (model.nq, model.nv) != (model.njnt, model.njnt) or not model.njnt:
        raise EvergaitError(f"{task.id}: model: its joints must all be slides and hinges, and there must be some")
    if file.hidden > model.nq:
        raise EvergaitError(f"{task.id}: hidden: is {file.hidden}; it must be at most {model.nq}, the number of joints")
    if file.stays_upright and model.njnt < 3:
        raise EvergaitError(f"{task.id}: healthy: needs three joints: along the way, height and angle")
    if not model.nu:
        raise EvergaitError(f"{task.id}: model: it has no actuator, so there is nothing to learn")
    for motor in range(model.nu):
        if not model.actuator_ctrllimited[motor] and not model.actuator_ctrlrange[motor].any():
            name = model.actuator(motor).name or motor
            raise EvergaitError(
                f"{task.id}: model: actuator {name!r}: its ctrlrange is 0 0, so it would never move; "
                'give it a range for its actions, such as ctrlrange="-1 1"'
            )
    creator: Any = RobotEnv
    arguments = {"file": file, "xml": str(path)}
    spec = gymnasium.envs.registration.EnvSpec("robot-v0", creator, max_episode_steps=file.steps, kwargs=arguments)
    return gymnasium.make(spec, disable_env_checker=True)
