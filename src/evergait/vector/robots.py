"""What a vector environment steps: n robots in arrays, whoever simulates them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from evergait.core.arrays import Array, Bool, Float32, Float64
from evergait.tasks import Variant
from evergait.vector.generators import Generators

Columns = Mapping[str, Array]
"""Infos by name, (n, ...) each."""


class Robots(Protocol):
    """n robots whose arrays are written in place. `which` names rows; the others stay as they are."""

    n: int
    generators: Generators
    observations: Array
    """(n, n_observations) of float64 or float32."""
    rewards: Float64
    terminated: Bool
    truncated: Bool
    diverged: Bool
    """Whose physics left the finite numbers in their last step."""
    variants: list[Variant]

    def begin(self, which: Bool) -> None:
        """New episodes, from the generators."""
        ...

    def step(self, actions: Float32, which: Bool) -> None:
        """One step of every robot that is named."""
        ...

    def step_infos(self) -> Columns:
        """What Gymnasium's environment tells after a step."""
        ...

    def reset_infos(self) -> Columns:
        """What it tells after a reset."""
        ...

    def set_variants(self, variants: Sequence[Variant]) -> None:
        """Another body for every robot; its state stays."""
        ...

    def save(self) -> dict[str, Array]:
        """Copies of all that decides what comes next."""
        ...

    def twin(self) -> "Robots":
        """As many of the same kind, without their states."""
        ...

    def load(self, saved: Mapping[str, Array]) -> None:
        """Go back to what was saved."""
        ...


def nobody(n: int) -> Bool:
    """No row."""
    return np.zeros(n, bool)


def everybody(n: int) -> Bool:
    """Every row."""
    return np.ones(n, bool)
