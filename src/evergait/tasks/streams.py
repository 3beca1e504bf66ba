"""Streams are literals built from shorter literals; any list of tasks is a stream, these have names."""

import itertools
from collections.abc import Sequence

from evergait.core.errors import EvergaitError
from evergait.core.limits import MOST_PHASES, check_count
from evergait.tasks.base import Task, parse_task

HOPPER, SWIMMER, WALKER2D = (Task(name) for name in ("Hopper-v5", "Swimmer-v5", "Walker2d-v5"))
PAPER_TASKS = (HOPPER, SWIMMER, WALKER2D)
LETTERS = {"H": HOPPER, "S": SWIMMER, "W": WALKER2D, "C": Task("HalfCheetah-v5")}


def all_orders(tasks: Sequence[Task]) -> tuple[tuple[Task, ...], ...]:
    """Every order of a set of tasks.

    >>> len(all_orders(PAPER_TASKS))
    6
    """
    return tuple(itertools.permutations(tasks))


PAPER_ORDERS = all_orders(PAPER_TASKS)

STREAMS: dict[str, tuple[Task, ...]] = {
    "paper": PAPER_TASKS,
    **{"".join(task.id[0].lower() for task in order): order for order in PAPER_ORDERS},
    "hsh": (HOPPER, SWIMMER, HOPPER),
    "gravity": tuple(parse_task(f"Hopper-v5@gravity={g}") for g in (1.0, 0.5, 1.5)),
    "seasons": (WALKER2D, parse_task("Walker2d-v5@ice"), parse_task("Walker2d-v5@heavy"), WALKER2D),
}


def parse_stream(words: Sequence[str]) -> tuple[Task, ...]:
    """Read a stream: task names, one name from `STREAMS`, or the paper's letters.

    >>> [task.id for task in parse_stream(["H>S>H"])]
    ['Hopper-v5', 'Swimmer-v5', 'Hopper-v5']
    """
    if not words:
        raise EvergaitError("stream: it is empty; give at least one task, such as Hopper-v5")
    if len(words) == 1 and words[0] in STREAMS:
        return STREAMS[words[0]]
    check_count("stream", max(len(words), words[0].count(">")), MOST_PHASES)
    if len(words) == 1 and ">" in words[0]:
        return tuple(LETTERS.get(part.strip()) or parse_task(part) for part in words[0].split(">"))
    return tuple(parse_task(word) for word in words)
