"""The reference engine: MuJoCo itself on `mujoco.batch`, bit for bit what Gymnasium's environments return."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np

from evergait import _native
from evergait.core.arrays import Float64, Int64
from evergait.core.errors import nearest
from evergait.core.random import OBSERVATION_NOISE, Noise
from evergait.engines.base import Episodes, Outcome
from evergait.engines.mujoco.simulation import Simulation
from evergait.engines.mujoco.tasks import RULES, rules_of
from evergait.tasks import Task, make
from evergait.tasks.base import unsupported
from evergait.tasks.quiet import quiet
from evergait.tasks.robot_file import is_robot_file

WEIGHTS_PER_THREAD = 3_000_000
NORMALS_PER_THREAD = 300_000
"""Work that is worth the start of another thread."""


class Rows:
    """The rows of a request, given out to flights, and what comes of them."""

    def __init__(self, episodes: Episodes) -> None:
        self.episodes = episodes
        n, n_observations = len(episodes), episodes.network.n_observations
        sums = np.zeros((n, 2, n_observations) if episodes.gather_statistics else (0, 2, 0))
        self.outcome = Outcome(np.zeros(n), np.zeros(n, np.int32), np.zeros(n, bool), sums)
        self.stopped = False
        """Whether the rest is no longer wanted."""
        self._next = 0
        self._lock = threading.Lock()

    def take(self, n: int) -> slice:
        """The next n rows, or as many as there are left."""
        with self._lock:
            begin, self._next = self._next, min(self._next + n, len(self.episodes))
            return slice(begin, self._next)


class Flight:
    """Rows in the slots of one simulation; a slot takes the next row when its episode ends."""

    def __init__(self, simulation: Simulation, rows: Rows, n_slots: int) -> None:
        self.simulation, self.rows, self.episodes = simulation, rows, rows.episodes
        self.limit = min(self.episodes.horizon or simulation.n_steps, simulation.n_steps)
        network = self.episodes.network
        self.packed = np.empty((n_slots, network.native.packed_size), np.float32)
        self.actions = np.zeros((n_slots, network.n_actions), np.float32)
        self.row = np.zeros(n_slots, np.int64)

    def run(self) -> None:
        """Step until there are no rows left."""
        slots = np.arange(len(self.row))
        self.simulation.scale_healthy_reward(self.episodes.healthy_bonus)
        self.simulation.keep(len(slots))
        with np.errstate(all="ignore"):  # a candidate may drive the physics to infinity
            self.simulation.keep(len(slots) - len(self.begin(slots)))
            while self.simulation.n and not self.rows.stopped:
                self.step()

    def step(self) -> None:
        """One step of every episode in flight."""
        simulation, episodes, outcome = self.simulation, self.episodes, self.rows.outcome
        network, n = episodes.network, simulation.n
        row, packed, actions = self.row[:n], self.packed[:n], self.actions[:n]
        seen = self.noisy(simulation.seen) if episodes.task.variant.observation_noise else simulation.seen
        if episodes.gather_statistics:
            outcome.statistics[row, 0] += seen
            outcome.statistics[row, 1] += seen * seen
        n_threads = self.threads_for(packed.size // WEIGHTS_PER_THREAD)
        _native.act(network.native, packed, seen, actions, n_threads)
        rewards, ended = simulation.advance(actions)
        outcome.returns[row] += rewards
        wild = ~np.isfinite(actions).all(axis=1)  # MuJoCo has taken zeros instead: not a step of this candidate
        bad = wild | simulation.diverged() | ~np.isfinite(rewards)
        ended |= bad | (simulation.elapsed[:n] >= self.limit)
        over = np.flatnonzero(ended)
        outcome.lengths[row[over]] = (simulation.elapsed[:n] - wild)[over]
        outcome.diverged[row[over]] = bad[over]
        outcome.returns[row[bad]] = np.nan
        self.close(self.begin(over))

    def begin(self, slots: Int64) -> Int64:
        """Start the next rows in some slots, then look at all; returns the slots for which there are no rows left."""
        episodes, rows = self.episodes, self.rows.take(len(slots))
        n_new = rows.stop - rows.start
        if n_new:
            new = slots[:n_new]
            self.row[new] = np.arange(rows.start, rows.stop)
            fresh = np.empty((n_new, self.packed.shape[1]), np.float32)
            n_threads = self.threads_for(fresh.size // NORMALS_PER_THREAD)
            _native.pack_candidates(episodes.rows(rows), fresh, n_threads)
            self.packed[new] = fresh
            self.simulation.restart(new.astype(np.int32), episodes.seed[rows])
        self.simulation.observe()
        return slots[n_new:]

    def close(self, gaps: Int64) -> None:
        """Bring the episodes that still run to the front."""
        if not len(gaps):
            return
        n_left = self.simulation.n - len(gaps)
        beyond = np.setdiff1d(np.arange(n_left, self.simulation.n), gaps)  # as many as there are gaps before the end
        targets = gaps[: len(beyond)]
        self.simulation.move(beyond, targets)
        self.row[targets], self.packed[targets] = self.row[beyond], self.packed[beyond]
        self.simulation.keep(n_left)

    def threads_for(self, n_useful: int) -> int:
        """How many threads to use where `n_useful` would have enough to do."""
        return max(1, min(self.simulation.n_threads, n_useful))

    def noisy(self, observations: Float64) -> Float64:
        """Observations with each row's own noise of this step."""
        noise = np.empty_like(observations)
        for slot, row in enumerate(self.row[: self.simulation.n]):
            stream = Noise(int(self.episodes.seed[row]), OBSERVATION_NOISE)
            noise[slot] = stream.normals(int(self.simulation.elapsed[slot]), 0, observations.shape[1])
        return observations + self.episodes.task.variant.observation_noise * noise


