"""All gaits of a report: which policies can be watched, on which task, and where the page starts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evergait.analysis.groups import Group
from evergait.analysis.ranking import learnt_and_end
from evergait.core.errors import EvergaitError
from evergait.report.gait import GaitRecorder, Moment, moments, recorder
from evergait.tasks import parse_task, spaces
from evergait.tasks.base import short
from evergait.training.run import edited

Starts = dict[int, tuple[float, int]]
"""Task → (loss, shelf): where each robot is best watched."""
MOST_BYTES = 7_500_000
"""Bytes of motion in one page; with live robots and films the whole page must stay below 15 MB."""


@dataclass
class Catalogue:
    """Robots, gaits (each once, however many runs share it) and the shelves to choose them from."""

    tasks: tuple[str, ...]
    cache: Path | None
    most_bytes: int = MOST_BYTES
    robots: dict[int, dict[str, Any]] = field(default_factory=dict)
    gaits: list[dict[str, Any]] = field(default_factory=list)
    shelves: list[dict[str, Any]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    _index: dict[str, int] = field(default_factory=dict)
    _recorders: dict[str, GaitRecorder] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)
    _n_bytes: int = 0
    _left_out: dict[str, bool] = field(default_factory=dict)
    """Gait → whether it is of the start or the end of a phase."""

    def fill(self, groups: Sequence[Group]) -> None:
        """Record what can be shown: first the ends of all stages, then, while there is room, what lies between."""
        self._open(groups)
        self.messages += edited(group.entries[0].run for group in groups)
        if not all(group.entries[0].run.has_policies for group in groups):
            self.messages.append("Some phases were kept without their policies, so there are no gaits of them.")
        listed = [(group, self._shelf(group), moments(group.entries[0].run)) for group in groups if self._can(group)]
        for wanted in (True, False):
            for group, shelf, kept in listed:
                for place, moment in enumerate(kept):
                    if (moment.is_end or moment.generation == 0) == wanted:
                        self._put(group, shelf["moments"], place, moment)
        for _, shelf, _ in listed:
            shelf["moments"] = [moment for _, moment in sorted(shelf["moments"].items()) if moment["gaits"]]
        self.shelves = [shelf for _, shelf, _ in listed if shelf["moments"]]
        # A robot of which nothing found room would be a choice that shows nothing.
        watched = {task for shelf in self.shelves for moment in shelf["moments"] for task in moment["gaits"]}
        self.robots = {task: robot for task, robot in self.robots.items() if task in watched}
        if self._left_out:
            n_ends = sum(self._left_out.values())
            ends = f", {n_ends} of them from the start or the end of a phase,"
            which = f"{len(self._left_out)} gaits{ends if n_ends else ' from the middle of phases'}"
            self.messages.append(f"{which} are left out to keep this file small; `evergait play` shows any of them.")
        for one in self._recorders.values():
            one.robot.close()

    def _open(self, groups: Sequence[Group]) -> None:
        for task in dict.fromkeys(task for group in groups for task in group.tasks):
            try:
                spaces(parse_task(task))
                self._known.add(task)
                self._recorders[task] = recorder(task, self.cache)
            except EvergaitError as error:
                self.messages.append(f"{error}.")
                continue
            self.robots[self.tasks.index(task)] = self._recorders[task].robot.describe()

    def _can(self, group: Group) -> bool:
        """Whether there are policies and their layout is known: it needs every task of the run, drawn or not."""
        return group.entries[0].run.has_policies and all(spelt in self._known for spelt in group.tasks)

    def _shelf(self, group: Group) -> dict[str, Any]:
        seed = group.entries[0].seed
        return {"condition": group.condition, "order": group.order, "seed": seed, "moments": {}}

    def _put(self, group: Group, shelf: dict[int, dict[str, Any]], place: int, moment: Moment) -> None:
        run = group.entries[0].run
        found = {}
        for task in group.tasks:
            if task not in self._recorders:
                continue
            gait = self._recorders[task].record(run, moment)
            size = len(gait["motion"]) + len(gait["score"])
            if gait["id"] not in self._index:
                if self._n_bytes + size > self.most_bytes:
                    self._left_out[gait["id"]] = moment.is_end or moment.generation == 0
                    continue
                self._index[gait["id"]] = len(self.gaits)
                self._n_bytes += size
                self.gaits.append({key: value for key, value in gait.items() if key != "id"})
            found[self.tasks.index(task)] = self._index[gait["id"]]
        shelf[place] = {**self._name(group, moment), "gaits": found}

    def _name(self, group: Group, moment: Moment) -> dict[str, Any]:
        learning = " + ".join(map(short, group.learning[moment.stage]))
        last = group.metrics[0].ledgers[moment.stage].generations[-1]
        if moment.generation == 0:
            label = "before training"
        elif moment.is_end:
            label = f"after {learning}"
        else:
            label = f"{learning}, generation {moment.generation} of {last}"
        learnt = [self.tasks.index(task) for task in group.learning[moment.stage]] if moment.is_end else []
        return {"label": label, "stage": moment.stage, "generation": moment.generation, "learnt": learnt}

    def ends(self, task: int, shelf: int) -> list[dict[str, Any]]:
        """Two moments of a shelf: right after the task was learnt, and the last; one if they are the same."""
        offered = [moment for moment in self.shelves[shelf]["moments"] if task in moment["gaits"]]
        learnt = [moment for moment in offered if task in moment["learnt"]] or offered
        return [learnt[0]] if learnt[0] is offered[-1] else [learnt[0], offered[-1]]

    def starts(self, groups: Sequence[Group]) -> Starts:
        """Every robot's best shelf: of those that have a gait of it, the run that lost most, if that can be seen."""
        best: dict[int, tuple[float, int]] = {}
        for number, shelf in enumerate(self.shelves):
            group = next(g for g in groups if (g.condition, g.order) == (shelf["condition"], shelf["order"]))
            for task, point in learnt_and_end(group.metrics[0]).items():
                index = self.tasks.index(task)
                shown = [moment for moment in shelf["moments"] if index in moment["gaits"]]
                if not shown:
                    continue
                # What came last lost nothing.
                loss = point.learnt - point.end if point.was_followed else min(point.learnt, 0.0) - 1.0
                # Nor is there a loss to see where one of its two ends was left out, or has no number.
                both = any(index in moment["learnt"] for moment in shown) and _is_last(shown[-1], group)
                loss = loss if both and math.isfinite(loss) else -math.inf
                if index not in best or loss > best[index][0]:
                    best[index] = loss, number
        return best


def _is_last(moment: dict[str, Any], group: Group) -> bool:
    """Whether a moment is the end of the last stage."""
    return bool(moment["learnt"]) and moment["stage"] == group.n_stages - 1
