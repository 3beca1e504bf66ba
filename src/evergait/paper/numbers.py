"""Numbers that the paper published."""

import csv
import functools
import importlib.resources
from collections.abc import Mapping

from evergait.config import Config
from evergait.core.names import short
from evergait.paper.roles import reference_condition


def _read(name: str) -> list[dict[str, str]]:
    text = (importlib.resources.files("evergait.paper") / name).read_text()
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


class PaperNumbers:
    """The paper's numbers for the runs of a study (see `analysis.study.Published`)."""

    def single_task(self, task: str) -> float | None:
        """Table 1."""
        return paper_single_task().get(task)

    def multi_task(self, config: Config, task: str) -> float | None:
        """Table 2."""
        by_head = {row["output_head"]: row for row in paper_multi_task()}
        text = by_head.get(config.policy.heads, {}).get(short(task))
        return float(text) if text else None

    def extremum(self, config: Config, order: str, step: int, task: str, which: str) -> float | None:
        """The tables of extrema."""
        row = _extrema().get((reference_condition(config), order, step, task))
        return float(row[f"{which}_return"]) if row else None


@functools.cache
def _extrema() -> Mapping[tuple[str, str, int, str], dict[str, str]]:
    return {(row["condition"], row["order"], int(row["step"]), row["task"]): row for row in paper_extrema()}