MOST_TASKS = 16
"""Whose environments are kept: compiling a model takes longer than many a request."""
N_SLOTS = 256
"""Episodes in flight: enough to hide NumPy's cost per step, few enough that their candidates' weights stay small."""


class MujocoEngine:
    """Simulates the eleven Gymnasium MuJoCo v5 environments on all threads."""

    name: ClassVar[str] = "mujoco"

    def __init__(self, n_slots: int = N_SLOTS) -> None:
        self._n_slots = n_slots
        self._idle: dict[Task, list[Any]] = {}
        """Environments that no simulation uses; what is drawn from them depends on the seed alone."""

    def refuses(self, task: Task) -> str:
        """Why this engine cannot simulate the task, or an empty string if it can."""
        if is_robot_file(task) and rules_of(task) is None:
            return f"task {task.name!r}: its reward is a Python function (mujoco engine; the gymnasium engine can)"
        if rules_of(task) is None:
            return f"task {task.name!r}: the mujoco engine does not know {task.id!r}{nearest(task.id, RULES)}"
        env = make(task)
        env.close()
        return unsupported(task, env)

    def run(self, episodes: Episodes, n_threads: int) -> Outcome:
        """Simulate every row, on at most `n_threads` threads."""
        rows, n = Rows(episodes), len(episodes)
        if not n:
            return rows.outcome
        # Two flights share the threads, so that one's policy and rewards are computed while the other's physics are.
        n_flights = min(2, n_threads, n)
        n_slots = min(-(-self._n_slots // n_flights), -(-n // n_flights))
        # Each has threads of its own, which end with the request: after it, the gradient needs the processors.
        flights = [
            Flight(self._simulation(episodes.task, n_slots, (n_threads + i) // n_flights), rows, n_slots)
            for i in range(n_flights)
        ]
        # MuJoCo need not say what a row says: that a candidate drove the physics to infinity.
        with quiet(), ThreadPoolExecutor(1) as pool:  # the first flight's thread is this one
            others = [pool.submit(flight.run) for flight in flights[1:]]
            try:
                flights[0].run()
                for other in others:
                    other.result()
            finally:
                rows.stopped = True  # after Ctrl-C or a flight's failure, the pool waits for one more step
        self._keep(episodes.task, [flight.simulation.environment for flight in flights])
        return rows.outcome

    def _simulation(self, task: Task, n_slots: int, n_threads: int) -> Simulation:
        try:
            environment = self._idle[task].pop()
        except LookupError:
            environment = None
        return Simulation(task, n_slots, n_threads, environment)

    def _keep(self, task: Task, environments: list[Any]) -> None:
        if is_robot_file(task):
            return  # its file may be another one by the next request
        if len(self._idle) >= MOST_TASKS:
            self._idle.clear()
        self._idle.setdefault(task, []).extend(environments)

    def close(self) -> None:
        """Let go of the environments."""
        self._idle.clear()
