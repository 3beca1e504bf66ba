"""What the policy must know of a task: sizes of observation and action, action bounds, time limit."""

import functools
import warnings
from dataclasses import dataclass

import gymnasium
import numpy as np

from evergait.core.arrays import Float32
from evergait.core.errors import EvergaitError, in_words, nearest
from evergait.core.plugins import check_trust, count_current_folder
from evergait.tasks.base import Task, unsupported
from evergait.tasks.process import Beat, ask, is_foreign, made_by, module_of
from evergait.tasks.quiet import hushed
from evergait.tasks.robot_file import is_robot_file, robot_digest


@dataclass(frozen=True)
class Spaces:
    """Observation and action of one task, as the policy sees them."""

    n_observations: int
    n_actions: int
    """Outputs of the head that the task uses: the action's size, or the number of discrete actions."""
    discrete: bool
    discrete_start: int
    action_middle: Float32
    action_half_range: Float32
    n_steps: int
    """Time limit of an episode in environment steps; 0 where the environment has none."""


def spaces(task: Task) -> Spaces:
    """Ask Gymnasium; refuse what a policy of flat vectors cannot serve."""
    return _known(task)[0]


def refusal(task: Task) -> str:
    """Why Gymnasium's environment cannot serve the task, or an empty string if it can."""
    try:
        return _known(task)[1]
    except EvergaitError as error:
        return str(error)


def _known(task: Task) -> tuple[Spaces, str]:
    return _asked(task, robot_digest(task), made_by(task))


@functools.cache
def _asked(task: Task, digest: str, maker: tuple[str, bytes]) -> tuple[Spaces, str]:
    """Once, and once more if a robot's file or an environment's was edited; a foreign one in a process of its own, for
    it may hang or die.
    """
    if not is_foreign(task):
        return look(task)
    _check_trust(task)
    known: tuple[Spaces, str] = ask(task, "evergait.tasks.spaces:look", (task,), "making the environment")
    return known


def look(task: Task, beat: Beat | None = None) -> tuple[Spaces, str]:
    """Spaces of a task, and why its variant is not possible."""
    env = make(task)
    try:
        return _spaces_of(task, env), unsupported(task, env)
    finally:
        env.close()


def _spaces_of(task: Task, env: gymnasium.Env[object, object]) -> Spaces:
    observation, action, spec = env.observation_space, env.action_space, env.spec
    if not isinstance(observation, gymnasium.spaces.Box) or len(observation.shape) != 1:
        what = f"{type(observation).__name__}{observation.shape or ''}"
        raise EvergaitError(f"task {task.name!r}: its observations are {what}; a policy needs a vector (1-D Box)")
    n_steps = int(spec.max_episode_steps or 0) if spec else 0
    n_observations = observation.shape[0]
    if not n_observations:
        raise EvergaitError(f"task {task.name!r}: its observations have no number in them; a policy needs one to see")
    if isinstance(action, gymnasium.spaces.Discrete):
        n, start = int(action.n), int(action.start)
        none = np.zeros(n, np.float32)
        return Spaces(n_observations, n, True, start, none, np.ones(n, np.float32), n_steps)
    if not isinstance(action, gymnasium.spaces.Box) or len(action.shape) != 1:
        what = f"{type(action).__name__}{action.shape or ''}"
        raise EvergaitError(f"task {task.name!r}: its actions are {what}; a policy needs a 1-D Box or Discrete")
    if not action.shape[0]:
        raise EvergaitError(f"task {task.name!r}: its actions have no number in them; a policy needs one to choose")
    middle, half = _range_of(task, action)
    return Spaces(n_observations, action.shape[0], False, 0, middle, half, n_steps)


def _range_of(task: Task, action: gymnasium.spaces.Box) -> tuple[Float32, Float32]:
    """Middle and half the width of the actions: ±1 where they have no bounds."""
    low, high = action.low.astype(np.float64), action.high.astype(np.float64)
    bounded = np.isfinite(low)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = np.where(bounded, (low + high) / 2, 0.0).astype(np.float32)
        half = np.where(bounded, (high - low) / 2, 1.0).astype(np.float32)
    lacking = ""
    if action.dtype.kind != "f":
        lacking = "whole numbers, and a policy of real numbers cannot choose among them; make them Discrete"
    elif (bounded != np.isfinite(high)).any():
        lacking = "bounded on one side only; give them both bounds, or none"
    elif not np.isfinite([middle, half]).all():
        lacking = "wider than float32 can count; give them narrower bounds"
    if lacking:
        raise EvergaitError(f"task {task.name!r}: its actions, {action}, are {lacking}")
    return middle, half


def is_registered(task: Task) -> bool:
    """Whether Gymnasium knows the task's id."""
    return task.id in gymnasium.registry


def _check_trust(task: Task) -> None:
    if module := module_of(task):
        check_trust(module, f"task {task.name!r}")


def make(task: Task) -> gymnasium.Env[object, object]:
    """`gymnasium.make` for a task's id, without its variant, with errors that speak."""
    _check_trust(task)
    if module_of(task):
        count_current_folder()
    try:
        with hushed(task), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if is_robot_file(task):
                from evergait.tasks.robot_env import make_robot  # here, for it imports MuJoCo

                return make_robot(task)
            return gymnasium.make(task.id, disable_env_checker=True)
    except EvergaitError:
        raise
    except gymnasium.error.UnregisteredEnv as error:
        raise EvergaitError(
            f"task {task.name!r}: Gymnasium has no environment {task.id!r}{nearest(task.id, gymnasium.registry)[:300]}"
        ) from error
    except (gymnasium.error.Error, ImportError) as error:
        raise EvergaitError(f"task {task.name!r}: Gymnasium cannot make it: {error}") from error
    except Exception as error:  # the environment's own
        raise EvergaitError(f"task {task.name!r}: it cannot be made: {in_words(error)}") from error
