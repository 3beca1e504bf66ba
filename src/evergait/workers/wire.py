"""Requests and outcomes as bytes, so that what travels can be counted.

A request carries counters and θ, never candidates; an outcome carries a few numbers per row.
"""

import pickle
import platform
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from evergait.core.errors import EvergaitError, in_words
from evergait.core.plugins import code_version, count_current_folder, import_trusted, plugin_of, trust
from evergait.engines import ENGINES, Episodes, Outcome
from evergait.tasks import Task
from evergait.tasks.process import code_of, spec_of
from evergait.tasks.robot_file import robot_digest

# Ray's own messages are pickles too: only who holds the cluster's token can send them.


def pack_request(engine: str, episodes: Episodes) -> bytes:
    """All that the rows of a request share, and the rows."""
    plugin = plugin_of(ENGINES.get(engine))
    robot, code = robot_digest(episodes.task), _code(episodes.task)
    return pickle.dumps((engine, episodes, spec_of(episodes.task), plugin, robot, code), protocol=5)


def unpack_request(data: bytes) -> tuple[str, Episodes]:
    """The engine's name and the request; an environment that the sender registered by itself is made known here.

    Of a robot file only the path travels, and of other people's code only its name; raises EvergaitError if the file
    or the code here is not the sender's.
    """
    engine, episodes, environment, plugin, robot, code = pickle.loads(data)  # noqa: S301
    _check_robot(episodes.task, robot)
    _check_code(episodes.task, *code)
    if plugin:
        trust(plugin)
        import_trusted([plugin], f"engine {engine}")
    if environment and episodes.task.id not in gymnasium.registry:
        gymnasium.registry[episodes.task.id] = _loaded(episodes.task, environment, code[0])
    return engine, episodes


def _code(task: Task) -> tuple[str, str]:
    """The module of someone else's environment or reward, and its version; both are empty for Gymnasium's own."""
    module = code_of(task)
    return module, _version(module)


def _version(module: str) -> str:
    """What tells its versions apart; empty if it cannot be found, or is what was started itself."""
    if module in ("", "__main__"):
        return ""
    count_current_folder()
    try:
        return code_version(module)
    except Exception:  # finding a module imports the packages that it is in
        return ""


def _check_code(task: Task, module: str, wanted: str) -> None:
    """Another version would mix two environments in one generation."""
    found = _version(module)
    if not wanted or found == wanted:
        return
    here = f"is {found}" if found else "is missing"
    raise EvergaitError(
        f"task {task.name!r}: its code, the Python module {module!r}, {here} on {platform.node()}; it must be "
        f"{wanted}, as where the command was started: install the same on every machine"
    )


def _loaded(task: Task, environment: bytes, module: str) -> Any:
    """How the sender makes the environment; if by a class, its module is imported here."""
    try:
        return pickle.loads(environment)  # noqa: S301
    except Exception as error:  # of someone else's module, too
        raise EvergaitError(
            f"task {task.name!r}: its class is in the module {module!r}, which cannot be imported on "
            f"{platform.node()}: {in_words(error)}; it must be a module that every machine has"
        ) from error


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
