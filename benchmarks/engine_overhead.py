"""How much of raw `mujoco.batch` stepping the `mujoco` engine keeps.

    python benchmarks/engine_overhead.py --tasks Hopper-v5 Ant-v5 --threads 2 --rows 512 --horizon 100

A first run on one thread records the states and controls of every call of `Batch.step`. Then, in turns, the engine runs
the request and a bare `mujoco.batch.Batch` takes the recorded states through the same steps, on as many threads, with
only `Batch.step` timed. Both do the same physics; the engine also draws noise, runs the policy, observes, rewards and
resets. The figure is raw seconds / engine seconds, of each the fastest and in brackets of each turn: 1 would be no
overhead at all. Where other work shares the machine, waiting for a late thread blurs it; the same ratio of CPU seconds,
over all threads, is printed beside it and is not blurred.
"""

import argparse
import itertools
import time
from dataclasses import replace

import numpy as np
from mujoco.batch import Batch

from evergait.core.random import PERTURBATION, Noise
from evergait.engines.base import Episodes
from evergait.engines.mujoco.engine import N_SLOTS, Flight, MujocoEngine, Rows
from evergait.engines.mujoco.simulation import Simulation
from evergait.engines.mujoco.tasks import RULES
from evergait.policy import ActiveLayer, Network
from evergait.tasks import Task, spaces
from evergait.tasks.quiet import quiet
from evergait.workers.bench import generation, survivor


def request(task: Task, n_rows: int, horizon: int, width: int) -> Episodes:
    """A generation of candidates of the paper's policy."""
    known = spaces(task)
    sizes = [known.n_observations, width, width, known.n_actions]
    layers, offset = [], 0
    for (n_in, n_out), activation in zip(itertools.pairwise(sizes), ("linear", "relu", "tanh"), strict=True):
        layers.append(ActiveLayer(offset, offset + n_in * n_out, n_in, n_out, activation))  # type: ignore[arg-type]
        offset += (n_in + 1) * n_out
    network = Network(tuple(layers), known.action_middle, known.action_half_range)
    theta = 0.05 * np.random.default_rng(0).standard_normal(offset).astype(np.float32)
    rows = np.arange(n_rows, dtype=np.uint32)
    sign = np.where(rows % 2, -1.0, 1.0).astype(np.float32)
    return Episodes(task, network, theta, 0.05, Noise(0, PERTURBATION), rows // 2, sign, rows, horizon)


class Recorder:
    """Stands in for a simulation's batch and keeps the states before every step."""

    def __init__(self, batch: Batch) -> None:
        self.batch, self.states = batch, []  # type: ignore[var-annotated]

    def __getattr__(self, name: str) -> object:
        return getattr(self.batch, name)

    def step(self, ids: np.ndarray | None, nstep: int) -> None:
        """Keep the states of the slots that run, then step."""
        self.states.append(self.batch.state[: len(self.batch.state) if ids is None else len(ids)].copy())
        self.batch.step(ids, nstep)


def clocks() -> np.ndarray:
    """Wall and CPU seconds, of all threads."""
    return np.array([time.perf_counter(), time.process_time()])


def raw_seconds(batch: Batch, frame_skip: int, states: list[np.ndarray]) -> np.ndarray:
    """Wall and CPU seconds of `Batch.step` alone over recorded states."""
    seconds = np.zeros(2)
    for state in states:
        batch.state[: len(state)] = state
        ids = None if len(state) == batch.nsim else np.arange(len(state), dtype=np.int32)
        start = clocks()
        batch.step(ids, frame_skip)
        seconds += clocks() - start
    return seconds


def measure(task: Task, options: argparse.Namespace) -> str:
    """One line on one task."""
    if options.survivors:
        theta = survivor(task, options.threads)
        episodes = replace(generation(task, theta, options.rows, index=1), horizon=options.horizon)
    else:
        episodes = request(task, options.rows, options.horizon, options.width)
    engine = MujocoEngine(options.slots)
    rows, simulation = Rows(episodes), Simulation(task, options.slots, 1)
    recorder = simulation._batch = Recorder(simulation._batch)
    Flight(simulation, rows, options.slots).run()
    n_steps = int(rows.outcome.lengths.sum())
    assert sum(map(len, recorder.states)) == n_steps
    bare = Batch(simulation._env.model, simulation.n_slots, options.threads)
    raw, whole = [], []
    for _ in range(options.repeats):
        start = clocks()
        engine.run(episodes, options.threads)
        whole.append(clocks() - start)
        raw.append(raw_seconds(bare, simulation._env.frame_skip, recorder.states))
    turns = " ".join(f"{ratio:.3f}" for ratio in np.array(raw)[:, 0] / np.array(whole)[:, 0])
    (wall, cpu), fastest = np.min(raw, axis=0) / np.min(whole, axis=0), np.min(whole, axis=0)[0]
    return f"{n_steps:8} steps {n_steps / fastest:8.0f} steps/s, {wall:.3f} of raw ({turns}), {cpu:.3f} by CPU"


def main() -> None:
    """Print one line per task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(RULES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--horizon", type=int, default=100)
    parser.add_argument("--slots", type=int, default=N_SLOTS)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--survivors", action="store_true", help="candidates around a policy that does not fall at once"
    )
    options = parser.parse_args()
    for name in options.tasks:
        with quiet():  # compiling some models warns
            line = measure(Task(name), options)
        print(f"{name:26} {line}", flush=True)


if __name__ == "__main__":
    main()
