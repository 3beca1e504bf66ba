"""Robots of the planar engine: all of them stepped in place by one native call, each with a variant of its own."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from evergait import _native
from evergait.core.arrays import Array, Bool, Float32, Float64, Int32, UInt32
from evergait.core.data import require
from evergait.core.errors import EvergaitError
from evergait.core.random import OBSERVATION_NOISE
from evergait.tasks import Variant
from evergait.vector.robots import Columns, Generators, UInt64, normal_table

UNLIMITED = 2**31 - 1
LARGEST_NOISE = sys.float_info.max / 2
"""Noise is drawn from an interval twice as long, whose length must be a number too."""


def check_noise(scale: Any, where: str) -> float:
    """A scale of reset noise that can be drawn with; raises EvergaitError for another one."""
    number = float(scale) if isinstance(scale, np.floating) else scale
    right = isinstance(number, int | float) and 0 <= number <= LARGEST_NOISE
    require(right, where, number, f"a finite number of at least 0, and at most {LARGEST_NOISE:.3g}")
    return float(number)


@dataclass(frozen=True)
class Group:
    """Robots of one variant, as the native core takes them, and how their episodes begin."""

    description: Float64
    rules: Float64
    position: Float64
    velocity: Float64
    reset_noise: float
    n_observations: int


Start = Literal["uniform", "normal", "own"]


class Source(Protocol):
    """Where robots come from: a Gymnasium task or a user's own model."""

    kind: str
    """Which robot it is, whatever its variant."""
    n_dofs: int
    n_actions: int
    ends: bool
    """Whether a robot that is no longer healthy ends its episode."""
    start: Start
    """How episodes begin: around a group's position and velocity, with uniform noise on the velocity or with normal
    noise; or as `draw` says."""
    step_columns: dict[str, type[Any]]
    """Names of what a step tells, and their types."""
    reset_columns: dict[str, type[Any]]

    def group(self, variant: Variant) -> Group:
        """The robot of a variant; raises EvergaitError if there is none."""
        ...

    def draw(self, variant: Variant, generator: np.random.Generator) -> tuple[Float64, Float64]:
        """Position and velocity at the start of an episode, where the native core cannot draw them."""
        ...


@dataclass(frozen=True)
class Arrays:
    """What the native core reads and writes by the names of the fields; Python owns it."""

    n_actions: int
    position: Float64
    velocity: Float64
    acceleration: Float64
    generator: UInt64
    noise_seed: UInt64
    episode: UInt32
    elapsed: Int32
    observations: Float64 | None
    narrow: Float32 | None
    rewards: Float64
    infos: Float64
    terminated: NDArray[np.uint8]
    truncated: NDArray[np.uint8]
    diverged: NDArray[np.uint8]
    limit: int
    ends: bool
    normal: bool
    normal_width: Float64
    normal_bound: UInt64
    undrawn: NDArray[np.uint8]
    noise_purpose: int = OBSERVATION_NOISE


_STATE = ("position", "velocity", "acceleration", "generator", "noise_seed", "episode", "elapsed")


class PlanarRobots:
    """n planar robots; see Robots for what they do."""

    def __init__(
        self, source: Source, variants: Sequence[Variant], limit: int, n_threads: int, dtype: type[Any]
    ) -> None:
        self.n, self.source, self.n_threads = len(variants), source, n_threads
        self.kind = f"{source.kind} on the planar engine"
        self.generators = Generators(self.n)
        n, n_observations = self.n, source.group(variants[0]).n_observations
        self.observations: Array = np.zeros((n, n_observations), dtype)
        wide = self.observations.dtype == np.float64
        flags = np.zeros((4, n), np.uint8)
        width, bound = normal_table()
        position, velocity, acceleration = np.zeros((3, n, source.n_dofs))
        self.arrays = Arrays(
            source.n_actions,
            position,
            velocity,
            acceleration,
            self.generators.words,
            self.generators.noise_seed,
            episode=self.generators.episode,
            elapsed=np.zeros(n, np.int32),
            observations=self.observations if wide else None,
            narrow=None if wide else self.observations,
            rewards=np.zeros(n),
            infos=np.zeros((len(_native.VECTOR_INFOS), n)),
            terminated=flags[0],
            truncated=flags[1],
            diverged=flags[2],
            limit=limit or UNLIMITED,
            ends=source.ends,
            normal=source.start == "normal",
            normal_width=width,
            normal_bound=bound,
            undrawn=flags[3],
        )
        self.rewards = self.arrays.rewards
        self.terminated, self.truncated, self.diverged, self._undrawn = flags.view(bool)
        self.variants: list[Variant] = []
        self._native = _native.planar_vector(self.arrays)
        self.set_variants(variants)

    def set_variants(self, variants: Sequence[Variant]) -> None:
        """Another body for every robot; its state stays."""
        distinct = list(dict.fromkeys(variants))
        number = {variant: i for i, variant in enumerate(distinct)}
        groups = [self.source.group(variant) for variant in distinct]
        self._native.assign(groups, np.array([number[variant] for variant in variants], np.int32))
        self.variants = list(variants)

    def begin(self, which: Bool) -> None:
        """New episodes, from the generators."""
        self.arrays.episode[which] += 1
        if self.source.start == "own":
            self._undrawn[:] = which
        else:
            self._native.begin(which.view(np.uint8), True)
        if self._undrawn.any():
            for row in np.flatnonzero(self._undrawn).tolist():
                generator = self.generators.get(row)
                drawn = self.source.draw(self.variants[row], generator)
                self.arrays.position[row], self.arrays.velocity[row] = drawn
                self.generators.put(row, generator)
            self._native.begin(self.arrays.undrawn.copy(), False)

    def step(self, actions: Float32, which: Bool) -> None:
        """One step of every robot that is named."""
        try:
            self._native.step(actions, which.view(np.uint8), self.n_threads)
        except ValueError as error:
            raise EvergaitError(str(error)) from None

    def step_infos(self) -> Columns:
        """What Gymnasium's environment tells after a step."""
        return self._columns(self.source.step_columns)

    def reset_infos(self) -> Columns:
        """What it tells after a reset."""
        return self._columns(self.source.reset_columns)

    def _columns(self, names: Mapping[str, type[Any]]) -> Columns:
        return {name: self.arrays.infos[_PLACES[name]].astype(dtype) for name, dtype in names.items()}

    def live(self) -> dict[str, Array]:
        """The arrays that decide what comes next."""
        return {name: getattr(self.arrays, name) for name in _STATE}

    def twin(self) -> "PlanarRobots":
        """As many of the same kind, without their states."""
        dtype = self.observations.dtype.type
        return type(self)(self.source, self.variants, self.arrays.limit, self.n_threads, dtype)


_PLACES = {name: i for i, name in enumerate(_native.VECTOR_INFOS)}
