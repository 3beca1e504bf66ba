"""Engines simulate episodes; they are imported when they are first asked for."""

import importlib
import importlib.util

from evergait.engines.base import Engine, Episodes, Network, Outcome
from evergait.tasks import Task, nearest
from evergait.types import EvergaitError

ENGINES = {
    "planar": "evergait.engines.planar:PlanarEngine",
    "mujoco": "evergait.engines.mujoco:MujocoEngine",
    "gymnasium": "evergait.engines.gymnasium:GymnasiumEngine",
}
"""Engine names and where their classes are, from the fastest to the most general: the order in which `auto` asks."""

AUTO = "auto"
"""The first engine that does not refuse the task."""


def available() -> list[str]:
    """Names of the engines that this installation has."""
    return [name for name, place in ENGINES.items() if importlib.util.find_spec(place.partition(":")[0])]


def make_engine(name: str) -> Engine:
    """An engine by name."""
    if name not in available():
        raise EvergaitError(f"engine {name!r}: there is none of that name{nearest(name, available())}")
    module, _, class_name = ENGINES[name].partition(":")
    engine: Engine = getattr(importlib.import_module(module), class_name)()
    return engine


def engine_for(task: Task, name: str = AUTO) -> Engine:
    """The named engine if it can simulate the task, or the fastest that can if the name is `auto`.

    >>> engine_for(Task("CartPole-v1")).name
    'gymnasium'
    """
    if name != AUTO and name not in available():
        raise EvergaitError(f"engine {name!r}: there is none of that name{nearest(name, [AUTO, *available()])}")
    refusal = ""
    for candidate in available() if name == AUTO else [name]:
        engine = make_engine(candidate)
        refusal = engine.refuses(task)
        if not refusal:
            return engine
        engine.close()
    raise EvergaitError(refusal)


__all__ = ["AUTO", "ENGINES", "Engine", "Episodes", "Network", "Outcome", "available", "engine_for", "make_engine"]
