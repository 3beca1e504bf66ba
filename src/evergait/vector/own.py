"""A user's own planar robot: an MJCF model, with observation, reward and ending as NumPy functions on all robots."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.vector import AutoresetMode

from evergait.core.arrays import Array, Bool, Float32, Float64
from evergait.core.data import require, within
from evergait.core.errors import EvergaitError
from evergait.core.files import sha256
from evergait.engines.planar.model import compile_model
from evergait.engines.planar.robot import Rules
from evergait.tasks import Variant
from evergait.tasks.base import apply_to_model
from evergait.tasks.quiet import quiet
from evergait.vector.environment import VectorEnvironment, real_numbers
from evergait.vector.making import check, one_for_each
from evergait.vector.planar import Group, PlanarRobots, Start, check_noise

_MOST_FRAMES = 1 << 20


@dataclass(frozen=True)
class Motion:
    """One step of n robots, as rewards and endings see it."""

    qpos_before: Float64
    """(n, nq), as are the others; actions are (n, nu)."""
    qvel_before: Float64
    qpos: Float64
    qvel: Float64
    action: Float32
    dt: float


@dataclass(frozen=True)
class PlanarTask:
    """What to do with a planar model."""

    model: Any
    """An `mujoco.MjModel`, a path of an MJCF file, or its text."""
    reward: Callable[[Motion], Array]
    """(n,) numbers."""
    terminated: Callable[[Motion], Array] | None = None
    """(n,) booleans; None: never."""
    observe: Callable[[Float64, Float64], Array] | None = None
    """Of qpos and qvel, (n, n_observations); None: both of them, one behind the other."""
    reset: Callable[[np.random.Generator], tuple[Array, Array]] | None = None
    """qpos and qvel at the start of an episode; None: the model's own, plus uniform noise."""
    reset_noise: float = 0.005
    frame_skip: int = 4
    max_episode_steps: int = 1000

    def __post_init__(self) -> None:
        within(self.frame_skip, 1, _MOST_FRAMES, "frame_skip")
        check_noise(self.reset_noise, "reset_noise")
        require(callable(self.reward), "reward", self.reward, "a function of a Motion")
        for name in ("terminated", "observe", "reset"):
            function = getattr(self, name)
            require(function is None or callable(function), name, function, "a function, or None")
        right = "an mujoco.MjModel, a path of an MJCF file, or its text (an MjSpec has .compile())"
        require(isinstance(self.model, mujoco.MjModel | str | Path), "model", self.model, right)

    def load(self) -> Any:
        """The model, compiled by MuJoCo; nobody else's to edit."""
        try:
            if isinstance(self.model, mujoco.MjModel):
                return mujoco.MjModel.__copy__(self.model)
            with quiet():
                if isinstance(self.model, Path) or not str(self.model).lstrip().startswith("<"):
                    return mujoco.MjModel.from_xml_path(str(self.model))
                return mujoco.MjModel.from_xml_string(self.model)
        except ValueError as error:
            raise EvergaitError(f"model: MuJoCo cannot read it: {error}") from error


class OwnSource:
    """Robots of a user's model."""

    start: Start
    step_columns: dict[str, type[Any]]
    reset_columns: dict[str, type[Any]]
    ends = True

    def __init__(self, task: PlanarTask) -> None:
        self.task, self.model = task, task.load()
        stored = np.zeros(mujoco.mj_sizeModel(self.model), np.uint8)
        mujoco.mj_saveModel(self.model, None, stored)
        self.kind = f"a model with digest {sha256(stored.tobytes())[:12]}"
        self.n_dofs, self.n_actions = int(self.model.nv), int(self.model.nu)
        self.start = "uniform" if task.reset is None else "own"
        self.step_columns, self.reset_columns = {}, {}

    @property
    def dt(self) -> float:
        """Seconds of a step."""
        return float(self.model.opt.timestep * self.task.frame_skip)

    def group(self, variant: Variant) -> Group:
        """The robot of a variant; raises EvergaitError if the planar engine refuses it."""
        if variant.observation_noise:
            raise EvergaitError(
                f"variant: observation_noise is {variant.observation_noise}; it must be 0 for a robot of one's own: "
                "observation noise needs a task of Gymnasium's, or is added by `observe`"
            )
        if variant.reset_noise != 1.0 and self.task.reset is not None:
            raise EvergaitError(
                f"variant: reset_noise is {variant.reset_noise}; it must be 1 for a task with a `reset` of its own, "
                "which draws its noise itself"
            )
        model = mujoco.MjModel.__copy__(self.model)
        apply_to_model(variant, model)
        compiled = compile_model(model)
        rules = Rules("runner", self.task.frame_skip, self.dt)  # which look at nothing; rewards are the user's
        noise = check_noise(self.task.reset_noise * variant.reset_noise, "reset_noise, times the variant's")
        start = np.array(model.qpos0), np.zeros(self.n_dofs)
        return Group(compiled.description, rules.flat(), *start, noise, 2 * self.n_dofs)

    def draw(self, variant: Variant, generator: np.random.Generator) -> tuple[Float64, Float64]:
        """Position and velocity at the start of an episode, by the user's function."""
        assert self.task.reset is not None  # noqa: S101 - or the native core draws
        start, n = self.task.reset(generator), self.n_dofs
        try:
            qpos, qvel = (np.asarray(part, np.float64) for part in start)
            right = qpos.shape == qvel.shape == (n,) and bool(np.isfinite([qpos, qvel]).all())
        except (TypeError, ValueError):
            right = False
        require(right, "reset", start, f"qpos and qvel, ({n},) finite numbers each")
        return qpos, qvel


