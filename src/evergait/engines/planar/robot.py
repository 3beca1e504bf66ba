"""A task compiled for the native core: its robot, its rules, and the environment that draws its initial states."""

import dataclasses
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import mujoco
import numpy as np
from gymnasium.utils import seeding

from evergait import _native
from evergait.core.arrays import Float64, UInt32
from evergait.core.errors import EvergaitError
from evergait.engines.planar.contacts import TOLERANCE
from evergait.engines.planar.model import PlanarModel, compile_model, flatten
from evergait.tasks import Task, make, spaces
from evergait.tasks.base import apply_to_environment, unsupported
from evergait.tasks.quiet import quiet
from evergait.tasks.robot_file import is_robot_file, read_robot, robot_digest

Kind = Literal["runner", "walker", "pendulum", "double pendulum"]
"""Swimmer and HalfCheetah run; Hopper and Walker2d must also stay upright."""
TASKS: dict[str, Kind] = {
    "HalfCheetah-v5": "runner",
    "Hopper-v5": "walker",
    "InvertedDoublePendulum-v5": "double pendulum",
    "InvertedPendulum-v5": "pendulum",
    "Swimmer-v5": "runner",
    "Walker2d-v5": "walker",
}
"""Environments whose observation, reward and ending the native core knows."""
_N_HIDDEN = {"HalfCheetah-v5": 1, "Hopper-v5": 1, "Swimmer-v5": 2, "Walker2d-v5": 1}

SLIDE, HINGE = int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE)
Range = tuple[float, float]
_EVERYWHERE: Range = (-np.inf, np.inf)
MOST_ROBOTS = 64
"""Compiled tasks that are kept, a megabyte each."""
_drawing = threading.Lock()
"""Threads share a compiled robot, and its environment draws for one of them at a time."""


@dataclass(frozen=True)
class Rules:
    """How an environment turns states into observations, rewards and endings: TaskRules in native/planar.h."""

    kind: Kind
    n_frames: int
    """MuJoCo steps per environment step."""
    dt: float
    n_hidden: int = 0
    """Leading positions that the policy does not see."""
    clips_velocity: bool = False
    forward_weight: float = 0.0
    healthy_reward: float = 0.0
    control_weight: float = 0.0
    height: Range = _EVERYWHERE
    angle: Range = _EVERYWHERE
    state: Range = _EVERYWHERE
    tip: Range = (0.0, 0.0)
    """(x, z) of the double pendulum's tip from its last anchor."""
    observation_noise: float = 0.0

    def flat(self, healthy_bonus: float = 1.0) -> Float64:
        """The numbers, as the native core takes them; the bonus is a factor on the healthy reward."""
        changed = {"kind": _native.PLANAR_KINDS.index(self.kind), "healthy_reward": self.healthy_reward * healthy_bonus}
        return np.array(flatten("rules", {**dataclasses.asdict(self), **changed}))


@dataclass(frozen=True)
class Robot:
    """A task, compiled for the native core, and the environment that draws its initial states."""

    model: PlanarModel
    rules: Rules
    n_steps: int
    env: Any

    def initial_states(self, seeds: UInt32) -> tuple[Float64, Float64]:
        """What `reset(seed=...)` draws: positions and velocities, (n, n_dofs)."""
        different, place = np.unique(seeds, return_inverse=True)  # the two signs of a pair begin alike
        position = np.empty((len(different), self.model.n_dofs))
        velocity = np.empty_like(position)
        for row, seed in enumerate(different.tolist()):
            position[row], velocity[row] = self.draw(seeding.np_random(seed)[0])
        return position[place], velocity[place]

    def draw(self, generator: np.random.Generator, noise: float | None = None) -> tuple[Float64, Float64]:
        """The same from a generator, which moves on: one position and velocity, by the environment's own reset.

        A scale of noise, once given, stays.
        """
        drawn: list[Float64] = []
        with _drawing:
            if noise is not None:
                self.env._reset_noise_scale = noise
            self.env.set_state = lambda qpos, qvel: drawn.extend((qpos, qvel))
            self.env._get_obs = lambda: None
            self.env.np_random = generator
            self.env.reset_model()
        return drawn[0], drawn[1]


