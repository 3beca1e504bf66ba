"""Interval replay (the paper's Algorithm 1): every R-th generation the whole population works on one earlier task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from evergait.core.data import require, within
from evergait.core.random import CHOICE, Noise
from evergait.methods.base import Batch, Memory, Method, Stage


@dataclass(frozen=True)
class Interval(Method, name="interval"):
    """Replays an earlier task in generations R, 2R, 3R, …"""

    version: ClassVar[int] = 2  # 2: one of several starts is not judged by a replay
    pauses: ClassVar[bool] = True

    interval: int = 4
    """R: every R-th generation is a replay; 0 never replays."""
    choose: Literal["cycle", "uniform", "latest"] = "cycle"
    """Which earlier task: each in turn, one at random, or the newest, which a task that came back is not."""

    def check(self, stages: Sequence[Stage], where: str = "method") -> None:
        """Raise EvergaitError for an interval that leaves no room for the current task."""
        require(self.interval == 0 or self.interval >= 2, f"{where}.interval", self.interval, "0 (never) or at least 2")
        within(self.interval, 0, 2**32 - 1, f"{where}.interval")

    def settings(self, stage: Stage) -> Mapping[str, Any]:
        """Without replay, a phase is a naive one and shared with it."""
        return super().settings(stage) if self.interval else {"name": "naive"}

    def plan(self, stage: Stage, generation: int, batches: tuple[Batch, ...], memory: Memory) -> tuple[Batch, ...]:
        """The whole population on an earlier task, if it is time."""
        if not stage.earlier or not self.interval or generation % self.interval:
            return batches
        n_earlier, turn = len(stage.earlier), generation // self.interval - 1
        which = {
            "cycle": turn % n_earlier,
            "uniform": int(Noise(stage.seed, CHOICE, generation, stage.index).integers(1)[0]) % n_earlier,
            "latest": n_earlier - 1,
        }[self.choose]
        return (Batch(stage.earlier[which], stage.n_pairs, replay=True),)
