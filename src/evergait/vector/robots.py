"""What a vector environment steps: n robots in arrays, whoever simulates them, and their generators.

Each environment has one of NumPy's, seeded as Gymnasium seeds it; the native core draws from its words.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium.utils import seeding
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from evergait.core.arrays import Array, Bool, Float32, Float64, UInt32
from evergait.tasks import Variant

_LOW = 2**64 - 1
_NONE_YET = 2**32 - 1  # the next one, modulo 2³², is 0

UInt64 = NDArray[np.uint64]


class _Childless(ISeedSequence):
    """Of a generator whose state is set anyway; children of it would be the same ones in every environment."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """What the state replaces."""
        return np.zeros(n_words, dtype)


class Generators:
    """What `reset(seed=...)` leaves behind in every environment, and what its resets move on."""

    def __init__(self, n: int) -> None:
        self.words: UInt64 = np.zeros((n, 4), np.uint64)
        """(n, 4) the state of NumPy's PCG64: high and low half of the state, then of the increment."""
        self.noise_seed: UInt64 = np.zeros(n, np.uint64)
        self.episode: UInt32 = np.zeros(n, np.uint32)
        """How many episodes have begun since the seed, less one: with the seed it names the observation noise."""
        self.seeds: list[int | None] = [None] * n

    def seed(self, index: int, seed: int | None) -> None:
        """Start anew from a seed; None goes on where it is, or starts from the system's entropy."""
        if seed is None and self.words[index].any():
            return
        generator, self.seeds[index] = seeding.np_random(seed)
        self.noise_seed[index] = (self.seeds[index] or 0) & _LOW
        self.episode[index] = _NONE_YET
        self.put(index, generator)

    def get(self, index: int) -> np.random.Generator:
        """The generator of an environment, where it stands."""
        state_high, state_low, high, low = self.words[index].tolist()
        bits = np.random.PCG64(_Childless())  # type: ignore[arg-type]  # NumPy takes any ISeedSequence
        moved: Any = {"state": state_high << 64 | state_low, "inc": high << 64 | low}
        bits.state = {"bit_generator": "PCG64", "state": moved, "has_uint32": 0, "uinteger": 0}
        return np.random.Generator(bits)

    def put(self, index: int, generator: np.random.Generator) -> None:
        """Stand where a generator stands."""
        at = generator.bit_generator.state["state"]
        self.words[index] = [at["state"] >> 64, at["state"] & _LOW, at["inc"] >> 64, at["inc"] & _LOW]


@functools.cache
def normal_table() -> tuple[Float64, UInt64]:
    """Widths and bounds of NumPy's ziggurat: z = ±width[layer]·steps where steps < bound[layer].

    NumPy does not show its tables, but a generator whose next word is known draws one step of a known layer. Bounds are
    ratios of widths, taken a little too small: what lies between is left to NumPy itself.
    """
    width = np.array([_draw_one_step(layer) for layer in range(256)])
    ratio = np.roll(width, 1) / width
    bound = np.maximum(ratio * 2.0**52 - 4096, 0).astype(np.uint64)
    bound[1] = 0  # this layer has no steps that are always inside
    return width, bound


def _draw_one_step(layer: int) -> float:
    word, increment = layer | 1 << 9, 1
    multiplier = 0x2360ED051FC65DA44385DF649FCCF645
    before = (word - increment) * pow(multiplier, -1, 2**128) % 2**128
    generators = Generators(1)
    generators.words[0] = [before >> 64, before & _LOW, 0, increment]
    return float(generators.get(0).standard_normal())


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
    kind: str
    """Which robot on which engine: what a state belongs to."""

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

    def live(self) -> dict[str, Array]:
        """The arrays that decide what comes next, (n, ...) each: to be copied, or to be written into."""
        ...

    def twin(self) -> "Robots":
        """As many of the same kind, without their states."""
        ...


def nobody(n: int) -> Bool:
    """No row."""
    return np.zeros(n, bool)


def everybody(n: int) -> Bool:
    """Every row."""
    return np.ones(n, bool)
