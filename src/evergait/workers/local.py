"""Threads of this process: the default, and the reference for every other kind of workers."""

from typing import ClassVar

from evergait.engines import Episodes, Outcome, get_engine


class LocalWorkers:
    """Runs engines in this process."""

    name: ClassVar[str] = "local"

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._used: set[str] = set()

    def run(self, engine: str, episodes: Episodes) -> Outcome:
        """Simulate every row."""
        self._used.add(engine)
        return get_engine(engine).run(episodes, self.n_threads)

    def close(self) -> None:
        """Close the engines that were used."""
        for engine in self._used:
            get_engine(engine).close()