def compile_robot(task: Task) -> Robot:
    """Compile a task, once unless its file is edited; raises EvergaitError if that cannot be."""
    return _compiled(task, robot_digest(task))


@functools.lru_cache(MOST_ROBOTS)
def _compiled(task: Task, digest: str) -> Robot:
    return compile_environment(task, make)


def compile_environment(task: Task, make: Callable[[Task], Any]) -> Robot:
    """Compile a task whose environment is made in a way of one's own."""
    if is_robot_file(task):
        if function := read_robot(task).reward.function:
            raise EvergaitError(f"its reward is a Python function, {function}")
    elif task.id not in TASKS:
        raise EvergaitError(f"{task.id} is not one of {', '.join(TASKS)}")
    with quiet():
        env = make(task)
        if reason := unsupported(task, env):
            raise EvergaitError(reason)
        apply_to_environment(task.variant, env)
        inner: Any = env.unwrapped
        model = compile_model(inner.model)
    env.close()
    return Robot(model, _rules(task, inner, model), spaces(task).n_steps, inner)


def _rules(task: Task, env: Any, model: PlanarModel) -> Rules:
    """By the names that Gymnasium's environments and those of robot files have for the same things."""
    tip, angle = (0.0, 0.0), getattr(env, "_healthy_angle_range", _EVERYWHERE)
    if is_robot_file(task):
        kind: Kind = "walker" if env.file.stays_upright else "runner"
        n_hidden, clips_velocity = env.file.hidden, env.file.clip_velocity
    else:
        kind = TASKS[task.id]
        hides = getattr(env, "_exclude_current_positions_from_observation", True)
        n_hidden = _N_HIDDEN.get(task.id, 0) if hides else 0
        clips_velocity = kind in ("walker", "double pendulum")
    if kind == "pendulum":
        angle = (-0.2, 0.2)
    if kind == "double pendulum":
        tip = _tip(env.model, model)
        # Its observation has the force of the cart's limit, which is taken to be zero in the initial state.
        (low, high), start = env.model.jnt_range[0], env.init_qpos[0]
        if env._reset_noise_scale >= min(high - start, start - low) - env.model.jnt_margin[0]:
            raise EvergaitError(f"reset_noise {task.variant.reset_noise:g} would start the cart at its limit")
    return Rules(
        kind=kind,
        n_frames=env.frame_skip,
        dt=env.dt,
        n_hidden=n_hidden,
        clips_velocity=clips_velocity,
        forward_weight=getattr(env, "_forward_reward_weight", 0.0),
        healthy_reward=getattr(env, "_healthy_reward", 0.0),
        control_weight=getattr(env, "_ctrl_cost_weight", 0.0),
        height=tuple(getattr(env, "_healthy_z_range", _EVERYWHERE)),
        angle=tuple(angle),
        state=tuple(getattr(env, "_healthy_state_range", _EVERYWHERE)),
        tip=tip,
        observation_noise=task.variant.observation_noise,
    )


def _tip(model: Any, compiled: PlanarModel) -> Range:
    """(x, z) of the double pendulum's tip from its last anchor, for models that its rules fit."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    n, where = model.njnt, "a double pendulum"
    if n < 3 or model.dof_parentid.tolist() != list(range(-1, n - 1)):
        raise EvergaitError(f"{where}: its joints must be a chain of at least three")
    if any(abs(axis[1]) > TOLERANCE for axis in data.xaxis[model.jnt_type == SLIDE]) or any(
        abs(axis[1]) < 1 - TOLERANCE for axis in data.xaxis[model.jnt_type == HINGE]
    ):
        raise EvergaitError(f"{where}: it must move in the plane of x and z")
    last = int(model.jnt_bodyid[n - 1])
    if not model.nsite or model.body_weldid[model.site_bodyid[0]] != model.body_weldid[last]:
        raise EvergaitError(f"{where}: its first site, the tip, must be on the body of the last joint")
    if compiled.n_contacts:
        raise EvergaitError(f"{where}: it has geoms that may touch; only the force of its cart's limit is observed")
    x, z = data.site_xpos[0][[0, 2]] - data.xanchor[-1][[0, 2]]
    return float(x), float(z)
