"""What a Ray cluster costs against threads of one process, and how that grows with the number of actors.

    python benchmarks/ray_overhead.py generation --run RUN               # Hopper, 768 episodes, 2 workers
    python benchmarks/ray_overhead.py growth --actors 1 2 4 8 16 32 64   # tiny tasks, where messages are all there is
    python benchmarks/ray_overhead.py model --cores 1000 --jobs 20       # a study on a cluster, from such figures

`generation`: local threads and Ray actors simulate the same request in turns, so a busy machine slows both alike;
figures are medians. CPU seconds are those of every process that takes part, Ray's own included: they say what it costs
even when others keep the machine busy. `growth`: every actor gets about four chunks of one row and one step, so a
request's time is that of its messages; the driver's CPU time per chunk is what will limit a large cluster.

`model` predicts a study's time on a cluster from figures that were measured on one machine; docs/scaling.md has both.
It deals out the rows of a generation with the very chunks that `evergait` uses: a worker takes rows · steps / speed
for its chunk, and the driver a fixed CPU time for each, one after the other. A generation ends with its last chunk,
then comes the gradient. Phases of one stage run side by side, as many as there are jobs, each on its share of the
cores; stages follow each other. The network is taken to be as fast as this machine's loopback: that is not measured.
"""

import argparse
import dataclasses
import heapq
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from evergait.core.random import PERTURBATION, RESET, Noise
from evergait.engines import Episodes
from evergait.policy import Policy, PolicyConfig
from evergait.studies.base import read_study
from evergait.studies.cells import Tree, study_cells
from evergait.tasks import Task
from evergait.training.run import Run
from evergait.workers import LocalWorkers, Ray
from evergait.workers.chunks import Chunks

TICKS = os.sysconf("SC_CLK_TCK")


