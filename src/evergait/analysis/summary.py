"""The answer, first: per condition and task, how much was learnt, and how much of it was left at the end."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evergait.analysis.groups import Group
from evergait.core.names import short
from evergait.scores.metrics import Metrics
from evergait.scores.stats import interquartile_mean

LEARNT = 0.05
"""Below this R̂ right after learning there is nothing whose loss could be told in per cent."""


@dataclass(frozen=True)
class Row:
    """One task under one condition, over orders and seeds: interquartile means and what they are of."""

    task: str
    learnt: float
    """R̂ right after learning."""
    end: float | None
    """R̂ at the end of the stream; none where no other task ever came after it."""
    learnt_values: tuple[float, ...]
    end_values: tuple[float, ...]
    """One per run, beside `learnt_values`."""

    @property
    def kept(self) -> float | None:
        """Share of what was learnt that is left."""
        return None if self.end is None or self.learnt < LEARNT else self.end / self.learnt


@dataclass(frozen=True)
class Summary:
    """One condition: its rows, and a sentence."""

    condition: str
    rows: tuple[Row, ...]
    n_orders: int
    n_seeds: int
    together: bool = False
    """Whether all tasks were learnt in one phase."""
    notes: tuple[str, ...] = field(default=())

    @property
    def kept(self) -> float | None:
        """Share of everything learnt, over the tasks that others came after, that is left at the end."""
        rows = [row for row in self.rows if row.kept is not None]
        learnt = sum(row.learnt for row in rows)
        # What one task gained does not make up for what another one lost.
        return sum(min(row.end or 0.0, row.learnt) for row in rows) / learnt if rows else None

    @property
    def mean_end(self) -> float:
        """Mean R̂ over all tasks at the end."""
        return float(np.mean([row.learnt if row.end is None else row.end for row in self.rows]))

    def sentence(self) -> str:
        """What happened, in words and measured numbers; the condition's name is left to the page."""
        parts = [self._part(row, "" if place else " of R*") for place, row in enumerate(self.rows)]
        text = "; ".join(parts)
        return f"learnt {text}{', all at once' if self.together else ''}."

    def _part(self, row: Row, unit: str) -> str:
        name, learnt = short(row.task), f"{number(row.learnt)}{unit}"
        if row.learnt < LEARNT:
            return f"{name} hardly at all ({learnt})"
        if row.end is None:
            return f"{name} to {learnt}" if self.together or len(self.rows) == 1 else f"{name}, the last, to {learnt}"
        if row.end > row.learnt:
            return f"{name} to {learnt}, and ended even higher, at {number(row.end)}"
        return f"{name} to {learnt}, and kept {percent(row.kept)} of it"


def summarise(groups: Sequence[Group]) -> list[Summary]:
    """One summary per condition, single-task baselines left out unless there is nothing else."""
    chosen = [group for group in groups if group.condition != "single"] or list(groups)
    summaries = []
    for condition in dict.fromkeys(group.condition for group in chosen):
        mine = [group for group in chosen if group.condition == condition]
        rows = _rows(mine)
        notes = []
        if unfinished := [group for group in mine if not group.is_done]:
            done, wanted = unfinished[0].n_stages, len(unfinished[0].entries[0].run.config.stages())
            where = f" on {unfinished[0].order}" if len(mine) > 1 else ""
            notes.append(f"not finished{where}: {done} of {wanted} phases")
        if left_out := sum(group.n_seeds_left_out for group in mine):
            notes.append(f"{left_out} runs that are less far are left out")
        n_seeds = max(len(group.entries) for group in mine)
        together = len(rows) > 1 and all(len(learning) > 1 for group in mine for learning in group.learning)
        summaries.append(Summary(condition, rows, len(mine), n_seeds, together, tuple(notes)))
    return summaries


def _rows(groups: Sequence[Group]) -> tuple[Row, ...]:
    pairs: dict[str, list[tuple[float, float | None]]] = {}
    for group in groups:
        for metrics in group.metrics:
            for task, pair in learnt_and_end(metrics).items():
                pairs.setdefault(task, []).append(pair)
    rows = []
    for task, values in pairs.items():
        followed = [(learnt, end) for learnt, end in values if end is not None]
        shown = followed or values
        learnt = np.array([learnt for learnt, _ in shown])
        ends = np.array([end for _, end in followed])
        end = interquartile_mean(ends) if followed else None
        rows.append(Row(task, interquartile_mean(learnt), end, tuple(learnt.tolist()), tuple(ends.tolist())))
    return tuple(rows)


def learnt_and_end(metrics: Metrics) -> dict[str, tuple[float, float | None]]:
    """Task → R̂ at the end of the last stage that learnt it, and at the end of the stream if stages came after."""
    found: dict[str, tuple[float, float | None]] = {}
    last = metrics.n_stages - 1
    for stage, ledger in enumerate(metrics.ledgers):
        for task in ledger.learning:
            learnt = metrics.final(task, stage)
            found[task] = (learnt, metrics.final(task, last) if stage < last else None)
    return found


def headline(summaries: Sequence[Summary]) -> str:
    """The report's first sentence; conditions that were trained on fewer orders than others are not compared in it."""
    most = max((summary.n_orders for summary in summaries if summary.kept is not None), default=0)
    told = [(s, s.kept) for s in summaries if s.kept is not None and s.n_orders == most]
    if not told:
        if not summaries:
            return "Nothing has been trained to the end of a phase yet"
        row = summaries[0].rows[0]
        return f"{summaries[0].condition} learnt {short(row.task)} to {number(row.learnt)} of R*"
    best = max(told, key=lambda pair: pair[1] or 0.0)
    worst = min(told, key=lambda pair: pair[1] or 0.0)
    sentence = f"{best[0].condition} kept {percent(best[1])} of what it had learnt"
    return sentence if best is worst else f"{sentence}, {worst[0].condition} {percent(worst[1])}"


def number(value: float) -> str:
    """Two decimals, with a real minus sign.

    >>> number(-0.004), number(-0.31)
    ('0.00', '−0.31')
    """
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text.replace("-", "−")


def percent(share: float | None) -> str:
    """How much is left, in words that fit "kept … of it"; below zero everything was lost.

    >>> percent(0.041), percent(-0.2), percent(1.3)
    ('4\\xa0%', 'nothing', 'all')
    """
    if share is None or share <= 0:
        return "nothing"
    if share >= 0.995:
        return "all"
    return "under 1\u00a0%" if share < 0.005 else f"{100 * share:.0f}\u00a0%"
