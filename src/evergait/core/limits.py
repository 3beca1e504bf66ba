"""How much is too much: known before work starts, and said with the number and the limit."""

import math
from collections.abc import Mapping
from typing import Any

from evergait.core.data import require
from evergait.core.errors import EvergaitError

MOST_ROWS = 1 << 22
"""Episodes of one generation: what is kept of them fits in memory."""
MOST_TASKS = 1000
"""Different tasks that one policy knows."""
MOST_PHASES = 10_000
"""Phases of one stream."""
MOST_CELLS = 10_000
"""Runs of one study; its study.json must be read again."""
MOST_THREADS = 1024
MOST_TRIALS = 10_000
"""Trials of one search."""
NUMBER_BYTES = 36
"""What an episode takes in a ledger, at most: a return of 24 characters, a length of 10, commas."""


def within(value: int, low: int, high: int, where: str) -> None:
    """Refuse a number outside a range."""
    require(value >= low, where, value, f"at least {low:,}")
    require(value <= high, where, value, f"at most {high:,}")


def check_finite(data: Any, where: str = "") -> None:
    """Refuse numbers that are not finite, anywhere in plain data, by the name of their field."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            check_finite(value, f"{where}.{key}".removeprefix("."))
    elif isinstance(data, list | tuple):
        for i, value in enumerate(data):
            check_finite(value, f"{where}[{i}]")
    elif isinstance(data, float) and not math.isfinite(data):
        raise EvergaitError(f"{where}: is {data!r}; it must be finite")


def check_count(what: str, n: int, most: int) -> None:
    """Refuse what would take too long to write out, before it is written out."""
    if n > most:
        raise EvergaitError(f"{what}: there would be {n:,}; at most {most:,} are taken")
