"""Engines simulate episodes; each is imported when it is first asked for."""

import functools
import importlib
import importlib.util

from gymnasium.envs.registration import registry

from evergait.core.errors import EvergaitError, nearest
from evergait.engines.base import Engine, Episodes, Outcome, Recording
from evergait.tasks import Task
from evergait.tasks.process import Limits
from evergait.tasks.robot_file import is_robot_file, robot_digest

ENGINES: dict[str, str | type[Engine]] = {
    "planar": "evergait.engines.planar.engine:PlanarEngine",
    "mujoco": "evergait.engines.mujoco.engine:MujocoEngine",
    "gymnasium": "evergait.engines.gymnasium.engine:GymnasiumEngine",
}
"""Names and where their classes are, from the fastest to the most general: the order in which `auto` asks."""
OF_MUJOCO = ("planar", "mujoco")
"""Engines that know robots of MuJoCo's only, and import it."""


def register_engine(engine: type[Engine]) -> type[Engine]:
    """Add an engine of one's own, under its name; may decorate its class. `auto` asks it last."""
    ENGINES[engine.name] = engine
    return engine


def available() -> list[str]:
    """Names of the engines that this installation has."""
    return [
        name
        for name, place in ENGINES.items()
        if not isinstance(place, str) or importlib.util.find_spec(place.partition(":")[0])
    ]


def make_engine(name: str) -> Engine:
    """A new engine by name."""
    if name not in available():
        raise EvergaitError(f"engine: there is none called {name!r}{nearest(name, available())}")
    place = ENGINES[name]
    if not isinstance(place, str):
        return place()
    module, _, class_name = place.partition(":")
    engine: Engine = getattr(importlib.import_module(module), class_name)()
    return engine


@functools.cache
def get_engine(name: str) -> Engine:
    """This process's engine of that name."""
    return make_engine(name)


def limited_engine(name: str, limits: Limits) -> Engine:
    """This process's engine of that name, with limits for other people's code, which only `gymnasium` runs."""
    engine = get_engine(name)
    if name == "gymnasium":
        engine.limits = limits  # type: ignore[attr-defined]
    return engine


def engine_name(wanted: str, task: Task) -> str:
    """The engine that simulates a task: the wanted one or, for `auto`, the fastest that does not refuse.

    >>> engine_name("auto", Task("CartPole-v1"))
    'gymnasium'
    """
    return _engine_name(wanted, task, robot_digest(task))


@functools.cache
def _engine_name(wanted: str, task: Task, digest: str) -> str:
    """Asked once more if a robot's file was edited."""
    reasons = []
    asked = [name for name in available() if name not in OF_MUJOCO or _may_be_mujocos(task)]
    for name in asked if wanted == "auto" else [wanted]:
        reason = get_engine(name).refuses(task)
        if not reason:
            return name
        reasons.append(reason)
    raise EvergaitError(f"task {task.name!r}: no engine can simulate it: {'; '.join(reasons)}")


def _may_be_mujocos(task: Task) -> bool:
    """Whether it is a robot's file, or Gymnasium makes it by MuJoCo."""
    known = registry.get(task.id)
    return is_robot_file(task) or known is None or "mujoco" in str(known.entry_point)


__all__ = [
    "ENGINES",
    "Engine",
    "Episodes",
    "Limits",
    "Outcome",
    "Recording",
    "available",
    "engine_name",
    "get_engine",
    "limited_engine",
    "make_engine",
    "register_engine",
]
