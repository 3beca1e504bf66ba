"""Any Gymnasium environment with vector observations: one environment per process, results placed by row."""

import os
import pickle
import subprocess
import sys
import time
import weakref
from collections import deque
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import ClassVar

import gymnasium
import numpy as np

from evergait.engines.base import Episodes, Outcome
from evergait.engines.gymnasium_episode import act, hushed, pack, perceived, to_action
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
    """Simulates any Gymnasium id with 1-D Box observations and Box or Discrete actions.

    `timeout` is how many seconds one episode may take before its process is held to hang.
    """

    name: ClassVar[str] = "gymnasium"

    def __init__(self, timeout: float = 600.0) -> None:
        self._timeout = timeout
        self._workers: list[_Worker] = []
        weakref.finalize(self, _stop, self._workers)

    def refuses(self, task: Task) -> str:
        """Why this engine cannot simulate the task, or an empty string if it can."""
        try:
            spaces(task)
            with hushed(task):
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
            _send(worker, request)
            _give(worker, chunks)
        while busy := [worker for worker in workers if worker.rows]:
            ready = wait([worker.pipe for worker in busy], self._until_late(busy))
            for worker in busy:
                if worker.pipe in ready:
                    _take(worker, episodes, outcome)
                    if not worker.rows:
                        _give(worker, chunks)
                elif time.monotonic() - worker.since > self._timeout:
                    raise EvergaitError(
                        f"task {episodes.task.name!r}: the episode with seed {episodes.seed[worker.rows[0]]} has taken "
                        f"more than {self._timeout:g} s; the environment hangs, or needs a longer timeout"
                    )

    def _until_late(self, busy: list[_Worker]) -> float:
        return max(0.0, min(worker.since for worker in busy) + self._timeout - time.monotonic()) + 0.01


def _spec(task: Task) -> bytes:
    try:
        return pickle.dumps(gymnasium.registry.get(task.id))
    except (pickle.PicklingError, AttributeError, TypeError):  # made from a local function; the process may know it
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


def _send(worker: _Worker, message: object) -> None:
    try:
        worker.pipe.send(message)
    except OSError as error:
        raise _death(worker, "") from error


def _give(worker: _Worker, chunks: deque[range]) -> None:
    if chunks:
        worker.rows.extend(chunks[0])
        worker.since = time.monotonic()
        _send(worker, chunks.popleft())


def _take(worker: _Worker, episodes: Episodes, outcome: Outcome) -> None:
    seed = episodes.seed[worker.rows[0]]
    try:
        row, answer = worker.pipe.recv()
    except (EOFError, OSError) as error:
        raise _death(worker, f" in the episode of task {episodes.task.name!r} with seed {seed}") from error
    if isinstance(answer, str):
        raise EvergaitError(f"task {episodes.task.name!r}: the environment failed with seed {seed}: {answer}")
    worker.rows.popleft()
    worker.since = time.monotonic()
    outcome.returns[row], outcome.lengths[row], outcome.diverged[row], sums = answer
    if sums is not None:
        outcome.statistics[row] = sums


def _death(worker: _Worker, where: str) -> EvergaitError:
    code = worker.process.wait()
    return EvergaitError(f"a process of the gymnasium engine died{where} (exit code {code}); its output may say why")


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
    with hushed(task):
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
