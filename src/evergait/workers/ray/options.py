"""Options of Ray workers."""

import importlib.util
from dataclasses import dataclass

from evergait.core.data import require
from evergait.core.errors import EvergaitError
from evergait.workers.base import WorkersChoice, check_seconds


@dataclass(frozen=True)
class RayOptions(WorkersChoice):
    """What is asked of a Ray cluster."""

    address: str = ""
    """Cluster to join: `auto` or HOST:PORT; empty starts one on this machine, reachable from this machine only."""
    actor_threads: int = 1
    """Threads of each actor. More of them mean fewer actors to talk to, and coarser shares of the work."""
    share: int = 1
    """Use one part in so many of the cluster's processors, to leave room for others."""
    retries: int = 3
    """How often a chunk of rows may be lost with its worker before the run gives up."""
    smallest_chunk: int = 16
    """Rows that are worth a message; chunks shrink to this size towards the end of a generation."""
    patience_seconds: float = 10.0
    """A chunk that takes longer, and three times longer than others did, is given to an idle worker as well."""
    poll_seconds: float = 5.0
    """Time between looks at the cluster for machines that have come or gone."""
    start_seconds: float = 120.0
    """How long to wait for workers when there are none."""

    def check(self) -> None:
        """Raise EvergaitError for options that cannot work, or if Ray is not installed."""
        super().check()
        for name in ("actor_threads", "share", "smallest_chunk"):
            require(getattr(self, name) >= 1, f"workers.{name}", getattr(self, name), "at least 1")
        require(self.retries >= 0, "workers.retries", self.retries, "at least 0")
        for name in ("patience_seconds", "poll_seconds", "start_seconds"):
            check_seconds(name, getattr(self, name))
        require("://" not in self.address, "workers.address", self.address, "empty, auto or HOST:PORT")
        if importlib.util.find_spec("ray") is None:
            raise EvergaitError("workers: ray is not installed; pip install 'evergait[ray]'")
