"""How much of raw `mujoco.batch` stepping the `mujoco` engine keeps, policy, rewards, resets and all.

    python benchmarks/engine_overhead.py --tasks Hopper-v5 Ant-v5 --threads 2 --rows 512 --horizon 200

Right after every step of the engine, a bare `mujoco.batch.Batch` takes the same states and controls through the same
step on as many threads, and only its `step` call is timed. So both do the same physics, interleaved step by step, and
a busy machine slows both alike. The figure is raw seconds / engine seconds: 1 would be no overhead at all.
"""

import argparse
import itertools
import statistics
import time

import numpy as np
from mujoco.batch import Batch

from evergait.engines.base import Episodes, Network
from evergait.engines.mujoco import N_SLOTS, MujocoEngine
from evergait.engines.mujoco_library import quiet
from evergait.engines.mujoco_simulation import Simulation
from evergait.engines.mujoco_tasks import RULES
from evergait.random import PERTURBATION, Noise
from evergait.tasks import Task, spaces

LINEAR, RELU, TANH = 0, 1, 2


def request(task: Task, n_rows: int, horizon: int, width: int) -> Episodes:
    """A generation of candidates of the paper's policy."""
    known = spaces(task)
    sizes = [known.n_observations, width, width, known.n_actions]
    layers, offset = [], 0
    for (n_in, n_out), activation in zip(itertools.pairwise(sizes), (LINEAR, RELU, TANH), strict=True):
        layers.append((offset, offset + n_in * n_out, n_in, n_out, activation))
        offset += (n_in + 1) * n_out
    network = Network(np.array(layers, np.int64), known.action_middle, known.action_half_range)
    theta = 0.05 * np.random.default_rng(0).standard_normal(offset).astype(np.float32)
    rows = np.arange(n_rows, dtype=np.uint32)
    sign = np.where(rows % 2, -1.0, 1.0).astype(np.float32)
    return Episodes(task, network, theta, 0.05, Noise(0, PERTURBATION), rows // 2, sign, rows, horizon)


class Interleaved:
    """Wraps a simulation's batch: every step is repeated, timed, by a bare batch."""

    def __init__(self, simulation: Simulation) -> None:
        self.batch, self.seconds, self.extra = simulation._batch, 0.0, 0.0
        self.raw = Batch(simulation._env.model, simulation.n_slots, simulation.n_threads)
        simulation._batch = self

    def __getattr__(self, name: str) -> object:
        return getattr(self.batch, name)

    def step(self, ids: object, nstep: int) -> None:
        """Step the engine's batch, then the bare one from the same states."""
        before = time.perf_counter()
        self.raw.state[:] = self.batch.state
        start = time.perf_counter()
        self.raw.step(ids, nstep)
        after = time.perf_counter()
        self.seconds += after - start
        self.extra += after - before
        self.batch.step(ids, nstep)


def main() -> None:
    """Print one line per task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(RULES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--horizon", type=int, default=100)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for name in options.tasks:
        task = Task(name)
        episodes = request(task, options.rows, options.horizon, options.width)
        engine = MujocoEngine()
        with quiet():
            engine.run(episodes.rows(slice(0, N_SLOTS)), options.threads)  # makes the simulation and warms it up
        ratios, n_steps = [], 0
        for _ in range(options.repeats):
            simulation = engine._simulations[0]
            timer = Interleaved(simulation)
            start = time.perf_counter()
            n_steps = int(engine.run(episodes, options.threads).lengths.sum())
            seconds = time.perf_counter() - start - timer.extra
            simulation._batch = timer.batch
            ratios.append(timer.seconds / seconds)
        spread = " ".join(f"{ratio:.3f}" for ratio in ratios)
        rate = n_steps / seconds
        print(f"{name:28} {n_steps:8} steps {rate:9.0f} steps/s, of raw {statistics.median(ratios):.3f} ({spread})")


if __name__ == "__main__":
    main()
