"""How much of raw `mujoco.batch` stepping the `mujoco` engine keeps, policy, rewards, resets and all.

    python benchmarks/engine_overhead.py --tasks Hopper-v5 Ant-v5 --threads 2 --rows 512 --horizon 200

Right after every step of the engine, a bare `mujoco.batch.Batch` takes the same states and controls through the same
step on as many threads, and only its `step` call is timed. So both do the same physics, interleaved step by step. Runs
are repeated, bit for bit, and of every step the fastest raw and the fastest engine time are kept, since the machine may
have other work. The figure is the sum of raw seconds / the sum of engine seconds: 1 would be no overhead at all. Engine
seconds hold everything: noise, policy, physics, observations, rewards, resets.

On a machine with other work, even the fastest of some repeats may say little; hence the second figure, from CPU time:
raw / threads over raw / threads + all else, as if all else ran on one thread while the other threads wait.
"""

import argparse
import itertools
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
        self.batch = simulation._batch
        self.raw = Batch(simulation._env.model, simulation.n_slots, simulation.n_threads)
        self.raw_cpu, self.copy_cpu = 0.0, 0.0
        self.raw_seconds: list[float] = []
        self.engine_seconds: list[float] = []
        """From the end of one step to the end of the next, without the raw step."""
        simulation._batch = self
        self.last = time.perf_counter()

    def __getattr__(self, name: str) -> object:
        return getattr(self.batch, name)

    def step(self, ids: object, nstep: int) -> None:
        """Step the bare batch from the engine's states, then the engine's own."""
        arrived = time.perf_counter()
        cpu = time.process_time()
        self.raw.state[:] = self.batch.state
        self.copy_cpu += time.process_time() - cpu
        cpu = time.process_time()
        start = time.perf_counter()
        self.raw.step(ids, nstep)
        end = time.perf_counter()
        self.raw_cpu += time.process_time() - cpu
        self.raw_seconds.append(end - start)
        self.batch.step(ids, nstep)
        stepped = time.perf_counter()
        self.engine_seconds.append(stepped - end + arrived - self.last)
        self.last = stepped

    def stop(self, simulation: Simulation) -> tuple[list[float], list[float]]:
        """Count what came after the last step, too."""
        self.engine_seconds.append(time.perf_counter() - self.last)
        simulation._batch = self.batch
        return self.raw_seconds, self.engine_seconds


def main() -> None:
    """Print one line per task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(RULES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--horizon", type=int, default=100)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    for name in options.tasks:
        task = Task(name)
        episodes = request(task, options.rows, options.horizon, options.width)
        engine = MujocoEngine()
        with quiet():  # compiling some models warns
            engine.run(episodes.rows(slice(0, N_SLOTS)), options.threads)  # makes the simulation and warms it up
        raw, whole, cpu_ratios, n_steps = [], [], [], 0
        for _ in range(options.repeats):
            simulation = engine._simulations[0]
            timer = Interleaved(simulation)
            cpu = time.process_time()
            n_steps = int(engine.run(episodes, options.threads).lengths.sum())
            rest = time.process_time() - cpu - timer.copy_cpu - 2 * timer.raw_cpu
            physics = timer.raw_cpu / options.threads
            cpu_ratios.append(physics / (physics + rest))
            raw_seconds, engine_seconds = timer.stop(simulation)
            raw.append(raw_seconds)
            whole.append(engine_seconds)
        seconds = np.min(whole, axis=0).sum()
        ratio = np.min(raw, axis=0).sum() / seconds
        print(
            f"{name:26} {n_steps:8} steps {n_steps / seconds:8.0f} steps/s, {ratio:.3f} of raw, "
            f"{np.median(cpu_ratios):.3f} by CPU time",
            flush=True,
        )


if __name__ == "__main__":
    main()
