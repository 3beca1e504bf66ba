"""The planar engine: MuJoCo's physics for planar robots, vectorised across candidates, whole episodes in native code.

It computes what MuJoCo computes, to rounding, and refuses by name what it cannot; see docs/physics.md for the evidence.
"""

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from gymnasium.utils import seeding

from evergait import _native
from evergait.engines.base import Episodes, Outcome
from evergait.engines.planar_model import PlanarModel, compile_model
from evergait.random import OBSERVATION_NOISE
from evergait.tasks import Task, make
from evergait.tasks.quiet import quiet
from evergait.tasks.variants import apply_to_environment, unsupported
from evergait.types import EvergaitError, Float64, UInt32

TASKS = ("HalfCheetah-v5", "Hopper-v5", "InvertedPendulum-v5", "Swimmer-v5", "Walker2d-v5")
"""Environments whose observation, reward and ending the native core knows."""

_EVERYWHERE = (-np.inf, np.inf)


@dataclass(frozen=True)
class Robot:
    """A task, compiled for the native core, and the environment that draws its initial states."""

    model: PlanarModel
    rules: Float64
    """The numbers of TaskRules in native/planar_kernels.h; the healthy reward is entry 6."""
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
    assert env.spec is not None
    return Robot(model, _rules(task, inner), env.spec.max_episode_steps or 0, inner)


def _rules(task: Task, env: Any) -> Float64:
    ends = task.id in ("Hopper-v5", "Walker2d-v5")
    pendulum = task.id == "InvertedPendulum-v5"
    return np.array(
        [
            *(env.frame_skip, {"Swimmer-v5": 2, "InvertedPendulum-v5": 0}.get(task.id, 1), ends, pendulum, env.dt),
            *(getattr(env, "_forward_reward_weight", 0.0), getattr(env, "_healthy_reward", 0.0)),
            *(getattr(env, "_ctrl_cost_weight", 0.0), ends),
            *getattr(env, "_healthy_z_range", _EVERYWHERE),
            *((-0.2, 0.2) if pendulum else getattr(env, "_healthy_angle_range", _EVERYWHERE)),
            *getattr(env, "_healthy_state_range", _EVERYWHERE),
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
    n_dofs, n_actuators = robot.model.n_dofs, robot.model.n_actuators
    position, velocity, control = (np.array(x, np.float64, order="C") for x in (qpos, qvel, action))
    for name, array, width in (
        ("qpos", position, n_dofs),
        ("qvel", velocity, n_dofs),
        ("action", control, n_actuators),
    ):
        if array.shape != (len(position), width):
            raise EvergaitError(f"{name}: its shape is {array.shape}; for {task.name} it must be (n, {width})")
    if n_steps < 0:
        raise EvergaitError(f"n_steps: it is {n_steps}; it must be at least 0")
    n_frames = n_steps * int(robot.rules[0])
    _native.planar_step(robot.model.description, position, velocity, control, n_frames, n_threads, 0, False)
    return position, velocity


class PlanarEngine:
    """Simulates Gymnasium's planar robots, one candidate per lane of a vector register."""

    name: ClassVar[str] = "planar"

    def __init__(self, n_lanes: int = 0, any_tree: bool = False) -> None:
        # Neither changes any bit: the number of lanes (0: what a register holds), and whether to leave specialised code alone.
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
        assert trace is not None
        return outcome, [row[: length + 1] for row, length in zip(trace, outcome.lengths.tolist(), strict=True)]

    def close(self) -> None:
        """Nothing is kept between calls."""

    def _run(self, episodes: Episodes, n_threads: int, record: bool) -> tuple[Outcome, Float64 | None]:
        robot, network, n = _robot(episodes.task), episodes.network, len(episodes)
        limit = min(episodes.horizon or robot.n_steps, robot.n_steps)
        rules = robot.rules.copy()
        rules[6] *= episodes.healthy_bonus
        position, velocity = robot.initial_states(episodes.seed)
        returns, lengths, diverged = np.zeros(n), np.zeros(n, np.int32), np.zeros(n, np.uint8)
        sums = np.zeros((n, 2, network.n_observations)) if episodes.gather_statistics else None
        trace = np.zeros((n, limit + 1, robot.model.n_dofs)) if record else None
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
            trace,
            max(1, min(n_threads, n)),
            self._n_lanes,
            self._any_tree,
        )
        statistics = sums if sums is not None else np.zeros((0, 2, 0))
        return Outcome(returns, lengths, diverged.astype(bool), statistics), trace
