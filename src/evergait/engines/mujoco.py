"""The reference engine: MuJoCo itself on `mujoco.batch`, bit for bit what Gymnasium's environments return."""

from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

from evergait.engines.base import Episodes, Outcome
from evergait.engines.mujoco_flight import Flight, Rows
from evergait.engines.mujoco_simulation import Simulation
from evergait.engines.mujoco_tasks import RULES
from evergait.names import nearest
from evergait.tasks import Task, make
from evergait.tasks.quiet import quiet
from evergait.tasks.variants import unsupported

N_SLOTS = 256
"""Episodes in flight: enough to hide NumPy's cost per step, few enough that their candidates' weights stay small."""
N_SIMULATIONS = 8
"""Simulations that an engine keeps ready for the next request."""


class MujocoEngine:
    """Simulates the eleven Gymnasium MuJoCo v5 environments on all threads."""

    name: ClassVar[str] = "mujoco"

    def __init__(self, n_slots: int = N_SLOTS) -> None:
        self._n_slots = n_slots
        self._idle: list[Simulation] = []

    def refuses(self, task: Task) -> str:
        """Why this engine cannot simulate the task, or an empty string if it can."""
        if task.id not in RULES:
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
        simulations = [self._simulation(episodes.task, n_slots, (n_threads + i) // n_flights) for i in range(n_flights)]
        flights = [Flight(simulation, rows, n_slots) for simulation in simulations]
        # MuJoCo need not say what a row says: that a candidate drove the physics to infinity.
        with quiet(), ThreadPoolExecutor(n_flights) as pool:
            runs = [pool.submit(flight.run) for flight in flights]
            try:
                for run in runs:
                    run.result()
            finally:
                rows.stopped = True  # after Ctrl-C or a flight's failure, the pool waits for one more step
        self._idle = (self._idle + simulations)[-N_SIMULATIONS:]
        return rows.outcome

    def close(self) -> None:
        """Give back threads and memory."""
        self._idle.clear()

    def _simulation(self, task: Task, n_slots: int, n_threads: int) -> Simulation:
        for i, idle in enumerate(self._idle):
            if (idle.task, idle.n_threads) == (task, n_threads) and idle.n_slots >= n_slots:
                return self._idle.pop(i)
        return Simulation(task, n_slots, n_threads)
