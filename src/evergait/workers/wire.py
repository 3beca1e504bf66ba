"""Requests and outcomes as bytes, so that what travels can be counted.

A request carries counters and θ, never candidates; an outcome carries a few numbers per row.
"""

import pickle
import platform
from collections.abc import Sequence

import gymnasium
import numpy as np

from evergait.core.errors import EvergaitError
from evergait.core.plugins import import_trusted, plugin_of, trust
from evergait.engines import ENGINES, Episodes, Outcome
from evergait.tasks import Task
from evergait.tasks.robot_file import robot_digest

# Ray's own messages are pickles too: only who holds the cluster's token can send them.


def pack_request(engine: str, episodes: Episodes) -> bytes:
    """All that the rows of a request share, and the rows."""
    plugin = plugin_of(ENGINES.get(engine))
    robot = robot_digest(episodes.task)
    return pickle.dumps((engine, episodes, _environment(episodes), plugin, robot), protocol=5)


def unpack_request(data: bytes) -> tuple[str, Episodes]:
    """The engine's name and the request; an environment that the sender registered by itself is made known here.

    Of a robot file only the path travels; raises EvergaitError if the file here is not the sender's.
    """
    engine, episodes, environment, plugin, robot = pickle.loads(data)  # noqa: S301
    _check_robot(episodes.task, robot)
    if plugin:
        trust(plugin)
        import_trusted([plugin], f"engine {engine}")
    if environment and episodes.task.id not in gymnasium.registry:
        gymnasium.registry[episodes.task.id] = pickle.loads(environment)  # noqa: S301
    return engine, episodes


def _check_robot(task: Task, wanted: str) -> None:
    """A stale copy would mix two robots in one generation."""
    where = f"on {platform.node()}"
    try:
        found = robot_digest(task)
    except EvergaitError as error:
        raise EvergaitError(f"{error} ({where}; a robot's files must be on every machine)") from error
    if found != wanted:
        raise EvergaitError(
            f"{task.id}: it or its model is another one {where}: the digest is {found} there; it must be {wanted}, as "
            "where the command was started: copy the files to every machine"
        )


def _environment(episodes: Episodes) -> bytes:
    """How to make the task's environment, or nothing: then the other side must know by itself."""
    try:
        return pickle.dumps(gymnasium.registry[episodes.task.id])
    except (KeyError, pickle.PicklingError, AttributeError, TypeError):
        return b""


_ARRAYS = ("returns", "lengths", "diverged", "statistics")


def pack_outcome(outcome: Outcome) -> bytes:
    """The arrays of an outcome."""
    arrays = tuple(np.ascontiguousarray(getattr(outcome, name)) for name in _ARRAYS)
    return pickle.dumps((*arrays, outcome.observations), protocol=5)


def unpack_outcome(data: bytes) -> Outcome:
    """The outcome of some rows."""
    return Outcome(*pickle.loads(data))  # noqa: S301


def join_outcomes(parts: Sequence[tuple[int, Outcome]]) -> Outcome:
    """Outcomes of consecutive rows, each with its first row, in the order of rows."""
    return Outcome.concatenate([outcome for _, outcome in sorted(parts, key=lambda part: part[0])])
