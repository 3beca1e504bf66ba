"""Workers: where engines run."""

from evergait.workers.base import Workers
from evergait.workers.local import LocalWorkers

__all__ = ["LocalWorkers", "Workers"]
