"""Numbers that the paper published."""

import csv
import functools
import importlib.resources
from collections.abc import Mapping

from evergait.config import Config
from evergait.paper.roles import reference_condition

SINGLE_TASK: Mapping[str, float] = {"Hopper-v5": 3511.92, "Swimmer-v5": 362.21, "Walker2d-v5": 4680.66}
"""The paper's Table 1: best evaluation of single-task training, by task id."""
MULTI_TASK: Mapping[str, Mapping[str, float]] = {
    "separate": {"Hopper-v5": 1224.28, "Swimmer-v5": 360.54, "Walker2d-v5": 3719.17},
    "shared": {"Hopper-v5": 1112.05, "Swimmer-v5": 361.45, "Walker2d-v5": 3396.36},
}
"""Its Table 2: heads → task id → return."""


@functools.cache
def paper_extrema() -> list[dict[str, str]]:
    """The paper's tables of extrema: condition, order, step, task, max_return, min_return."""
    text = (importlib.resources.files("evergait.paper") / "max_min_returns.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


class PaperNumbers:
    """The paper's numbers for the runs of a study (see `analysis.study.Published`)."""

    def single_task(self, task: str) -> float | None:
        """Table 1."""
        return SINGLE_TASK.get(task)

    def multi_task(self, config: Config, task: str) -> float | None:
        """Table 2."""
        return MULTI_TASK.get(config.policy.heads, {}).get(task)

    def extremum(self, config: Config, order: str, step: int, task: str, which: str) -> float | None:
        """The tables of extrema."""
        row = _extrema().get((reference_condition(config), order, step, task))
        return float(row[f"{which}_return"]) if row else None


@functools.cache
def _extrema() -> Mapping[tuple[str, str, int, str], dict[str, str]]:
    return {(row["condition"], row["order"], int(row["step"]), row["task"]): row for row in paper_extrema()}
