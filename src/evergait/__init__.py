"""Continual evolution strategies for control: one policy, a stream of tasks; see what it keeps and what it forgets."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_PLACES = {
    "evergait.config": ("Config", "Evaluation", "preset", "read_config"),
    "evergait.core.errors": ("EvergaitError",),
    "evergait.engines": ("Engine", "Episodes", "Outcome", "register_engine"),
    "evergait.es": ("Adam", "ClipUp", "Momentum", "Optimizer", "Plain"),
    "evergait.live.server": ("watch",),
    "evergait.methods": (
        *("Adaptive", "Anchor", "Distill", "Ewc", "Freeze", "Interval", "Method", "Multitask", "Naive", "Project"),
        *("Replay", "Batch", "Collection", "Context", "Memory", "Stage", "Step"),
    ),
    "evergait.policy": ("PolicyConfig",),
    "evergait.studies.folder": ("load",),
    "evergait.studies.results": ("Results",),
    "evergait.tasks": ("Task", "parse_task"),
    "evergait.tasks.robot_file": ("Healthy", "Reward", "RobotFile"),
    "evergait.training.observer": ("Diagnostics", "Observer", "Position"),
    "evergait.training.run": ("Run", "train"),
    "evergait.workers": ("Local", "Ray"),
    "evergait.zoo.catalogue": ("pretrained",),
}
"""Public names, imported when they are first used: `import evergait` itself costs nothing."""

_WHERE = {name: place for place, names in _PLACES.items() for name in names}

__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'evergait' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_WHERE[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:  # the same, for editors and type checkers
    from evergait.config import Config as Config
    from evergait.config import Evaluation as Evaluation
    from evergait.config import preset as preset
    from evergait.config import read_config as read_config
    from evergait.core.errors import EvergaitError as EvergaitError
    from evergait.engines import Engine as Engine
    from evergait.engines import Episodes as Episodes
    from evergait.engines import Outcome as Outcome
    from evergait.engines import register_engine as register_engine
    from evergait.es import Adam as Adam
    from evergait.es import ClipUp as ClipUp
    from evergait.es import Momentum as Momentum
    from evergait.es import Optimizer as Optimizer
    from evergait.es import Plain as Plain
    from evergait.live.server import watch as watch
    from evergait.methods import Adaptive as Adaptive
    from evergait.methods import Anchor as Anchor
    from evergait.methods import Batch as Batch
    from evergait.methods import Collection as Collection
    from evergait.methods import Context as Context
    from evergait.methods import Distill as Distill
    from evergait.methods import Ewc as Ewc
    from evergait.methods import Freeze as Freeze
    from evergait.methods import Interval as Interval
    from evergait.methods import Memory as Memory
    from evergait.methods import Method as Method
    from evergait.methods import Multitask as Multitask
    from evergait.methods import Naive as Naive
    from evergait.methods import Project as Project
    from evergait.methods import Replay as Replay
    from evergait.methods import Stage as Stage
    from evergait.methods import Step as Step
    from evergait.policy import PolicyConfig as PolicyConfig
    from evergait.studies.folder import load as load
    from evergait.studies.results import Results as Results
    from evergait.tasks import Task as Task
    from evergait.tasks import parse_task as parse_task
    from evergait.tasks.robot_file import Healthy as Healthy
    from evergait.tasks.robot_file import Reward as Reward
    from evergait.tasks.robot_file import RobotFile as RobotFile
    from evergait.training.observer import Diagnostics as Diagnostics
    from evergait.training.observer import Observer as Observer
    from evergait.training.observer import Position as Position
    from evergait.training.run import Run as Run
    from evergait.training.run import train as train
    from evergait.workers import Local as Local
    from evergait.workers import Ray as Ray
    from evergait.zoo.catalogue import pretrained as pretrained
