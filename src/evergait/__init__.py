"""Continual evolution strategies for control: one policy, a stream of tasks; see what it keeps and what it forgets."""

from evergait.config import Config, preset, read_config
from evergait.core.errors import EvergaitError
from evergait.training.run import Run, train

__version__ = "0.1.0"

__all__ = ["Config", "EvergaitError", "Run", "preset", "read_config", "train"]
