"""The planar engine: MuJoCo's physics for planar robots, vectorised across candidates, whole episodes in native code.

It computes what MuJoCo computes, to rounding, and refuses by name what it cannot; see docs/physics.md for the evidence.
"""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evergait import _native
from evergait.core.arrays import Float32, Float64, Int32
from evergait.core.errors import EvergaitError
from evergait.core.random import OBSERVATION_NOISE
from evergait.engines.base import Episodes, Outcome
from evergait.engines.planar.model import PlanarModel
from evergait.engines.planar.robot import compile_robot
from evergait.tasks import Task
from evergait.tasks.base import as_task


def supports(task: Task | str) -> bool:
    """Whether the planar engine can simulate a task."""
    return not PlanarEngine().refuses(as_task(task))


def step(
    task: Task | str, qpos: Float64, qvel: Float64, action: Float64, n_steps: int = 1, n_threads: int = 1
) -> tuple[Float64, Float64]:
    """Advance n robots by environment steps under constant actions: (n, nq), (n, nv), (n, nu) to new (qpos, qvel)."""
    robot = compile_robot(as_task(task))
    if n_steps < 0:
        raise EvergaitError(f"n_steps: is {n_steps}; it must be at least 0")
    return step_model(robot.model, qpos, qvel, action, n_steps * robot.rules.n_frames, n_threads)


def step_model(
    model: PlanarModel,
    qpos: Float64,
    qvel: Float64,
    control: Float64,
    n_frames: int = 1,
    n_threads: int = 1,
    n_lanes: int = 0,
    any_tree: bool = False,
) -> tuple[Float64, Float64]:
    """Advance n robots of any compiled model by MuJoCo steps; the last two arguments change no bit."""
    arrays = [np.array(x, np.float64, order="C") for x in (qpos, qvel, control)]
    widths = model.n_dofs, model.n_dofs, model.n_actuators
    for name, array, width in zip(("qpos", "qvel", "action"), arrays, widths, strict=True):
        if array.shape != (*arrays[0].shape[:1], width):
            raise EvergaitError(
                f"{name}: its shape is {array.shape}; it must be (n, {width}) with the same n everywhere"
            )
    for name, number, least in (("n_frames", n_frames, 0), ("n_threads", n_threads, 1)):
        if number < least:
            raise EvergaitError(f"{name}: is {number}; it must be at least {least}")
    position, velocity, forces = arrays
    _native.planar_step(model.description, position, velocity, forces, n_frames, n_threads, n_lanes, any_tree)
    return position, velocity


@dataclass(frozen=True)
class Flight:
    """What the native core is given to simulate, and where it writes; it reads every field by its name."""

    description: Float64
    """Of the robot."""
    rules: Float64
    episodes: Episodes
    position: Float64
    """(n, n_dofs) initial states, as are velocities."""
    velocity: Float64
    limit: int
    """Steps after which an episode ends."""
    returns: Float64
    lengths: Int32
    diverged: NDArray[np.uint8]
    sums: Float64 | None
    """(n, 2, n_observations) sums and sums of squares, or nowhere."""
    trace: Float64 | None
    """(n, limit + 1, n_dofs) positions, or nowhere."""
    n_threads: int
    n_lanes: int
    any_tree: bool
    thetas: Float32 | None = None
    """One θ per pair, (n_pairs, n_parameters), in place of the request's."""
    noise_purpose: int = OBSERVATION_NOISE


class PlanarEngine:
    """Simulates Gymnasium's planar robots, one candidate per lane of a vector register."""

    name: ClassVar[str] = "planar"

    def __init__(self, n_lanes: int = 0, any_tree: bool = False) -> None:
        # Neither changes any bit: lanes per vector (0: what a register holds); whether to forgo specialised code.
        self._n_lanes, self._any_tree = n_lanes, any_tree

    def refuses(self, task: Task) -> str:
        """Why this engine cannot simulate the task, or an empty string if it can."""
        try:
            compile_robot(task)
        except EvergaitError as error:
            return f"task {task.name!r}: {error} (planar engine; the mujoco engine may)"
        return ""

    def run(self, episodes: Episodes, n_threads: int) -> Outcome:
        """Simulate every row, on at most `n_threads` threads."""
        outcome, _ = self._run(episodes, n_threads, record=False)
        return outcome

    def run_each(
        self, episodes: Episodes, thetas: Float32, n_threads: int, record: bool = False
    ) -> tuple[Outcome, Float64]:
        """Simulate every row with the θ that its pair names; positions (n, limit + 1, nq) if they are asked for."""
        return self._run(episodes, n_threads, record, thetas)

    def record(self, episodes: Episodes) -> tuple[Outcome, list[Float64]]:
        """Simulate every row and keep its positions: per row (length + 1, nq)."""
        outcome, trace = self._run(episodes, 1, record=True)
        return outcome, [row[: length + 1] for row, length in zip(trace, outcome.lengths.tolist(), strict=True)]

    def close(self) -> None:
        """Nothing is kept between calls."""

    def _run(
        self, episodes: Episodes, n_threads: int, record: bool, thetas: Float32 | None = None
    ) -> tuple[Outcome, Float64]:
        flight = dataclasses.replace(self.flight(episodes, n_threads, record), thetas=thetas)
        _native.planar_episodes(flight)
        none = np.zeros((0, 2, 0))
        statistics = none if flight.sums is None else flight.sums
        trace = none if flight.trace is None else flight.trace
        return Outcome(flight.returns, flight.lengths, flight.diverged.astype(bool), statistics), trace

    def flight(self, episodes: Episodes, n_threads: int, record: bool = False) -> Flight:
        """What the native core needs for every row."""
        robot, n = compile_robot(episodes.task), len(episodes)
        limit = min(episodes.horizon or robot.n_steps, robot.n_steps)
        position, velocity = robot.initial_states(episodes.seed)
        return Flight(
            robot.model.description,
            robot.rules.flat(episodes.healthy_bonus),
            episodes,
            position,
            velocity,
            limit,
            returns=np.zeros(n),
            lengths=np.zeros(n, np.int32),
            diverged=np.zeros(n, np.uint8),
            sums=np.zeros((n, 2, episodes.network.n_observations)) if episodes.gather_statistics else None,
            trace=np.zeros((n, limit + 1, robot.model.n_dofs)) if record else None,
            n_threads=n_threads,
            n_lanes=self._n_lanes,
            any_tree=self._any_tree,
        )
