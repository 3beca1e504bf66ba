"""`make`: a vector environment by name, on the fastest engine that has it.

Gymnasium's planar tasks are compiled once per variant, with the environment's own options.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from evergait.core.arrays import Float64
from evergait.core.data import MOST_ROWS, MOST_THREADS, require, within
from evergait.core.errors import EvergaitError, nearest
from evergait.engines import engine_name
from evergait.engines.mujoco.tasks import RULES
from evergait.engines.planar.robot import TASKS, Robot, compile_environment
from evergait.tasks import Task, Variant, parse_task
from evergait.tasks.quiet import quiet
from evergait.vector.environment import VectorEnvironment
from evergait.vector.mujoco import MujocoRobots
from evergait.vector.planar import Group, PlanarRobots, Start, check_noise
from evergait.vector.robots import Robots

_FORWARD = {"x_velocity": float, "reward_forward": float, "reward_ctrl": np.float32}
_UPRIGHT_RESET = {"x_position": float, "z_distance_from_origin": float}
_FLAT_RESET = {"x_position": float, "y_position": float, "distance_from_origin": float}
MOST_GROUPS = 4096
"""Variants that are kept compiled, a few kilobytes each; others may be any number, and are compiled again."""
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
        self.kind = f"{task.id} with xml_file {options['xml_file']}" if "xml_file" in options else task.id
        make = functools.partial(_make_task, dict(options))
        self._first = first = compile_environment(task, make)
        self.group = functools.lru_cache(MOST_GROUPS)(functools.partial(_group, _group_of(first), task, make))
        self.n_dofs, self.n_actions = first.model.n_dofs, first.model.n_actuators
        self.ends: bool = getattr(first.env, "_terminate_when_unhealthy", True)
        self.start: Start = "normal" if task.id in _NORMAL_VELOCITIES else "uniform"
        self.step_columns, self.reset_columns = STEP_COLUMNS[task.id], RESET_COLUMNS[task.id]

    def draw(self, variant: Variant, generator: np.random.Generator) -> tuple[Float64, Float64]:
        """Position and velocity at the start of an episode, by the environment's own reset."""
        return self._first.draw(generator, self.group(variant).reset_noise)


def _group(first: Group, task: Task, make: Callable[[Task], Any], variant: Variant) -> Group:
    """The robot of a variant; raises EvergaitError if there is none."""
    return first if variant == task.variant else _group_of(compile_environment(Task(task.id, variant), make))


def _group_of(robot: Robot) -> Group:
    env, rules = robot.env, robot.rules
    n_observations = 2 * robot.model.n_dofs - rules.n_hidden
    n_observations += robot.model.n_dofs if rules.kind == "double pendulum" else 0
    start = env.init_qpos, env.init_qvel, check_noise(env._reset_noise_scale, "reset_noise_scale")
    return Group(robot.model.description, rules.flat(), *start, n_observations)


def _make_task(options: Mapping[str, Any], task: Task) -> gymnasium.Env[Any, Any]:
    return make_environment(task.id, options)