def request(task: Task, n_rows: int, theta: np.ndarray | None, horizon: int = 0) -> Episodes:
    """A generation of the paper's policy."""
    policy = Policy.build(PolicyConfig(), [task])
    rows = np.arange(n_rows, dtype=np.uint32)
    return Episodes(
        task,
        policy.network(task),
        policy.initial(0) if theta is None else theta,
        0.05,
        Noise(0, PERTURBATION),
        pair=rows // 2,
        sign=np.where(rows % 2, -1.0, 1.0).astype(np.float32),
        seed=Noise(0, RESET).integers((n_rows + 1) // 2).repeat(2)[:n_rows],
        horizon=horizon,
    )


def family_seconds() -> float:
    """CPU seconds so far of this process and everything that descends from it."""
    parents, seconds = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            seconds[int(entry.name)] = (int(fields[11]) + int(fields[12])) / TICKS
    family = {os.getpid()}
    while grown := {process for process, parent in parents.items() if parent in family} - family:
        family |= grown
    return sum(seconds.get(process, 0.0) for process in family)


def timed(act: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    before, start = family_seconds(), time.perf_counter()
    act()
    wall = time.perf_counter() - start
    return wall, family_seconds() - before


def generation(options: argparse.Namespace) -> None:
    """Threads and actors in turns."""
    theta = Run.load(options.run).theta if options.run else None
    asked = request(Task(options.task), options.rows, theta)
    local = LocalWorkers(options.workers)
    cluster = Ray(smallest_chunk=options.smallest_chunk).start(options.workers)
    try:
        kinds = {"local": local, "ray": cluster}
        outcomes = {name: workers.run("planar", asked) for name, workers in kinds.items()}  # warms up
        assert np.array_equal(outcomes["local"].returns, outcomes["ray"].returns), "bits differ"
        before = cluster.traffic()
        walls, costs = {name: [] for name in kinds}, {name: [] for name in kinds}  # type: ignore[var-annotated]
        for repeat in range(options.repeats):
            for name in sorted(kinds, reverse=repeat % 2 == 1):
                wall, cost = timed(lambda workers=kinds[name]: workers.run("planar", asked))  # type: ignore[misc]
                walls[name].append(wall)
                costs[name].append(cost)
        after = cluster.traffic()
    finally:
        cluster.close()
    n_steps = int(outcomes["local"].lengths.sum())
    print(
        f"{options.task}: {options.rows} episodes, {n_steps} steps, "
        f"{options.repeats} repeats, load {os.getloadavg()[0]:.1f}"
    )
    for name in kinds:
        wall, cost = statistics.median(walls[name]), statistics.median(costs[name])
        print(f"{name:6} median {wall:.3f} s wall, {cost:.3f} s CPU, {n_steps / cost:,.0f} steps per CPU second")
    for what, values in (("wall", walls), ("CPU", costs)):
        ratios = [r / one for r, one in zip(values["ray"], values["local"], strict=True)]
        low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
        print(f"ray / local, {what}, pair by pair: median {middle:.3f}, quartiles {low:.3f} to {high:.3f}")
    n = options.repeats
    sent, received = after.n_bytes_sent - before.n_bytes_sent, after.n_bytes_received - before.n_bytes_received
    print(
        f"per generation: {(after.n_chunks - before.n_chunks) / n:.1f} chunks, "
        f"{sent / n:,.0f} bytes sent, {received / n:,.0f} received"
    )


def growth(options: argparse.Namespace) -> None:
    """More and more actors, each started once; Ray is told that this machine has as many processors."""
    most = max(options.actors)
    cluster = Ray(share=most, smallest_chunk=1, poll_seconds=0.5, start_seconds=600).start(most)
    crew = cluster.crew  # type: ignore[attr-defined]
    print(
        f"load {os.getloadavg()[0]:.1f}\nactors  chunks  ms/request (median)  driver CPU ms/chunk  bytes sent  received"
    )
    try:
        for n_actors in options.actors:
            crew.options = cluster.options = dataclasses.replace(crew.options, share=most // n_actors)  # type: ignore[attr-defined]
            deadline = time.monotonic() + 600
            while len(crew.ready) < n_actors and time.monotonic() < deadline:
                cluster.run("planar", request(Task("InvertedPendulum-v5"), 1, None, horizon=1))
                time.sleep(0.2)
            asked = request(Task("InvertedPendulum-v5"), 4 * n_actors, None, horizon=1)
            for _ in range(3):
                cluster.run("planar", asked)
            before, walls, cpu = cluster.traffic(), [], time.process_time()
            for _ in range(options.repeats):
                start = time.perf_counter()
                cluster.run("planar", asked)
                walls.append(time.perf_counter() - start)
            cpu, after, n = time.process_time() - cpu, cluster.traffic(), options.repeats
            chunks = after.n_chunks - before.n_chunks
            sent, received = after.n_bytes_sent - before.n_bytes_sent, after.n_bytes_received - before.n_bytes_received
            times = f"{1e3 * statistics.median(walls):19.1f}  {1e3 * cpu / chunks:19.2f}"
            bytes_ = f"{sent / n:10.0f}  {received / n:8.0f}"
            print(f"{len(crew.ready):6}  {chunks / n:6.0f}  {times}  {bytes_}", flush=True)
    finally:
        cluster.close()


def generation_seconds(n_rows: int, n_actors: int, options: argparse.Namespace) -> float:
    """From the request to the new θ."""
    smallest = Ray().smallest_chunk
    chunks = Chunks(n_rows, smallest, 0)
    free = [0.0] * n_actors
    driver = options.latency_ms / 1e3
    end = 0.0
    while chunk := chunks.take(options.actor_threads, options.actor_threads * n_actors):
        driver += options.driver_ms / 1e3
        start = max(heapq.heappop(free), driver)
        seconds = (chunk.end - chunk.begin) * options.steps / (options.speed * options.actor_threads)
        heapq.heappush(free, start + seconds)
        end = max(end, start + seconds)
    return end + options.gradient_ms / 1e3  # type: ignore[no-any-return]


def predict(options: argparse.Namespace) -> None:
    """Print the prediction, and what goes into it."""
    tree = Tree.build(study_cells(read_study(options.study)))
    config = next(iter(tree.nodes.values())).config
    n_rows = 2 * config.pairs * config.episodes
    counts: dict[int, int] = {}
    for node in tree.nodes.values():
        counts[node.phase.stage.index] = counts.get(node.phase.stage.index, 0) + 1
    n_actors = max(1, options.cores // options.jobs // options.actor_threads)
    one = generation_seconds(n_rows, n_actors, options)
    alone = n_rows * options.steps / options.speed / (n_actors * options.actor_threads)
    waves = {stage: -(-n // options.jobs) for stage, n in sorted(counts.items())}
    seconds = sum(waves.values()) * config.generations * one
    print(f"{options.study}: phases by stage {dict(sorted(counts.items()))}, waves of {options.jobs} jobs {waves}")
    print(f"{n_rows} episodes of {options.steps} steps on {n_actors} actors of {options.actor_threads} threads:")
    print(f"  {1e3 * one:.0f} ms per generation, {100 * alone / one:.0f} % of it simulating")
    print(f"  {config.generations} generations a phase: {seconds / 60:.0f} minutes in all, evaluations aside")


def main() -> None:
    """Print figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("generation")
    one.add_argument("--run", help="folder of a run whose policy is simulated; a fresh policy if not given")
    one.add_argument("--task", default="Hopper-v5")
    one.add_argument("--rows", type=int, default=768)
    one.add_argument("--workers", type=int, default=2)
    one.add_argument("--smallest-chunk", type=int, default=Ray().smallest_chunk)
    one.add_argument("--repeats", type=int, default=15)
    one.set_defaults(act=generation)
    many = commands.add_parser("growth")
    many.add_argument("--actors", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    many.add_argument("--repeats", type=int, default=20)
    many.set_defaults(act=growth)
    model = commands.add_parser("model")
    model.add_argument("--study", default="paper")
    model.add_argument("--cores", type=int, default=1000)
    model.add_argument("--jobs", type=int, default=20)
    model.add_argument("--actor-threads", type=int, default=1)
    model.add_argument("--steps", type=int, default=1000, help="steps per episode; the time limit is the worst case")
    model.add_argument("--speed", type=float, default=590_000.0, help="steps per second and core (measured)")
    model.add_argument("--driver-ms", type=float, default=0.8, help="driver's CPU time per chunk (measured)")
    model.add_argument("--latency-ms", type=float, default=7.0, help="an almost empty request (measured)")
    model.add_argument("--gradient-ms", type=float, default=9.0, help="noise regenerated and summed (measured)")
    model.set_defaults(act=predict)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
