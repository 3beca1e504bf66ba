"""The planar engine: MuJoCo's physics for planar robots, vectorised across candidates, whole episodes in native code.

It computes what MuJoCo computes, to rounding, and refuses by name what it cannot; see docs/physics.md for the evidence.
"""

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import mujoco
import numpy as np
from gymnasium.utils import seeding

from evergait import _native
from evergait.core.arrays import Float64, UInt32
from evergait.core.errors import EvergaitError
from evergait.core.random import OBSERVATION_NOISE
from evergait.engines.base import Episodes, Outcome
from evergait.engines.planar.model import PlanarModel, compile_model
from evergait.tasks import Task, make, spaces
from evergait.tasks.quiet import quiet
from evergait.tasks.variants import apply_to_environment, unsupported

RUNNER, WALKER, PENDULUM, DOUBLE_PENDULUM = range(4)  # TaskKind in native/planar.h
TASKS = {
    "HalfCheetah-v5": RUNNER,
    "Hopper-v5": WALKER,
    "InvertedDoublePendulum-v5": DOUBLE_PENDULUM,
    "InvertedPendulum-v5": PENDULUM,
    "Swimmer-v5": RUNNER,
    "Walker2d-v5": WALKER,
}
"""Environments whose observation, reward and ending the native core knows."""
_N_HIDDEN = {"HalfCheetah-v5": 1, "Hopper-v5": 1, "Swimmer-v5": 2, "Walker2d-v5": 1}

_EVERYWHERE = (-np.inf, np.inf)


@dataclass(frozen=True)
class Robot:
    """A task, compiled for the native core, and the environment that draws its initial states."""

    model: PlanarModel
    rules: Float64
    """The numbers of TaskRules in native/planar.h; the healthy reward is entry 6."""
    n_steps: int
    env: Any

    def initial_states(self, seeds: UInt32) -> tuple[Float64, Float64]:
        """What `reset(seed=...)` draws: positions and velocities, (n, n_dofs)."""
        position = np.empty((len(seeds), self.model.n_dofs))
        velocity = np.empty_like(position)
        drawn: list[Float64] = []
        self.env.set_state = lambda qpos, qvel: drawn.extend((qpos, qvel))
        self.env._get_obs = lambda: None
        for row, seed in enumerate(seeds.tolist()):
            drawn.clear()
            self.env.np_random = seeding.np_random(seed)[0]
            self.env.reset_model()
            position[row], velocity[row] = drawn
        return position, velocity


@functools.cache
def _robot(task: Task) -> Robot:
    """Compile a task; raises EvergaitError if that cannot be."""
    if task.id not in TASKS:
        raise EvergaitError(f"{task.id} is not one of {', '.join(TASKS)}")
    with quiet():
        env = make(task)
        if reason := unsupported(task, env):
            raise EvergaitError(reason)
        apply_to_environment(task.variant, env)
        inner: Any = env.unwrapped
        model = compile_model(inner.model)
    env.close()
    return Robot(model, _rules(task, inner), spaces(task).n_steps, inner)


def _rules(task: Task, env: Any) -> Float64:
    kind = TASKS[task.id]
    tip = (0.0, 0.0)
    if kind == DOUBLE_PENDULUM:
        data = mujoco.MjData(env.model)
        mujoco.mj_kinematics(env.model, data)
        tip = tuple(data.site_xpos[0][[0, 2]] - data.xanchor[-1][[0, 2]])
        # Its observation has the force of the cart's limit, which is taken to be zero in the initial state.
        if env._reset_noise_scale >= env.model.jnt_range[0, 1] - env.model.jnt_margin[0]:
            raise EvergaitError(f"reset_noise {task.variant.reset_noise:g} would start the cart at its limit")
    return np.array(
        [
            *(kind, env.frame_skip, _N_HIDDEN.get(task.id, 0), kind in (WALKER, DOUBLE_PENDULUM), env.dt),
            *(getattr(env, "_forward_reward_weight", 0.0), getattr(env, "_healthy_reward", 0.0)),
            getattr(env, "_ctrl_cost_weight", 0.0),
            *getattr(env, "_healthy_z_range", _EVERYWHERE),
            *((-0.2, 0.2) if kind == PENDULUM else getattr(env, "_healthy_angle_range", _EVERYWHERE)),
            *getattr(env, "_healthy_state_range", _EVERYWHERE),
            *tip,
            task.variant.observation_noise,
        ],
        np.float64,
    )