def make_environment(identifier: str, options: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    """Gymnasium's own environment, without its passive checker."""
    try:
        with quiet():
            return gymnasium.make(identifier, disable_env_checker=True, **options)
    except gymnasium.error.Error as error:
        raise EvergaitError(f"id {identifier!r}: Gymnasium cannot make it: {error}") from error
    except (TypeError, ValueError, ArithmeticError) as error:
        raise EvergaitError(f"id {identifier!r}: its environment does not take these options: {error}") from error


def make(
    id: str,  # noqa: A002 - as gymnasium.make_vec calls it
    num_envs: int = 1,
    *,
    threads: int = 1,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    variants: Variant | Sequence[Variant] | None = None,
    engine: str = "auto",
    dtype: type[Any] | str = np.float64,
    copy: bool = True,
    infos: bool = True,
    max_episode_steps: int | None = None,
    **options: Any,
) -> VectorEnvironment:
    """Make `num_envs` environments of a task, such as `Walker2d-v5` or `Walker2d-v5@gravity=0.5`.

    Args:
        id: A MuJoCo v5 environment of Gymnasium's, optionally with a variant.
        num_envs: How many.
        threads: That step them; they change no bit.
        autoreset_mode: "NextStep", "SameStep" or "Disabled", as Gymnasium defines them.
        variants: One for all or one for each environment, in place of the task's.
        engine: "planar" (to rounding), "mujoco" (bit for bit Gymnasium) or "auto": the fastest that has the task.
        dtype: Of observations: float64, as Gymnasium has it, or float32.
        copy: Whether what `step` returns is the caller's to keep; False hands out arrays that the next step overwrites.
        infos: Whether to tell positions and reward terms.
        max_episode_steps: The time limit; None is the task's own, 0 is none.
        **options: Of Gymnasium's environment, such as `ctrl_cost_weight` (planar engine only).
    """
    for name, text in (("id", id), ("engine", engine)):
        if not isinstance(text, str):
            raise EvergaitError(f"{name}: is {text!r}; it must be a text")
    task = parse_task(id)
    if task.id not in RULES:
        raise EvergaitError(f"id: {task.id!r} is not a MuJoCo v5 environment of Gymnasium's{nearest(task.id, RULES)}")
    wanted = check(num_envs, threads, dtype, max_episode_steps)
    each = one_for_each(variants, num_envs, task.variant)
    if options.pop("render_mode", None) is not None:
        raise EvergaitError("render_mode: a vector environment draws no pictures; gymnasium.make does, one at a time")
    for name, value in options.items():
        if isinstance(value, float | np.floating) and not math.isfinite(value):
            raise EvergaitError(f"{name}: is {float(value)!r}; it must be finite")
    env = make_environment(task.id, options)
    seen, action = env.observation_space, env.action_space
    own = max_episode_steps is None and env.spec
    limit = int((env.spec.max_episode_steps if own and env.spec else max_episode_steps) or 0)
    env.close()
    if not isinstance(seen, gymnasium.spaces.Box) or not isinstance(action, gymnasium.spaces.Box):
        raise EvergaitError(f"id: {task.id!r} has spaces that are not boxes")
    if wanted != seen.dtype:
        seen = gymnasium.spaces.Box(seen.low.astype(wanted), seen.high.astype(wanted), dtype=wanted)
    try:
        robots = _robots(task, engine, options, each, limit, threads, wanted)
    except (ValueError, TypeError, ArithmeticError) as error:
        if not options:
            raise
        raise EvergaitError(f"{', '.join(options)}: cannot be simulated: {error}") from error
    made = VectorEnvironment(robots, seen, action, autoreset_mode, copy, infos)
    made.threads = threads
    made.spec = spec = deepcopy(gymnasium.spec(task.id))
    spec.max_episode_steps = limit or None
    spec.kwargs |= options
    return made


def _robots(
    task: Task,
    engine: str,
    options: dict[str, Any],
    variants: Sequence[Variant],
    limit: int,
    threads: int,
    dtype: type[Any],
) -> Robots:
    same = Task(task.id, variants[0]) if len(set(variants)) == 1 else task
    may_be_planar = engine == "auto" and bool(options) and task.id in TASKS
    chosen = "planar" if may_be_planar else engine_name(engine, same)
    if chosen == "planar":
        return PlanarRobots(TaskSource(same, options), variants, limit, threads, dtype)
    if chosen != "mujoco":
        raise EvergaitError(f"engine: is {chosen!r}; a vector environment needs planar or mujoco")
    if options:
        raise EvergaitError(f"{next(iter(options))}: the mujoco engine takes no options of the environment")
    if len(set(variants)) > 1:
        raise EvergaitError(f"variants: {task.id} is simulated by MuJoCo, which has one variant for all")
    return MujocoRobots(Task(task.id, variants[0]), len(variants), limit, threads, dtype)


def check(num_envs: int, threads: int, dtype: type[Any] | str, max_episode_steps: int | None) -> type[Any]:
    """The type of observations, if all these can be."""
    for name, value, least, most in (
        ("num_envs", num_envs, 1, MOST_ROWS),
        ("threads", threads, 1, MOST_THREADS),
        ("max_episode_steps", 0 if max_episode_steps is None else max_episode_steps, 0, 2**31 - 1),
    ):
        within(value, least, most, name)
    known = {np.dtype(kind): kind for kind in (np.float64, np.float32)}
    try:
        return known[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise EvergaitError(f"dtype: is {dtype!r}; it must be float64 or float32") from None


def one_for_each(variants: Variant | Sequence[Variant] | None, num_envs: int, stock: Variant) -> Sequence[Variant]:
    """The variant of every environment: the one that is given, that of each, or the task's own."""
    if variants is None or isinstance(variants, Variant):
        return [variants or stock] * num_envs
    given: Any = variants
    listed = isinstance(given, Sequence) and all(isinstance(one, Variant) for one in given)
    require(listed, "variants", variants, "a Variant, or a list of one for each environment")
    if len(given) != num_envs:
        raise EvergaitError(f"variants: there are {len(given)} for {num_envs} environments; give one for each")
    return variants


NAMESPACE = "evergait"

_ENTRIES = {identifier.replace("-", "_"): identifier for identifier in RULES}


def __getattr__(name: str) -> Callable[..., VectorEnvironment]:
    """The entry point of an id, such as `Walker2d_v5`."""
    if name not in _ENTRIES:
        raise AttributeError(name)
    return functools.partial(_make, _ENTRIES[name])


def _make(identifier: str, num_envs: int, **arguments: Any) -> VectorEnvironment:
    return make(identifier, num_envs, **arguments)


def register() -> None:
    """Tell Gymnasium of our ids; calling it again does nothing."""
    for entry, identifier in _ENTRIES.items():
        own = f"{NAMESPACE}/{identifier}"
        if own in gymnasium.registry:
            continue
        theirs = gymnasium.spec(identifier)
        gymnasium.register(
            own,
            entry_point=theirs.entry_point,
            vector_entry_point=f"{__name__}:{entry}",
            max_episode_steps=theirs.max_episode_steps,
            reward_threshold=theirs.reward_threshold,
        )
