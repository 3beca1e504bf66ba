"""Engines simulate episodes; the name `auto` stands for the fastest one that supports a task."""

import functools
from collections.abc import Callable
from typing import Literal

from evergait.engines.base import Engine, Episodes, Outcome
from evergait.tasks import Task
from evergait.types import EvergaitError

EngineName = Literal["auto", "planar", "mujoco", "gymnasium"]


def _planar() -> Engine:
    from evergait.engines.planar import PlanarEngine

    return PlanarEngine()


def _mujoco() -> Engine:
    from evergait.engines.mujoco import MujocoEngine

    return MujocoEngine()


def _gymnasium() -> Engine:
    from evergait.engines.gymnasium import GymnasiumEngine

    return GymnasiumEngine()


# Fastest first; each is imported when first wanted.
ENGINES: dict[str, Callable[[], Engine]] = {"planar": _planar, "mujoco": _mujoco, "gymnasium": _gymnasium}


@functools.cache
def get_engine(name: str) -> Engine:
    """The process's engine of that name."""
    return ENGINES[name]()


def engine_name(wanted: str, task: Task) -> str:
    """The engine that simulates a task: the wanted one or, for `auto`, the fastest that does not refuse."""
    reasons = []
    for name in ENGINES if wanted == "auto" else [wanted]:
        reason = get_engine(name).refuses(task)
        if not reason:
            return name
        reasons.append(f"{name}: {reason}")
    raise EvergaitError(f"task {task.name!r}: no engine can simulate it ({'; '.join(reasons)})")


__all__ = ["ENGINES", "Engine", "EngineName", "Episodes", "Outcome", "engine_name", "get_engine"]
