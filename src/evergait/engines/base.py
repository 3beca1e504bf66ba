"""One protocol for whatever simulates episodes: rows of counters in, returns out.

A row is one episode of one candidate. Candidates are never passed: a row names its pair and sign, and the engine
regenerates θ + sign·σ·ε(pair) from the counter. A row's outcome depends on nothing but its own counters, θ and the
task: not on its neighbours, its place, or the number of threads.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from evergait.core.arrays import Bool, Float32, Float64, Int32, UInt32
from evergait.core.random import Noise
from evergait.policy import Network
from evergait.tasks import Task


@dataclass(frozen=True)
class Recording:
    """Keep what the policy sees, as the gymnasium engine can; rows with an odd pair act with noise."""

    noise: Noise
    """The stream of the action noise; a row's own has its pair in place of a generation."""
    action_noise: float = 0.0
    """Standard deviation, as a share of half the action's range."""


@dataclass(frozen=True)
class Episodes:
    """What to simulate: n rows, one episode each."""

    task: Task
    network: Network
    theta: Float32
    """(n_parameters,) the unperturbed policy."""
    sigma: float
    noise: Noise
    """The stream that candidates' ε are drawn from."""
    pair: UInt32
    """(n,) index of the row's mirrored pair within the generation."""
    sign: Float32
    """(n,) +1, −1, or 0 for the unperturbed policy."""
    seed: UInt32
    """(n,) what Gymnasium's `reset(seed=...)` would be given."""
    horizon: int = 0
    """End episodes after this many steps; 0 leaves the task's own time limit."""
    healthy_bonus: float = 1.0
    """Factor on the healthy reward, for training only; 1 leaves every bit of the return alone."""
    gather_statistics: bool = False
    """Whether to sum up the observations that the policy saw."""
    recording: Recording | None = None
    """Whether to keep those observations, and how to act meanwhile."""

    def __len__(self) -> int:
        return len(self.seed)

    def rows(self, part: slice) -> "Episodes":
        """The same request for some of the rows."""
        cut = {name: getattr(self, name)[part] for name in ("pair", "sign", "seed")}
        return Episodes(**{**self.__dict__, **cut})


@dataclass(frozen=True)
class Outcome:
    """What came of n rows."""

    returns: Float64
    """(n,) sum of rewards; NaN where the episode diverged."""
    lengths: Int32
    """(n,) environment steps simulated."""
    diverged: Bool
    """(n,) whether the physics left the finite numbers; such a candidate gets the worst rank."""
    statistics: Float64 = field(default_factory=lambda: np.zeros((0, 2, 0)))
    """(n, 2, n_observations) per row: sums and sums of squares of its observations, when asked for."""
    observations: tuple[Float64, ...] = ()
    """Per row (length, n_observations): what the policy saw, when asked for."""

    @staticmethod
    def concatenate(parts: "list[Outcome]") -> "Outcome":
        """Join the outcomes of consecutive rows."""
        names = ("returns", "lengths", "diverged", "statistics")
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return Outcome(**arrays, observations=tuple(seen for part in parts for seen in part.observations))


@runtime_checkable
class Engine(Protocol):
    """Simulates episodes; one instance serves many calls and may keep models and processes between them."""

    name: ClassVar[str]

    def refuses(self, task: Task) -> str:
        """Why this engine cannot simulate the task, or an empty string if it can."""
        ...

    def run(self, episodes: Episodes, n_threads: int) -> Outcome:
        """Simulate every row, on at most `n_threads` threads or processes."""
        ...

    def close(self) -> None:
        """Give back processes and memory; the engine may be used again afterwards."""
        ...
