"""Workers: where engines run; importing this package registers the kinds, and imports none of their libraries."""

from evergait.workers.base import Traffic, Workers, WorkersChoice
from evergait.workers.local import Local, LocalWorkers
from evergait.workers.ray import Ray

__all__ = ["Local", "LocalWorkers", "Ray", "Traffic", "Workers", "WorkersChoice"]
