"""Any Gymnasium environment with vector observations: one environment per process, results placed by row."""

import contextlib
import os
import pickle
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import ClassVar

import gymnasium
import numpy as np

from evergait.engines.base import Episodes, Limits, Outcome
from evergait.engines.gymnasium_episode import READY, act, pack, perceived, to_action
from evergait.policy import Network
from evergait.random import PERTURBATION, Noise
from evergait.tasks import Task, make, spaces
from evergait.tasks.variants import apply_to_environment, unsupported
from evergait.types import EvergaitError, Float32

SECONDS_TO_EXIT = 2.0
"""How long a process may take to leave by itself when asked to."""


@dataclass
class _Worker:
    """A process, our end of its pipe, and the rows that it has been given and not answered."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    lifeline: int
    rows: deque[int] = field(default_factory=deque)
    since: float = 0.0
    """When it began the first of them."""


class GymnasiumEngine:
    """Simulates any Gymnasium id with 1-D Box observations and Box or Discrete actions."""

    name: ClassVar[str] = "gymnasium"

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008 - a constant
        self.limits = limits
        self._workers: list[_Worker] = []
        weakref.finalize(self, _stop, self._workers)

    def refuses(self, task: Task) -> str:
        """Why this engine cannot simulate the task, or an empty string if it can."""
        try:
            spaces(task)
            env = make(task)
        except EvergaitError as error:
            return str(error)
        env.close()
        return unsupported(task, env)

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
            self._workers.append(_start())
        workers = self._workers[:n_workers]
        # Small chunks share the work evenly; rows in a chunk spare round trips.
        size = max(1, min(16, len(episodes) // (8 * max(n_workers, 1))))
        chunks = deque(range(low, min(low + size, len(episodes))) for low in range(0, len(episodes), size))
        request = episodes, _spec(episodes.task)
        for worker in workers:
            _give(worker, [READY], request)
        while busy := [worker for worker in workers if worker.rows]:
            patience = [worker.since + self._limit(worker)[1] - time.monotonic() for worker in busy]
            ready = wait([worker.pipe for worker in busy], max(0.0, min(patience)))
            for worker, left in zip(busy, patience, strict=True):
                if worker.pipe in ready:
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


def _spec(task: Task) -> bytes:
    """What the parent knows of the environment, or nothing: then the process must know it by itself."""
    try:
        return pickle.dumps(gymnasium.registry[task.id])
    except (KeyError, pickle.PicklingError, AttributeError, TypeError):
        return b""


def _start() -> _Worker:
    ours, theirs = Pipe()
    listening, lifeline = os.pipe()
    begin = "from evergait.engines.gymnasium_worker import main"
    code = f"import sys; sys.path[:] = {sys.path!r}; {begin}; main({theirs.fileno()}, {listening})"
    # One thread per process: the processes already fill the machine, and sums must not depend on how many there are.
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    process = subprocess.Popen(  # noqa: S603 - our own interpreter on our own module
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        pass_fds=(theirs.fileno(), listening),
        env={**os.environ, **threads},
        process_group=0,  # Ctrl-C is for the parent, which then ends us
    )
    theirs.close()
    os.close(listening)
    return _Worker(process, ours, lifeline)


def _give(worker: _Worker, rows: Iterable[int], message: object) -> None:
    worker.rows.extend(rows)
    worker.since = time.monotonic()
    with contextlib.suppress(OSError):  # a dead process is found when its answer is taken
        worker.pipe.send(message)


def _take(worker: _Worker, episodes: Episodes, outcome: Outcome) -> None:
    try:
        row, answer = worker.pipe.recv()
    except (EOFError, OSError) as error:
        code = worker.process.wait()
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
    for worker in workers:
        worker.pipe.close()
    deadline = time.monotonic() + patience
    for worker in workers:
        try:
            worker.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
        os.close(worker.lifeline)
    workers.clear()


def replay_in_gymnasium(network: Network, theta: Float32, task: Task, seed: int) -> tuple[float, int]:
    """Return and length of one unperturbed episode, by the obvious loop: the reference for every engine."""
    one = np.zeros(1, np.uint32)
    noise = Noise(0, PERTURBATION)
    packed = pack(Episodes(task, network, theta, 0.0, noise, one, np.zeros(1, np.float32), one), 0)
    env = make(task)
    apply_to_environment(task.variant, env)
    total, length, over = 0.0, 0, False
    observation, _ = env.reset(seed=seed)
    while not over:
        outputs = act(network, packed, perceived(task, observation, seed, length))
        observation, reward, terminated, truncated, _ = env.step(to_action(network, outputs))
        total += float(reward)
        length += 1
        over = terminated or truncated
    env.close()
    return total, length
