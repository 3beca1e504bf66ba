"""How far a run is from the paper's of the same condition and order, by the extrema that the paper gives."""

from collections.abc import Mapping

import numpy as np

from evergait.paper.numbers import paper_extrema, paper_single_task
from evergait.scores.metrics import Metrics

Extrema = Mapping[tuple[int, str], tuple[float, float]]
MOST = 1.5
"""Where a share that is kept stops counting: a task that is learnt further while another one is."""


def published(condition: str, order: str) -> Extrema:
    """(stage, task) → the paper's worst and best evaluation; empty if it has none of these."""
    return {
        (int(row["step"]) - 1, f"{row['task']}-v5"): (float(row["min_return"]), float(row["max_return"]))
        for row in paper_extrema()
        if (row["condition"], row["order"]) == (condition, order)
    }


def worst_share(metrics: Metrics, learnt: int, stage: int) -> float:
    """The worst evaluation of a task in a later phase, as a share of its best when it was learnt; from 0 to 1.5."""
    task = metrics.task(learnt)
    best = metrics.ledgers[learnt].best(task)
    return float(np.clip(metrics.ledgers[stage].curve(task).min() / best, 0, MOST)) if best > 0 else 0.0


def distance(metrics: Metrics, paper: Extrema) -> float:
    """The mean over tasks of the mean of |ours - paper| over the best return in the task's own phase, as a share of the
    paper's R*, and over the worst share of it in every later phase.
    """
    by_task = []
    for learnt in range(metrics.n_stages):
        task = metrics.task(learnt)
        best = paper[learnt, task][1]
        gaps = [abs(metrics.ledgers[learnt].curve(task).max() - best) / paper_single_task()[task]]
        later = range(learnt + 1, metrics.n_stages)
        gaps += [abs(worst_share(metrics, learnt, stage) - paper[stage, task][0] / best) for stage in later]
        by_task.append(np.mean(gaps))
    return float(np.mean(by_task))
