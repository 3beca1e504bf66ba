"""Ray as a kind of workers; Ray itself is imported when they are started."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from evergait.workers.base import Workers
from evergait.workers.ray.options import RayOptions


@dataclass(frozen=True)
class Ray(RayOptions, name="ray"):
    """Actors of a Ray cluster: this machine's processors, or those of many machines."""

    def start(self, n_threads: int) -> Workers:
        """Join or start a cluster and wait until its actors answer."""
        self.check()
        from evergait.workers.ray.workers import RayWorkers

        return RayWorkers(self, n_threads)

    @contextmanager
    def shared(self, n_processes: int, n_threads: int) -> Iterator[Self]:
        """Every process joins the same cluster, and takes its share of it."""
        self.check()
        from evergait.workers.ray.connection import Connection

        connection = Connection(self.address, n_threads)
        try:
            yield dataclasses.replace(self, address=connection.address, share=self.share * n_processes)
        finally:
            connection.close()
