"""Any Gymnasium environment with vector observations: one environment per process, results placed by row."""

import contextlib
import time
import weakref
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import ClassVar

import numpy as np

from evergait.core.arrays import Float32
from evergait.core.errors import EvergaitError
from evergait.core.random import PERTURBATION, Noise
from evergait.engines.base import Episodes, Outcome
from evergait.engines.gymnasium.episode import READY, act, pack, perceived, rewarded, to_action
from evergait.policy import Network
from evergait.tasks import Task, make, refusal
from evergait.tasks.channel import Channel, Garbled
from evergait.tasks.process import SCRIBBLED, SECONDS_TO_EXIT, Limits, Process, spec_of, stop
from evergait.tasks.variants import apply_to_environment

SECONDS_TO_ARRIVE = 10.0
"""From the first byte of an answer to its last: what comes slower is not one of ours."""


@dataclass
class _Worker:
    """A process and the rows that it has been given and not answered."""

    process: Process = field(default_factory=lambda: Process.start("evergait.engines.gymnasium.worker"))
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
        self._workers: list[_Worker] = []
        weakref.finalize(self, _stop, self._workers)

    def refuses(self, task: Task) -> str:
        """Why this engine cannot simulate the task, or an empty string if it can."""
        return refusal(task)

    def run(self, episodes: Episodes, n_threads: int) -> Outcome:
        """Simulate every row, on at most `n_threads` processes."""
        n = len(episodes)
        shape = (n, 2, episodes.network.n_observations) if episodes.gather_statistics else (0, 2, 0)
        outcome = Outcome(np.zeros(n), np.zeros(n, np.int32), np.zeros(n, bool), np.zeros(shape))
        # An environment that raises or hangs, or Ctrl-C, leaves processes at work on rows that nobody wants.
        try:
            self._run(episodes, min(n_threads, n), outcome)
        except BaseException:
            _stop(self._workers, patience=0.0)
            raise
        return outcome

    def close(self) -> None:
        """End the processes."""
        _stop(self._workers)

    def _run(self, episodes: Episodes, n_workers: int, outcome: Outcome) -> None:
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
                    _take(worker, episodes, outcome)
                    if not worker.rows and chunks:
                        _give(worker, chunks[0], chunks.popleft())
                elif left <= 0:
                    setting, seconds = self._limit(worker)
                    raise EvergaitError(
                        f"{_where(worker, episodes)} has taken more than {seconds:g} s; "
                        f"the environment hangs, or needs a longer --workers.{setting}"
                    )

    def _limit(self, worker: _Worker) -> tuple[str, float]:
        is_made = worker.rows[0] != READY
        return ("episode-seconds", self.limits.episode) if is_made else ("making-seconds", self.limits.making)


def _give(worker: _Worker, rows: Iterable[int], message: object) -> None:
    worker.rows.extend(rows)
    worker.since = time.monotonic()
    with contextlib.suppress(OSError):  # a dead process is found when its answer is taken
        worker.pipe.send(message)


def _take(worker: _Worker, episodes: Episodes, outcome: Outcome) -> None:
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
        outcome.returns[row], outcome.lengths[row], outcome.diverged[row], sums = answer
        if sums is not None:
            outcome.statistics[row] = sums


def _where(worker: _Worker, episodes: Episodes) -> str:
    row = worker.rows[0]
    what = "making the environment" if row == READY else f"the episode with seed {episodes.seed[row]}"
    return f"task {episodes.task.name!r}: {what}"


def _stop(workers: list[_Worker], patience: float = SECONDS_TO_EXIT) -> None:
    stop([worker.process for worker in workers], patience)
    workers.clear()


def replay_in_gymnasium(network: Network, theta: Float32, task: Task, seed: int, horizon: int = 0) -> tuple[float, int]:
    """Return and length of one unperturbed episode, by the obvious loop: the reference for every engine."""
    one = np.zeros(1, np.uint32)
    noise = Noise(0, PERTURBATION)
    packed = pack(Episodes(task, network, theta, 0.0, noise, one, np.zeros(1, np.float32), one), 0)
    env = make(task)
    apply_to_environment(task.variant, env)
    total, length, over = 0.0, 0, False
    observation, _ = env.reset(seed=seed)
    while not over:
        outputs = act(network, packed, perceived(task, observation, seed, length, network.n_observations))
        observation, reward, terminated, truncated, _ = env.step(to_action(network, outputs))
        total += rewarded(reward)
        length += 1
        over = terminated or truncated or length == horizon
    env.close()
    return total, length
