"""The reference engine: MuJoCo itself on `mujoco.batch`, bit for bit what Gymnasium's environments return."""

from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

from evergait.core.names import nearest
from evergait.engines.base import Episodes, Outcome
from evergait.engines.mujoco.flight import Flight, Rows
from evergait.engines.mujoco.simulation import Simulation
from evergait.engines.mujoco.tasks import RULES, rules_of
from evergait.tasks import Task, make
from evergait.tasks.quiet import quiet
from evergait.tasks.robot_file import is_robot_file
from evergait.tasks.variants import unsupported

N_SLOTS = 256
"""Episodes in flight: enough to hide NumPy's cost per step, few enough that their candidates' weights stay small."""


class MujocoEngine:
    """Simulates the eleven Gymnasium MuJoCo v5 environments on all threads."""

    name: ClassVar[str] = "mujoco"

    def __init__(self, n_slots: int = N_SLOTS) -> None:
        self._n_slots = n_slots

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
            Flight(Simulation(episodes.task, n_slots, (n_threads + i) // n_flights), rows, n_slots)
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
        return rows.outcome

    def close(self) -> None:
        """Nothing is kept between calls."""
