"""Threads of this process: the default, and the reference for every other kind of workers."""

from dataclasses import dataclass
from typing import ClassVar

from evergait.engines import Episodes, Limits, Outcome, get_engine, limited_engine
from evergait.tasks.process import set_limits
from evergait.workers.base import Traffic, WorkersChoice


class LocalWorkers:
    """Runs engines in this process."""

    name: ClassVar[str] = "local"

    def __init__(self, n_threads: int, limits: Limits = Limits()) -> None:  # noqa: B008 - a constant
        self.n_threads = n_threads
        self._limits = limits
        set_limits(limits)
        self._used: set[str] = set()

    def run(self, engine: str, episodes: Episodes) -> Outcome:
        """Simulate every row."""
        self._used.add(engine)
        return limited_engine(engine, self._limits).run(episodes, self.n_threads)

    def traffic(self) -> Traffic:
        """Nothing travels."""
        return Traffic()

    def close(self) -> None:
        """Close the engines that were used."""
        for engine in self._used:
            get_engine(engine).close()


@dataclass(frozen=True)
class Local(WorkersChoice, name="local"):
    """Threads of this process."""

    def start(self, n_threads: int) -> LocalWorkers:
        """Nothing needs to be started."""
        self.check()
        return LocalWorkers(n_threads, self.limits)
