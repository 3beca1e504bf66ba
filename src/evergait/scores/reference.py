"""Numbers that the paper published, and the normalisers that come from them."""

import csv
import functools
import importlib.resources
from collections.abc import Mapping, Sequence

import numpy as np

from evergait.scores.metrics import Normaliser
from evergait.store.ledger import Ledger, best_of


def _read(name: str) -> list[dict[str, str]]:
    text = (importlib.resources.files("evergait.scores") / name).read_text()
    return list(csv.DictReader(text.splitlines()))


@functools.cache
def paper_single_task() -> Mapping[str, float]:
    """The paper's Table 1: best evaluation of single-task training, by task id."""
    return {f"{row['task']}-v5": float(row["max_return"]) for row in _read("single_task.csv")}


@functools.cache
def paper_multi_task() -> list[dict[str, str]]:
    """The paper's Table 2."""
    return _read("multi_task.csv")


@functools.cache
def paper_extrema() -> list[dict[str, str]]:
    """The paper's tables of extrema: condition, order, step, task, max_return, min_return."""
    return _read("max_min_returns.csv")


def choose_normaliser(ledgers: Sequence[Ledger], baselines: Mapping[str, Ledger] | None = None) -> Normaliser:
    """R* of every task: from single-task phases where given, else the paper's, else the best that this run reached.

    Where that is not positive (Reacher's returns never are), dividing by it would turn better into worse: R* is 1 then.
    """
    own = {task: ledger.best(task) for task, ledger in (baselines or {}).items()}
    published = paper_single_task()
    best: dict[str, float] = {}
    sources: dict[str, list[str]] = {}
    for task in dict.fromkeys(task for ledger in ledgers for task in ledger.tasks):
        if task in own:
            best[task], source = own[task], "single-task phases of this study"
        elif task in published:
            best[task], source = published[task], "the paper's single-task runs"
        else:
            best[task], source = (
                best_of(np.array([ledger.best(task) for ledger in ledgers])),
                "the best return of this run",
            )
        if not best[task] > 0:
            best[task], source = 1.0, "1, for no return is positive"
        sources.setdefault(source, []).append(task)
    return Normaliser(best, "; ".join(f"{source} ({', '.join(tasks)})" for source, tasks in sources.items()))
