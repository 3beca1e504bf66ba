"""Many episodes of one MuJoCo task side by side, each step equal to Gymnasium's to the last bit."""

import ctypes
import os
import weakref
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from gymnasium.utils import seeding
from mujoco.batch import Batch, SimulationError

from evergait.core.arrays import Array, Bool, Float32, Float64, Int32, Int64, UInt32
from evergait.core.errors import EvergaitError
from evergait.engines.mujoco.library import HUGE, ContactBatch, was_reset
from evergait.engines.mujoco.tasks import Fields, rules_of
from evergait.tasks import Task, make
from evergait.tasks.base import apply_to_environment


def make_environment(task: Task) -> Any:
    """The environment whose model and resets a simulation uses."""
    env: Any = make(task)
    apply_to_environment(task.variant, env)
    env.close()
    return env


_with_threads: "weakref.WeakSet[Simulation]" = weakref.WeakSet()


def _leave_behind() -> None:
    """In a fork: a batch waits for its threads when it is deleted, so one without them must never be."""
    for simulation in _with_threads:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(simulation._batch))
        if isinstance(simulation._batch, ContactBatch):
            simulation._batch.never_delete()


os.register_at_fork(after_in_child=_leave_behind)


class Simulation:
    """Up to `n_slots` episodes at once; the running ones are always the first `n`.

    A slot is an independent simulation: what happens in it depends on its seed and actions alone.
    """

    def __init__(self, task: Task, n_slots: int, n_threads: int, environment: Any = None) -> None:
        self.environment = env = environment or make_environment(task)
        self.task, self.n_slots, self.n_threads, self.n = task, n_slots, n_threads, 0
        self.n_steps: int = env.spec.max_episode_steps
        self._env = env.unwrapped
        rules = rules_of(task)
        if rules is None:
            raise EvergaitError(f"task {task.name!r}: the mujoco engine does not know its rules")
        self.rules = rules(self._env)
        self._healthy_reward = self.rules.healthy_reward
        batch_type = ContactBatch if "cfrc_ext" in self.rules.derived else Batch
        self._batch: Any = batch_type(self._env.model, n_slots, n_threads)
        self._process = os.getpid()
        if n_threads > 1:
            _with_threads.add(self)
        self._all = {name: self._batch.bind(name) for name in ("qpos", "qvel", "ctrl", *self.rules.derived)}
        # A state begins with time, qpos, qvel (the order of mjtState's bits).
        self._motion = self._batch.state[:, 1 : 1 + self._env.model.nq + self._env.model.nv]
        self.at = Fields()
        self._observations = np.zeros((n_slots, env.observation_space.shape[0]))
        self._position = np.zeros(n_slots)
        self.elapsed = np.zeros(n_slots, np.int64)
        self._failed = np.zeros(n_slots, bool)
        # The environment's own reset draws the initial state; only its last two lines are taken over. They must not
        # know the simulation: it would outlive its last use, and its threads with it.
        self._drawn = drawn = dict[str, Float64]()
        self._env.set_state = lambda qpos, qvel: drawn.update(qpos=qpos.copy(), qvel=qvel.copy())
        self._env._get_obs = lambda: None

    def scale_healthy_reward(self, factor: float) -> None:
        """Multiply the healthy reward, where the task has one."""
        self.rules.healthy_reward = self._healthy_reward * factor

    def reset(self, seeds: UInt32) -> Float64:
        """Begin one episode per seed; returns observations (n, n_observations)."""
        self.keep(len(seeds))
        self.restart(np.arange(len(seeds), dtype=np.int32), seeds)
        return self.observe()

    def step(self, actions: Float32) -> tuple[Float64, Float64, Bool, Bool]:
        """Gymnasium's step for every episode: observations, rewards, terminated, truncated."""
        rewards, terminated = self.advance(actions)
        return self.observe(), rewards, terminated, self.elapsed[: self.n] >= self.n_steps

    def keep(self, n: int) -> None:
        """Run only the first n slots from now on."""
        self.n = n
        self._ids = None if n == self.n_slots else np.arange(n, dtype=np.int32)
        for name, values in self._all.items():
            setattr(self.at, name, values[:n])

    def restart(self, slots: Int32, seeds: UInt32) -> None:
        """Begin new episodes in some slots, in increasing order."""
        self.begin(slots, [seeding.np_random(seed)[0] for seed in seeds.tolist()])

    def begin(self, slots: Int32, generators: Sequence[np.random.Generator]) -> None:
        """The same from generators, which move on."""
        self._batch.reset(slots, stage=int(mujoco.mjtStage.mjSTAGE_NONE))
        for slot, generator in zip(slots.tolist(), generators, strict=True):
            self._env.np_random = generator
            self._env.reset_model()
            self._all["qpos"][slot], self._all["qvel"][slot] = self._drawn["qpos"], self._drawn["qvel"]
        self._batch.forward(slots)
        self.elapsed[slots] = 0
        self._failed[slots] = False
        self._position[slots] = self.rules.position(self.at)[slots]

    def move(self, sources: Int64, targets: Int64) -> None:
        """Take episodes, as they were last observed, to other slots."""
        # Fields that MuJoCo derives stay behind: they are not read again before the next step computes them.
        for values in (self._batch.state, self._batch.warning, self._observations, self._position, self.elapsed):
            values[targets] = values[sources]

    @property
    def is_lost(self) -> bool:
        """Whether this is the copy that a fork has: its threads have stayed behind, and a step would wait for ever."""
        return self.n_threads > 1 and self._process != os.getpid()

    def again(self) -> "Simulation":
        """Another one in the same state."""
        other = Simulation(self.task, self.n_slots, self.n_threads, self.environment)
        other.keep(self.n)
        for name, values in other.kept().items():
            values[:] = self.kept()[name]
        return other

    @property
    def start(self) -> Float64:
        """Where robots stand before the noise of a reset."""
        start: Float64 = self._env.init_qpos
        return start

    def bind(self, name: str) -> Float64:
        """A live (n_slots, ...) array over another field of MuJoCo's data."""
        values: Float64 = self._batch.bind(name)
        return values

    def kept(self) -> dict[str, Array]:
        """Live arrays of all that decides what comes next."""
        return {
            "state": self._batch.state,
            "warning": self._batch.warning,
            "x": self._position,
            "elapsed": self.elapsed,
        }

    def advance(self, actions: Float32, which: Bool | None = None) -> tuple[Float64, Bool]:
        """Step episodes with their actions (n, n_actions), all or some; returns rewards and terminated, (n,)."""
        at, rules = self.at, self.rules
        at.ctrl[:] = actions
        ids = self._ids if which is None or which.all() else np.flatnonzero(which).astype(np.int32)
        try:
            if ids is None or len(ids):
                self._batch.step(ids, self._env.frame_skip)
        except SimulationError as error:
            self._failed[error.ids] = True
        self.elapsed[: self.n] += 1
        position = rules.position(at)
        healthy = rules.healthy(at)
        rewards = rules.reward(at, (position - self._position[: self.n]) / rules.dt, healthy, actions)
        self._position[: self.n] = position
        return rewards, ~healthy

    @property
    def seen(self) -> Float64:
        """What `observe` last found, (n, n_observations)."""
        return self._observations[: self.n]

    def observe(self) -> Float64:
        """Observations (n, n_observations), in an array that the next call writes again."""
        np.concatenate(self.rules.observe(self.at), axis=1, out=self.seen)
        return self.seen

    def diverged(self) -> Bool:
        """(n,) which episodes have left the finite numbers, been reset by MuJoCo for it, or failed."""
        warned = was_reset(self._batch.warning[: self.n, :, 1])
        failed: Bool = self._failed[: self.n]
        # One look at the largest number spares the look at every row; NaN compares as false.
        if np.abs(self._motion[: self.n]).max() <= HUGE and not warned.any() and not failed.any():
            return failed
        bad: Bool = failed | warned | ~(np.abs(self._motion[: self.n]) <= HUGE).all(axis=1)
        return bad
