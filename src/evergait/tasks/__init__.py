"""Tasks, their variants and named streams."""

from evergait.tasks.base import VARIANTS, Task, Variant, parse_task
from evergait.tasks.process import trust
from evergait.tasks.spaces import Spaces, is_registered, make, refusal, spaces
from evergait.tasks.streams import PAPER_ORDERS, PAPER_TASKS, STREAMS, all_orders, parse_stream

__all__ = [
    "PAPER_ORDERS",
    "PAPER_TASKS",
    "STREAMS",
    "VARIANTS",
    "Spaces",
    "Task",
    "Variant",
    "all_orders",
    "is_registered",
    "make",
    "parse_stream",
    "parse_task",
    "refusal",
    "spaces",
    "trust",
]
