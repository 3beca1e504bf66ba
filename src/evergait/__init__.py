"""Continual evolution strategies for control: one policy, a stream of tasks; see what it keeps and what it forgets."""

from evergait.config import Config, preset, read_config
from evergait.run import Run, train
from evergait.types import EvergaitError

__version__ = "0.1.0"

__all__ = ["Config", "EvergaitError", "Run", "preset", "read_config", "train"]
