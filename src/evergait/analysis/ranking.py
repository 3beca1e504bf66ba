"""The answer, first: conditions ranked by what they know at the end, then by how much they kept."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evergait.analysis.groups import Group, Values, table_of
from evergait.analysis.study import Analysis
from evergait.config import Config
from evergait.core.data import to_data
from evergait.core.table import number
from evergait.methods import Method
from evergait.scores.metrics import Metrics
from evergait.tasks.base import short

IGNORED = ("stream", "tasks", "seed", "method")
"""Runs of one condition differ in the first three; the method is told on its own."""


def explain(configs: Mapping[str, Config]) -> dict[str, str]:
    """Condition → a sentence."""
    flat = {name: _flat(to_data(config)) for name, config in configs.items()}
    keys = dict.fromkeys(key for settings in flat.values() for key in settings if key.split(".")[0] not in IGNORED)
    values = {key: [_text(settings.get(key)) for settings in flat.values()] for key in keys}
    usual = {key: Counter(found).most_common(1)[0][0] for key, found in values.items()}
    told = {}
    for name, config in configs.items():
        mine = {key: _text(flat[name].get(key)) for key in keys}
        told[name] = "; ".join([method_words(config.method), *(f"{k} {v}" for k, v in mine.items() if v != usual[k])])
    return told


def method_words(method: Method) -> str:
    """The first line of what the method's classes say of themselves, and the options that it names or that were set."""
    parts = [Method.members[part] for part in method.name.split("+") if part in Method.members]
    words = " + ".join((part.__doc__ or part.name).splitlines()[0].rstrip(".") for part in parts) or method.name
    usual, mine = _flat(to_data(type(method)())), _flat(to_data(method))
    options = [k for k, v in mine.items() if not k.endswith("name") and (v != usual.get(k) or f"`{k}`" in words)]
    text = ", ".join(f"{option} {_text(mine[option])}" for option in options)
    return words.replace("`", "") + (f" ({text})" if text else "")


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in data.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


def _text(value: Any) -> str:
    return {"True": "yes", "False": "no", "None": "none"}.get(str(value), str(value))


LEARNT = 0.05
"""Below this score right after learning there is nothing whose loss could be told in per cent."""


@dataclass(frozen=True)
class Point:
    """A task before training, right after it was learnt, and at the end of its stream, in one run."""

    before: float
    learnt: float
    end: float
    """The same where no other task came after it."""
    learnt_return: float
    end_return: float
    was_followed: bool


@dataclass(frozen=True)
class Row:
    """One task under one condition, over orders and seeds."""

    task: str
    points: tuple[Point, ...]
    is_share: bool

    @property
    def shown(self) -> tuple[Point, ...]:
        """The runs in which other tasks came after it; all, where there is none."""
        return tuple(point for point in self.points if point.was_followed) or self.points

    @property
    def was_followed(self) -> bool:
        """Whether there is an end to speak of."""
        return any(point.was_followed for point in self.points)

    @property
    def learnt(self) -> float:
        """Mean right after learning, of the runs in which other tasks came after it."""
        return float(np.mean([point.learnt for point in self.shown]))

    @property
    def end(self) -> float:
        """Mean at the end of the stream, of the same runs."""
        return float(np.mean([point.end for point in self.shown]))

    @property
    def final(self) -> float:
        """Mean at the end over all runs, also those in which it came last."""
        return float(np.mean([point.end for point in self.points]))

    @property
    def final_return(self) -> float:
        """The same as a plain return."""
        return float(np.mean([point.end_return for point in self.points]))

    @property
    def learnt_return(self) -> float:
        """`learnt` as a plain return."""
        return float(np.mean([point.learnt_return for point in self.shown]))

    @property
    def end_return(self) -> float:
        """`end` as a plain return."""
        return float(np.mean([point.end_return for point in self.shown]))

    @property
    def kept(self) -> float | None:
        """Share of what was learnt that is left; none where there is no such share, or the end is not defined."""
        return self.end / self.learnt if self.can_be_lost and np.isfinite(self.end) else None

    @property
    def can_be_lost(self) -> bool:
        """Whether something was learnt, others came after it, and returns are shares."""
        return self.is_share and self.was_followed and self.learnt >= LEARNT


@dataclass(frozen=True)
class Standing:
    """One condition and where it stands."""

    condition: str
    explanation: str
    rows: tuple[Row, ...]
    final: Values
    """Mean over tasks at the end, by seed and order."""
    n_orders: int
    n_seeds: int
    is_share: bool
    together: bool
    """Whether all tasks were learnt in one phase."""
    is_done: bool
    """Whether its streams are trained to their end."""
    notes: tuple[str, ...]

    @property
    def kept(self) -> float | None:
        """Share of everything learnt, over the tasks that others came after, that is left at the end.

        None if one of them has no defined end: what is left of the others is not what is left of everything.
        """
        rows = [row for row in self.rows if row.can_be_lost]
        if not rows or any(row.kept is None for row in rows):
            return None
        # What one task gained does not make up for what another one lost.
        return sum(min(row.end, row.learnt) for row in rows) / sum(row.learnt for row in rows)

    @property
    def is_defined(self) -> bool:
        """Whether there is a number to rank it by: every evaluation at its end has a finite return."""
        return bool(np.isfinite(self.final.estimate))


def standings(analysis: Analysis) -> list[Standing]:
    """Every condition, best first, undefined and then unfinished ones last; single-task baselines only if alone."""
    groups = analysis.streams
    names = list(dict.fromkeys(group.condition for group in groups))
    words = explain({name: analysis.config(name) for name in names})
    found = [_standing(name, words[name], [g for g in groups if g.condition == name]) for name in names]
    return sorted(found, key=_place)


