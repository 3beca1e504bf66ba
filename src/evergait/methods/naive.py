"""Sequential ES without any protection: the paper's baseline, and on a stream of one its single-task run."""

from dataclasses import dataclass
from typing import ClassVar

from evergait.methods.base import Method


@dataclass(frozen=True)
class Naive(Method, name="naive"):
    """Every candidate is evaluated on the task being learnt."""

    alone: ClassVar[str] = "it is what is left without other methods"
