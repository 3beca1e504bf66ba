"""Any Gymnasium environment with vector observations: one environment per process, results placed by row."""

import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import ClassVar

import gymnasium
import numpy as np

from evergait.core.errors import EvergaitError
from evergait.engines.base import Episodes, Outcome
from evergait.engines.gymnasium.episode import READY, Episode, Row
from evergait.tasks import Task, refusal
from evergait.tasks.process import (
    SCRIBBLED,
    SECONDS_TO_EXIT,
    Channel,
    Garbled,
    Limits,
    Process,
    is_foreign,
    spec_of,
    stop,
)

SECONDS_TO_ARRIVE = 10.0
"""From the first byte of an answer to its last: what comes slower is not one of ours."""


@dataclass
class _Worker:
    """A process and the rows that it has been given and not answered."""

    process: Process = field(default_factory=lambda: Process.start("evergait.engines.gymnasium.episode"))
    rows: deque[int] = field(default_factory=deque)
    since: float = 0.0
    """When it began the first of them."""

    @property
    def pipe(self) -> Channel:
        """Our end of its pipe."""
        return self.process.pipe


class GymnasiumEngine:
    """Simulates any Gymnasium id with 1-D Box observations and Box or Discrete actions."""

    name: ClassVar[str] = "gymnasium"

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008 - a constant
        self.limits = limits
        self._lock = threading.Lock()  # trainings in several threads of a program share an engine
        self._workers: list[_Worker] = []
        weakref.finalize(self, _stop, self._workers)

    def refuses(self, task: Task) -> str:
        """Why this engine cannot simulate the task, or an empty string if it can."""
        return refusal(task) or _out_of_reach(task)

    def run(self, episodes: Episodes, n_threads: int) -> Outcome:
        """Simulate every row, on at most `n_threads` processes."""
        if episodes.recording and not is_foreign(episodes.task):  # a few episodes, not worth processes of their own
            return _joined(episodes, _here(episodes))
        rows = [Row(0.0, 0, False)] * len(episodes)
        # An environment that raises or hangs, or Ctrl-C, leaves processes at work on rows that nobody wants.
        with self._lock:
            try:
                self._run(episodes, min(n_threads, len(episodes)), rows)
            except BaseException:
                _stop(self._workers, patience=0.0)
                raise
        return _joined(episodes, rows)

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            _stop(self._workers)

    def _run(self, episodes: Episodes, n_workers: int, rows: list[Row]) -> None:
        while len(self._workers) < n_workers:
            self._workers.append(_Worker())
        workers = self._workers[:n_workers]
        # Small chunks share the work evenly; rows in a chunk spare round trips.
        size = max(1, min(16, len(episodes) // (8 * max(n_workers, 1))))
        chunks = deque(range(low, min(low + size, len(episodes))) for low in range(0, len(episodes), size))
        request = episodes, spec_of(episodes.task)
        for worker in workers:
            _give(worker, [READY], request)
        while busy := [worker for worker in workers if worker.rows]:
            patience = [worker.since + self._limit(worker)[1] - time.monotonic() for worker in busy]
            ready = wait([worker.pipe.fileno() for worker in busy], max(0.0, min(patience)))
            for worker, left in zip(busy, patience, strict=True):
                if worker.pipe.fileno() in ready:
                    _take(worker, episodes, rows)
                    if not worker.rows and chunks:
                        _give(worker, chunks[0], chunks.popleft())
                elif left <= 0:
                    setting, seconds = self._limit(worker)
                    raise EvergaitError(
                        f"{_where(worker, episodes)} has taken more than {seconds:g} s; "
                        f"the environment hangs, or workers.{setting} must be longer"
                    )

    def _limit(self, worker: _Worker) -> tuple[str, float]:
        is_made = worker.rows[0] != READY
        return ("episode_seconds", self.limits.episode) if is_made else ("making_seconds", self.limits.making)


def _give(worker: _Worker, rows: Iterable[int], message: object) -> None:
    worker.rows.extend(rows)
    worker.since = time.monotonic()
    with contextlib.suppress(OSError):  # a dead process is found when its answer is taken
        worker.pipe.send(message)


def _take(worker: _Worker, episodes: Episodes, rows: list[Row]) -> None:
    try:
        row, answer = worker.pipe.recv(SECONDS_TO_ARRIVE)
        if row != worker.rows[0]:
            raise Garbled
    except (Garbled, TimeoutError) as error:
        raise EvergaitError(f"{_where(worker, episodes)} {SCRIBBLED}") from error
    except (EOFError, OSError) as error:
        code = worker.process.end(SECONDS_TO_EXIT)
        raise EvergaitError(f"{_where(worker, episodes)} ended its process (exit code {code})") from error
    if isinstance(answer, str):
        raise EvergaitError(f"{_where(worker, episodes)} failed: {answer}")
    worker.rows.popleft()
    worker.since = time.monotonic()
    if row != READY:
        rows[row] = Row(*answer)


def _here(episodes: Episodes) -> list[Row]:
    episode = Episode(episodes.task)
    try:
        return [episode.run(episodes, row) for row in range(len(episodes))]
    finally:
        episode.env.close()


def _joined(episodes: Episodes, rows: Sequence[Row]) -> Outcome:
    """Rows, in their order, as arrays."""
    n, n_observations = len(rows), episodes.network.n_observations
    sums = np.zeros((n, 2, n_observations) if episodes.gather_statistics else (0, 2, 0))
    for i, row in enumerate(rows):
        if row.sums is not None:
            sums[i] = row.sums
    returns, lengths, diverged = (np.array([row[k] for row in rows]) for k in range(3))
    seen = tuple(row.observations for row in rows if row.observations is not None)
    return Outcome(returns.astype(np.float64), lengths.astype(np.int32), diverged.astype(bool), sums, seen)


def _where(worker: _Worker, episodes: Episodes) -> str:
    row = worker.rows[0]
    what = "making the environment" if row == READY else f"the episode with seed {episodes.seed[row]}"
    return f"task {episodes.task.name!r}: {what}"


def _out_of_reach(task: Task) -> str:
    spec = gymnasium.registry.get(task.id)
    if spec is not None and getattr(spec.entry_point, "__module__", "") == "__main__":
        return (
            f"task {task.name!r}: its class is defined in the program itself, where the processes that simulate it "
            "cannot find it; move it to a file of its own and import that"
        )
    return ""


def _stop(workers: list[_Worker], patience: float = SECONDS_TO_EXIT) -> None:
    ending = [worker.process for worker in workers]
    workers.clear()  # first: whoever is interrupted while they end begins anew with others
    stop(ending, patience)
