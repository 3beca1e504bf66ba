"""What people see while a run trains: a live view on a terminal, a quiet line now and then elsewhere."""

import math
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evergait.config import Config
from evergait.core.table import number
from evergait.methods import Stage
from evergait.store.ledger import Record, best_of
from evergait.training.observer import Diagnostics, Observer, Position

BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: list[float], width: int = 24) -> str:
    """The last values as blocks between their own least and greatest.

    >>> sparkline([0.0, 1.0, 2.0])
    '▁▅█'
    """
    recent = values[-width:]
    defined = [value for value in recent if math.isfinite(value)] or [0.0]
    low, high = min(defined), max(defined)
    span = (high - low) or 1.0
    return "".join(BLOCKS[min(int((value - low) / span * 8), 7)] if math.isfinite(value) else "×" for value in recent)


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> duration(75), duration(3 * 86400 + 7200)
    ('1 min 15 s', '3 d 2 h')
    """
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    left, words = round(seconds), list[str]()
    for unit, size in units:
        if left >= size and len(words) < 2:
            words.append(f"{left // size} {unit}")
            left %= size
    return " ".join(words) or "0 s"


class Progress(Observer):
    """Shows rate, time left and returns."""

    def __init__(self, config: Config, console: Console, interval: float = 10.0) -> None:
        self._config, self._console, self._interval = config, console, interval
        self._n_stages = len(config.stages())
        self._curves: dict[str, list[float]] = {}
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        self._at = self._first = Position(config.stages()[0], 0, 0, 0, config.phase_length)
        self._is_first = True
        self._started = self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def phase_started(self, at: Position) -> None:
        """Begin to measure anew."""
        stage, self._at, self._first, self._is_first = at.stage, at, at, True
        self._started = self._last_line = time.monotonic()
        if not self._live:
            how = f"goes on after generation {at.generation}" if at.generation else "starts"
            self._print(f"phase {stage.index + 1}/{self._n_stages} {stage.name} {how}")

    def generation_done(self, at: Position, seen: Diagnostics) -> None:
        """Move on."""
        if self._is_first:  # it loads models and the like: measure from its end on
            self._first, self._started, self._is_first = at, time.monotonic(), False
        self._at = at
        if self._live:
            self._live.update(self._view())
        elif time.monotonic() - self._last_line > self._interval:
            self._last_line = time.monotonic()
            self._print(self._line())

    def evaluated(self, at: Position, record: Record) -> None:
        """Add a point to every task's curve."""
        for task in record.returns:
            self._curves.setdefault(task, []).append(record.mean(task))

    def rate(self) -> float:
        """Environment steps per second in this phase and process."""
        return (self._at.n_steps - self._first.n_steps) / max(time.monotonic() - self._started, 1e-9)

    def seconds_left(self) -> float:
        """Expected time until the end of the stream, if later phases take as long as this one."""
        done = self._at.used - self._first.used
        if done < 1:
            return float("nan")
        left = self._at.length * self._n_stages - self._at.in_stream
        return max(left, 0) * (time.monotonic() - self._started) / done

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    def _status(self) -> str:
        left = self.seconds_left()
        ending = f", {duration(left)} left" if left == left else ""
        steps = f", {self._at.used / self._config.steps:.0%} of the steps" if self._config.steps else ""
        of = "" if self._config.steps else f"/{self._config.generations}"
        return f"generation {self._at.generation}{of}{steps}, {self.rate():,.0f} steps/s{ending}"

    def _line(self) -> str:
        returns = ", ".join(f"{task} {number(curve[-1])}" for task, curve in self._curves.items())
        where = f"phase {self._at.stage.index + 1}/{self._n_stages} {self._at.stage.name}"
        return f"{where}: {self._status()}{'; ' if returns else ''}{returns}"

    def _view(self) -> Group:
        stage = self._at.stage
        title = Text(f"phase {stage.index + 1}/{self._n_stages}  {stage.name}", style="bold")
        bar = ProgressBar(self._at.length, self._at.used, width=60)
        return Group(title, bar, Text(self._status(), style="dim"), returns_table(self._curves, stage))


def returns_table(curves: Mapping[str, list[float]], stage: Stage) -> Table:
    """Per task: last and best return and how it moved."""
    table = Table(box=None, pad_edge=False)
    for name in ("task", "last", "best", ""):
        table.add_column(name, justify="left" if name in ("task", "") else "right")
    learning = [task.name for task in stage.tasks]
    for task, curve in curves.items():
        style = "bold" if task in learning else ""
        last, best = number(curve[-1]), number(best_of(np.array(curve)))
        table.add_row(Text(task), last, best, sparkline(curve), style=style)
    return table
