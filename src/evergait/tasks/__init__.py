"""Tasks, their variants and named streams."""

from evergait.tasks.base import (
    PAPER_ORDERS,
    PAPER_TASKS,
    STREAMS,
    VARIANTS,
    Task,
    Variant,
    all_orders,
    parse_stream,
    parse_task,
)
from evergait.tasks.process import trust
from evergait.tasks.spaces import Spaces, is_registered, make, refusal, spaces

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
