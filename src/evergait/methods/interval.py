"""Interval replay (the paper's Algorithm 1): every R-th generation the whole population works on one earlier task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evergait.data import require
from evergait.methods.base import Batch, Method, Stage
from evergait.methods.naive import Naive
from evergait.random import CHOICE, Noise


@dataclass(frozen=True)
class Interval(Method, name="interval"):
    """Replays an earlier task in generations R, 2R, 3R, …"""

    interval: int = 4
    """R: every R-th generation is a replay; 0 never replays."""
    choose: Literal["cycle", "uniform", "latest"] = "cycle"
    """Which earlier task: each in turn, one at random, or the one learnt last."""

    def check(self, stages: Sequence[Stage]) -> None:
        """Raise EvergaitError for an interval that leaves no room for the current task."""
        require(self.interval == 0 or self.interval >= 2, "method.interval", self.interval, "0 (never) or at least 2")

    def settings(self, stage: Stage) -> Mapping[str, Any]:
        """With nothing to replay, a phase is a naive one and shared with it."""
        return super().settings(stage) if stage.earlier and self.interval else Naive().settings(stage)

    def plan(self, stage: Stage, generation: int) -> tuple[Batch, ...]:
        """The whole population on one task."""
        if not stage.earlier or not self.interval or generation % self.interval:
            return (Batch(stage.task, stage.n_pairs),)
        n_earlier, turn = len(stage.earlier), generation // self.interval - 1
        which = {
            "cycle": turn % n_earlier,
            "uniform": int(Noise(stage.seed, CHOICE, generation, stage.index).integers(1)[0]) % n_earlier,
            "latest": n_earlier - 1,
        }[self.choose]
        return (Batch(stage.earlier[which], stage.n_pairs, replay=True),)
