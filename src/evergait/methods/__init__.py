"""Continual-learning methods, one file each; importing this package registers them."""

from evergait.methods.adaptive import Adaptive
from evergait.methods.anchor import Anchor
from evergait.methods.base import Batch, Collection, Context, Memory, Method, Stage, Step, rank_together, weighted_sum
from evergait.methods.composite import Composite, check_parts
from evergait.methods.distill import Distill
from evergait.methods.ewc import Ewc
from evergait.methods.freeze import Freeze
from evergait.methods.interval import Interval
from evergait.methods.multitask import Multitask
from evergait.methods.naive import Naive
from evergait.methods.project import Project
from evergait.methods.replay import Replay

__all__ = [
    "Adaptive",
    "Anchor",
    "Batch",
    "Collection",
    "Composite",
    "Context",
    "Distill",
    "Ewc",
    "Freeze",
    "Interval",
    "Memory",
    "Method",
    "Multitask",
    "Naive",
    "Project",
    "Replay",
    "Stage",
    "Step",
    "check_parts",
    "rank_together",
    "weighted_sum",
]
