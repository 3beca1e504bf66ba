"""The reference engine: MuJoCo itself on `mujoco.batch`, bit for bit what Gymnasium's environments return."""

from typing import ClassVar

import numpy as np

from evergait import _native
from evergait.engines.base import Episodes, Outcome
from evergait.engines.mujoco_simulation import Simulation
from evergait.engines.mujoco_tasks import RULES
from evergait.names import nearest
from evergait.random import OBSERVATION_NOISE, Noise
from evergait.tasks import Task, make
from evergait.tasks.quiet import quiet
from evergait.tasks.variants import unsupported
from evergait.types import Float64, Int64

N_SLOTS = 256
"""Episodes in flight: enough to hide NumPy's cost per step, few enough that their candidates' weights stay small."""
N_SIMULATIONS = 8
"""Simulations (task, threads) that an engine keeps ready."""

WEIGHTS_PER_THREAD = 3_000_000
NORMALS_PER_THREAD = 300_000
"""Work that is worth the start of another thread, about half a millisecond of it."""


class MujocoEngine:
    """Simulates the eleven Gymnasium MuJoCo v5 environments on all threads."""

    name: ClassVar[str] = "mujoco"

    def __init__(self, n_slots: int = N_SLOTS) -> None:
        self._n_slots = n_slots
        self._simulations: list[Simulation] = []

    def refuses(self, task: Task) -> str:
        """Why this engine cannot simulate the task, or an empty string if it can."""
        if task.id not in RULES:
            return f"task {task.name!r}: the mujoco engine does not know {task.id!r}{nearest(task.id, RULES)}"
        env = make(task)
        env.close()
        return unsupported(task, env)

    def run(self, episodes: Episodes, n_threads: int) -> Outcome:
        """Simulate every row, on at most `n_threads` threads."""
        if not len(episodes):
            return Outcome(np.zeros(0), np.zeros(0, np.int32), np.zeros(0, bool))
        n_slots = min(self._n_slots, len(episodes))
        simulation = self._simulation(episodes.task, n_slots, n_threads)
        simulation.scale_healthy_reward(episodes.healthy_bonus)
        # A candidate may drive the physics to infinity; its row says so, and nothing else should.
        with quiet(), np.errstate(all="ignore"):
            return _Flight(simulation, episodes, n_slots, n_threads).run()

    def close(self) -> None:
        """Give back threads and memory."""
        self._simulations.clear()

    def _simulation(self, task: Task, n_slots: int, n_threads: int) -> Simulation:
        for simulation in self._simulations:
            if (simulation.task, simulation.n_threads) == (task, n_threads) and simulation.n_slots >= n_slots:
                return simulation
        del self._simulations[: len(self._simulations) - N_SIMULATIONS + 1]
        self._simulations.append(Simulation(task, n_slots, n_threads))
        return self._simulations[-1]


class _Flight:
    """Some rows of a request in the slots of a simulation; a slot takes the next row when its episode ends."""

    def __init__(self, simulation: Simulation, episodes: Episodes, n_slots: int, n_threads: int) -> None:
        self.simulation, self.episodes, self.n_threads = simulation, episodes, n_threads
        self.limit = min(episodes.horizon or simulation.n_steps, simulation.n_steps)
        n, network = len(episodes), episodes.network
        self.returns, self.lengths, self.diverged = np.zeros(n), np.zeros(n, np.int32), np.zeros(n, bool)
        self.sums = np.zeros((n, 2, network.n_observations) if episodes.gather_statistics else (0, 2, 0))
        self.packed = np.empty((n_slots, _native.packed_size(network.layers)), np.float32)
        self.actions = np.zeros((n_slots, network.n_actions), np.float32)
        self.row = np.zeros(n_slots, np.int64)
        self.next_row = 0
        simulation.keep(n_slots)
        self.begin(np.arange(n_slots))
        simulation.observe()

    def run(self) -> Outcome:
        """Step until every row is done."""
        while self.simulation.n:
            self.step()
        self.returns[self.diverged] = np.nan
        return Outcome(self.returns, self.lengths, self.diverged, self.sums)

    def step(self) -> None:
        """One step of every episode in flight."""
        simulation, episodes = self.simulation, self.episodes
        network, n = episodes.network, simulation.n
        row, packed, actions = self.row[:n], self.packed[:n], self.actions[:n]
        seen = self.noisy(simulation.seen) if episodes.task.variant.observation_noise else simulation.seen
        if episodes.gather_statistics:
            self.sums[row, 0] += seen
            self.sums[row, 1] += seen * seen
        around = network.action_middle, network.action_half_range, network.mean, network.scale
        _native.act(
            network.layers, *around, packed, seen, actions, self._threads_for(packed.size // WEIGHTS_PER_THREAD)
        )
        rewards, ended = simulation.advance(actions)
        self.returns[row] += rewards
        wild = ~np.isfinite(actions).all(axis=1)  # MuJoCo has taken zeros instead: not a step of this candidate
        bad = wild | simulation.diverged() | ~np.isfinite(rewards)
        ended |= bad | (simulation.elapsed[:n] >= self.limit)
        over = np.flatnonzero(ended)
        self.lengths[row[over]] = (simulation.elapsed[:n] - wild)[over]
        self.diverged[row[over]] = bad[over]
        n_new = min(len(over), len(episodes) - self.next_row)
        self.begin(over[:n_new])
        simulation.observe()
        self.close_gaps(over[n_new:])

    def close_gaps(self, gaps: Int64) -> None:
        """Bring the episodes still running to the front, when there are no more rows for some slots."""
        if not len(gaps):
            return
        n_left = self.simulation.n - len(gaps)
        beyond = np.setdiff1d(np.arange(n_left, self.simulation.n), gaps)  # as many as there are gaps before the end
        targets = gaps[: len(beyond)]
        self.simulation.move(beyond, targets)
        self.row[targets], self.packed[targets] = self.row[beyond], self.packed[beyond]
        self.simulation.keep(n_left)

    def begin(self, slots: Int64) -> None:
        """Start the next rows in some slots."""
        if not len(slots):
            return
        episodes = self.episodes
        rows = slice(self.next_row, self.next_row + len(slots))
        self.next_row = rows.stop
        self.row[slots] = np.arange(rows.start, rows.stop)
        fresh = np.empty((len(slots), self.packed.shape[1]), np.float32)
        candidates = *episodes.noise.words, episodes.pair[rows], episodes.sign[rows]
        layers, theta, sigma = episodes.network.layers, episodes.theta, episodes.sigma
        n_threads = self._threads_for(fresh.size // NORMALS_PER_THREAD)
        _native.pack_candidates(layers, theta, sigma, *candidates, fresh, n_threads)
        self.packed[slots] = fresh
        self.simulation.restart(slots.astype(np.int32), episodes.seed[rows])

    def _threads_for(self, n_useful: int) -> int:
        return max(1, min(self.n_threads, n_useful))

    def noisy(self, observations: Float64) -> Float64:
        """Observations with each row's own noise of this step."""
        noise = np.empty_like(observations)
        for slot, row in enumerate(self.row[: self.simulation.n]):
            stream = Noise(int(self.episodes.seed[row]), OBSERVATION_NOISE)
            noise[slot] = stream.normals(int(self.simulation.elapsed[slot]), 0, observations.shape[1])
        return observations + self.episodes.task.variant.observation_noise * noise