def _place(standing: Standing) -> tuple[bool, bool, float, float]:
    """What is not a number compares with nothing, so it must not be in the key."""
    final = standing.final.estimate if standing.is_defined else 0.0
    return not standing.is_done, not standing.is_defined, -final, -(standing.kept or 0.0)


def _standing(condition: str, explanation: str, groups: Sequence[Group]) -> Standing:
    runs = {(e.seed, g.order): metrics for g in groups for e, metrics in zip(g.entries, g.metrics, strict=True)}
    final = table_of({run: metrics.average_performance() for run, metrics in runs.items()})
    points: dict[str, list[Point]] = {}
    for metrics in (metrics for run, metrics in runs.items() if final.rests_on(*run)):
        for task, point in learnt_and_end(metrics).items():
            points.setdefault(task, []).append(point)
    is_share = groups[0].metrics[0].scale.is_share
    notes = []
    if unfinished := [group for group in groups if not group.is_done]:
        done, wanted = unfinished[0].n_stages, len(unfinished[0].entries[0].run.config.stages())
        where = f" on {unfinished[0].order}" if len(groups) > 1 else ""
        notes.append(f"not finished{where}: {done} of {wanted} phases")
    if left_out := sum(group.n_seeds_left_out for group in groups):
        notes.append(f"{left_out} runs that are less far are left out")
    if left_out := len(runs) - final.values.size:
        told = "1 run is" if left_out == 1 else f"{left_out} runs are"
        notes.append(f"{told} left out, so that every seed has the same orders")
    if not np.isfinite(final.estimate):
        notes.append("its end is not defined: an evaluation there has no finite return")
    return Standing(
        condition,
        explanation,
        tuple(Row(task, tuple(found), is_share) for task, found in points.items()),
        final,
        len(final.orders),
        len(final.seeds),
        is_share,
        len(points) > 1 and all(len(learning) > 1 for group in groups for learning in group.learning),
        not unfinished,
        tuple(notes),
    )


def learnt_and_end(metrics: Metrics) -> dict[str, Point]:
    """Task → the end of the last stage that learnt it, and the end of the stream."""
    found, last = {}, metrics.n_stages - 1
    for stage, ledger in enumerate(metrics.ledgers):
        for task in ledger.learning:
            learnt, end = (float(metrics.returns(task, s)[-1]) for s in (stage, last))
            before = float(metrics.curve(task, 0)[0])
            scores = before, metrics.final(task, stage), metrics.final(task, last)
            found[task] = Point(*scores, learnt, end, stage < last)
    return found


def headline(ranked: Sequence[Standing], name: str) -> str:
    """The report's first sentence; conditions of fewer orders than others, or without a defined end, are not in it."""
    if not ranked:
        return "Nothing has been trained to the end of a phase yet"
    done = [standing for standing in ranked if standing.is_done] or ranked
    done = [standing for standing in done if standing.is_defined]
    if not done:
        return f"No condition ended with a {name} that is defined"
    most = max(standing.n_orders for standing in done)
    told = [standing for standing in done if standing.n_orders == most]
    best, worst = told[0], told[-1]
    mean = "" if len(best.rows) == 1 else "mean "
    if len(told) == 1:
        where = f" on {short(best.rows[0].task)}" if len(best.rows) == 1 else f" over {len(best.rows)} tasks"
        kept = f" and kept {percent(best.kept)} of what it had learnt" if best.kept is not None else ""
        return f"{best.condition} ended with a {mean}{name} of {ending(best)}{where}{kept}"
    first, last = (_level_with(end, told) for end in (best, worst))
    if len(first) == len(told):
        return f"{_names(told)} ended alike, with a {mean}{name} of {ending(*told)}"
    highest = f"{_names(first)} ended highest, with a {mean}{name} of {ending(*first)}"
    return f"{highest}; {_names(last)} lowest, with {ending(*last)}"


def _level_with(end: Standing, told: Sequence[Standing]) -> list[Standing]:
    """Those whose number reads the same: which of them comes first says nothing."""
    return [standing for standing in told if number(standing.final.estimate) == number(end.final.estimate)]


def _names(standings: Sequence[Standing]) -> str:
    """Conditions, as a sentence lists them."""
    *others, last = (standing.condition for standing in standings)
    return f"{', '.join(others)} and {last}" if others else last


MOST_TOLD = 4
"""Of so many tasks a sentence can give every return."""


def ending(*standings: Standing) -> str:
    """What conditions on one level ended with; beside a score, the returns that it stands for, or the range of many."""
    told = number(standings[0].final.estimate)
    if not standings[0].is_share:
        return told
    tasks = dict.fromkeys(short(row.task) for standing in standings for row in standing.rows)
    ends = {task: [r.final_return for s in standings for r in s.rows if short(r.task) == task] for task in tasks}
    defined = [(end, task) for task, found in ends.items() for end in found if np.isfinite(end)]
    if len(ends) > MOST_TOLD and defined:
        (low, worst), (high, best) = min(defined), max(defined)
        return f"{told} (returns from {number(low)} on {worst} to {number(high)} on {best})"
    each = [f"{task} {' and '.join(map(number, found))}" for task, found in ends.items()]
    return f"{told} ({', '.join(each)})"


def percent(share: float | None) -> str:
    """How much is left, in words that fit "kept … of it"; below zero everything was lost.

    >>> percent(0.041), percent(-0.2), percent(1.3), percent(float("nan"))
    ('4\\xa0%', 'nothing', 'all', 'an unknown share')
    """
    if share is not None and np.isnan(share):
        return "an unknown share"
    if share is None or share <= 0:
        return "nothing"
    if share >= 0.995:
        return "all"
    return "under 1\u00a0%" if share < 0.005 else f"{100 * share:.0f}\u00a0%"