def supports(task: Task) -> bool:
    """Whether the planar engine can simulate a task."""
    return not PlanarEngine().refuses(task)


def step(
    task: Task, qpos: Float64, qvel: Float64, action: Float64, n_steps: int = 1, n_threads: int = 1
) -> tuple[Float64, Float64]:
    """Advance n robots by environment steps under constant actions: (n, nq), (n, nv), (n, nu) to new (qpos, qvel)."""
    robot = _robot(task)
    if n_steps < 0:
        raise EvergaitError(f"n_steps: it is {n_steps}; it must be at least 0")
    return step_model(robot.model, qpos, qvel, action, n_steps * int(robot.rules[1]), n_threads)


def step_model(
    model: PlanarModel,
    qpos: Float64,
    qvel: Float64,
    control: Float64,
    n_frames: int = 1,
    n_threads: int = 1,
    n_lanes: int = 0,
    any_tree: bool = False,
) -> tuple[Float64, Float64]:
    """Advance n robots of any compiled model by MuJoCo steps; the last two arguments change no bit."""
    arrays = [np.array(x, np.float64, order="C") for x in (qpos, qvel, control)]
    widths = model.n_dofs, model.n_dofs, model.n_actuators
    for name, array, width in zip(("qpos", "qvel", "action"), arrays, widths, strict=True):
        if array.shape != (len(arrays[0]), width):
            raise EvergaitError(
                f"{name}: its shape is {array.shape}; it must be (n, {width}) with the same n everywhere"
            )
    position, velocity, forces = arrays
    _native.planar_step(model.description, position, velocity, forces, n_frames, n_threads, n_lanes, any_tree)
    return position, velocity


class PlanarEngine:
    """Simulates Gymnasium's planar robots, one candidate per lane of a vector register."""

    name: ClassVar[str] = "planar"

    def __init__(self, n_lanes: int = 0, any_tree: bool = False) -> None:
        # Neither changes any bit: lanes per vector (0: what a register holds); whether to forgo specialised code.
        self._n_lanes, self._any_tree = n_lanes, any_tree

    def refuses(self, task: Task) -> str:
        """Why this engine cannot simulate the task, or an empty string if it can."""
        try:
            _robot(task)
        except EvergaitError as error:
            return f"task {task.name!r}: {error} (planar engine; use --engine mujoco)"
        return ""

    def run(self, episodes: Episodes, n_threads: int) -> Outcome:
        """Simulate every row, on at most `n_threads` threads."""
        outcome, _ = self._run(episodes, n_threads, record=False)
        return outcome

    def record(self, episodes: Episodes) -> tuple[Outcome, list[Float64]]:
        """Simulate every row and keep its positions: per row (length + 1, nq)."""
        outcome, trace = self._run(episodes, 1, record=True)
        return outcome, [row[: length + 1] for row, length in zip(trace, outcome.lengths.tolist(), strict=True)]

    def close(self) -> None:
        """Nothing is kept between calls."""

    def _run(self, episodes: Episodes, n_threads: int, record: bool) -> tuple[Outcome, Float64]:
        robot, network, n = _robot(episodes.task), episodes.network, len(episodes)
        limit = min(episodes.horizon or robot.n_steps, robot.n_steps)
        rules = robot.rules.copy()
        rules[6] *= episodes.healthy_bonus
        position, velocity = robot.initial_states(episodes.seed)
        returns, lengths, diverged = np.zeros(n), np.zeros(n, np.int32), np.zeros(n, np.uint8)
        sums = np.zeros((n, 2, network.n_observations)) if episodes.gather_statistics else None
        trace = np.zeros((n if record else 0, limit + 1, robot.model.n_dofs))
        _native.planar_episodes(
            robot.model.description,
            rules,
            network.layers,
            network.action_middle,
            network.action_half_range,
            network.mean,
            network.scale,
            episodes.theta,
            episodes.sigma,
            *episodes.noise.words,
            episodes.pair,
            episodes.sign,
            episodes.seed,
            OBSERVATION_NOISE,
            position,
            velocity,
            limit,
            returns,
            lengths,
            diverged,
            sums,
            trace if record else None,
            max(1, min(n_threads, n)),
            self._n_lanes,
            self._any_tree,
        )
        statistics = sums if sums is not None else np.zeros((0, 2, 0))
        return Outcome(returns, lengths, diverged.astype(bool), statistics), trace
