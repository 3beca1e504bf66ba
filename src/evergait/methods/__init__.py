"""Continual-learning methods, one file each; importing this package registers them."""

from evergait.methods.base import Batch, Method, Stage
from evergait.methods.interval import Interval
from evergait.methods.multitask import Multitask
from evergait.methods.naive import Naive
from evergait.methods.replay import Replay

__all__ = ["Batch", "Interval", "Method", "Multitask", "Naive", "Replay", "Stage"]
