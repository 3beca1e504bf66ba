"""Workers carry episodes to engines and bring outcomes back in row order."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self, runtime_checkable

from evergait.core.data import Family, require
from evergait.engines import Episodes, Limits, Outcome


@dataclass
class Traffic:
    """What workers have sent to other processes and machines so far; nothing, for threads of this process."""

    n_requests: int = 0
    n_chunks: int = 0
    n_redone: int = 0
    """Chunks that were lost with a worker, or late, and given to another."""
    n_lost: int = 0
    """Workers that died."""
    n_bytes_sent: int = 0
    """Requests (once per machine) and row ranges (once per chunk), as payload."""
    n_bytes_received: int = 0
    """Outcomes, as payload."""
    n_workers: int = 0
    """Workers that answer at the moment."""
    n_nodes: int = 0
    """Machines that these are on."""


@runtime_checkable
class Workers(Protocol):
    """Where engines run."""

    name: ClassVar[str]
    n_threads: int
    """Threads of this process, for what is not simulated elsewhere."""

    def run(self, engine: str, episodes: Episodes) -> Outcome:
        """Simulate every row on the named engine; the outcome is in row order whoever computed it."""
        ...

    def traffic(self) -> Traffic:
        """What has travelled since the start."""
        ...

    def close(self) -> None:
        """Stop everything that was started; may be called twice."""
        ...


MOST_SECONDS = 1e6
"""What the kernel can wait for is not much longer."""


def check_seconds(name: str, seconds: float) -> None:
    """Refuse an option of workers that nobody can wait for."""
    require(0 < seconds <= MOST_SECONDS, f"workers.{name}", seconds, f"above 0, and at most {MOST_SECONDS:g}")


@dataclass(frozen=True)
class WorkersChoice(Family, ABC):
    """A kind of workers and its options. It decides no bits, so it is no part of a run's config."""

    episode_seconds: float = Limits().episode
    """How long one episode of a Gymnasium environment may take before it is held to hang, and the run stops."""
    making_seconds: float = Limits().making
    """How long a process may take to import and make such an environment."""

    def check(self) -> None:
        """Raise EvergaitError for options that cannot work, before anything is started."""
        for name in ("episode_seconds", "making_seconds"):
            check_seconds(name, getattr(self, name))

    @property
    def limits(self) -> Limits:
        """What engines must know of these options."""
        return Limits(self.episode_seconds, self.making_seconds)

    @abstractmethod
    def start(self, n_threads: int) -> Workers:
        """Workers that are ready to run."""

    @contextmanager
    def shared(self, n_processes: int, n_threads: int) -> Iterator[Self]:
        """What each of several processes must start in order to share the same processors."""
        yield self