class OwnRobots(PlanarRobots):
    """Planar robots with a user's observations, rewards and endings."""

    source: OwnSource

    def __init__(self, source: OwnSource, variants: Sequence[Variant], n_threads: int, dtype: type[Any]) -> None:
        super().__init__(source, variants, source.task.max_episode_steps, n_threads, np.float64)
        self._dtype = dtype
        self._look()

    def twin(self) -> "OwnRobots":
        """As many of the same kind, without their states."""
        return OwnRobots(self.source, self.variants, self.n_threads, self._dtype)

    def _look(self) -> None:
        observe, now = self.source.task.observe, self._now()
        seen = np.concatenate(now, axis=1) if observe is None else _numbers("observe", observe(*now))
        if seen.ndim != 2 or len(seen) != self.n:
            raise EvergaitError(f"observe: its shape is {seen.shape}; it must be ({self.n}, n_observations)")
        self.observations = np.array(seen, self._dtype)

    def _now(self) -> tuple[Float64, Float64]:
        """Positions and velocities, the user's to keep and to write into."""
        return self.arrays.position.copy(), self.arrays.velocity.copy()

    def begin(self, which: Bool) -> None:
        """New episodes, from the generators."""
        super().begin(which)
        self._look()

    def step(self, actions: Float32, which: Bool) -> None:
        """One step of every robot that is named, then the user's functions on all of them."""
        task, before = self.source.task, self._now()
        super().step(actions, which)
        one, other = (self._motion(before, actions) for _ in range(2))
        rewards = self._checked("reward", task.reward(one))
        self.rewards[which] = np.where(self.diverged, 0.0, rewards)[which]
        if task.terminated is not None:
            self.terminated[which] |= self._checked("terminated", task.terminated(other)).astype(bool)[which]
        self._look()

    def _motion(self, before: tuple[Float64, Float64], actions: Float32) -> Motion:
        """What a function is told, in arrays of its own."""
        qpos, qvel = before
        return Motion(qpos.copy(), qvel.copy(), *self._now(), actions.copy(), self.source.dt)

    def _checked(self, name: str, values: Array) -> Array:
        found = _numbers(name, values)
        if found.shape != (self.n,):
            raise EvergaitError(f"{name}: its shape is {found.shape}; it must be ({self.n},)")
        return found


def _numbers(name: str, values: Any) -> Array:
    """What a user's function has given back, if it is an array of numbers."""
    return real_numbers(values, f"{name}: what it gives is", "it must give")


def make_own(
    task: PlanarTask,
    num_envs: int = 1,
    *,
    threads: int = 1,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    variants: Variant | Sequence[Variant] | None = None,
    dtype: type[Any] | str = np.float64,
    copy: bool = True,
) -> VectorEnvironment:
    """Make `num_envs` environments of one's own planar robot; arguments are those of `make`."""
    right = "a PlanarTask, such as PlanarTask(model, reward)"
    require(isinstance(task, PlanarTask), "task", task, right)
    wanted = check(num_envs, threads, dtype, task.max_episode_steps)
    source = OwnSource(task)
    robots = OwnRobots(source, one_for_each(variants, num_envs, Variant()), threads, wanted)
    shape = robots.observations.shape[1:]
    low, high = source.model.actuator_ctrlrange.astype(np.float32).T
    limited = source.model.actuator_ctrllimited.astype(bool)
    action = gymnasium.spaces.Box(np.where(limited, low, -np.inf), np.where(limited, high, np.inf), dtype=np.float32)
    seen = gymnasium.spaces.Box(-np.inf, np.inf, shape, wanted)
    made = VectorEnvironment(robots, seen, action, autoreset_mode, copy)
    made.threads = threads
    return made
