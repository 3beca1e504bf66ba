"""Continual-learning methods, one file each; importing this package registers them."""

from evergait.methods.base import Batch, Collection, Context, Memory, Method, Stage, Step, rank_together, weighted_sum
from evergait.methods.bounds import Multitask, Naive
from evergait.methods.composite import Composite, check_parts
from evergait.methods.distill import Distill
from evergait.methods.holding import Anchor, Ewc, Freeze, Project
from evergait.methods.replay import Adaptive, Interval, Replay

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
