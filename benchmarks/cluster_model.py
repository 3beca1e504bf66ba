"""Predicts a study's time on a cluster from figures that were measured on one machine; docs/scaling.md has both.

    python benchmarks/cluster_model.py --cores 1000 --jobs 20

The model deals out the rows of a generation with the very chunks that `evergait` uses: a worker takes
rows · steps / speed for its chunk, and the driver a fixed CPU time for each, one after the other. A generation ends
with its last chunk, then comes the gradient. Phases of one stage run side by side, as many as there are jobs, each on
its share of the cores; stages follow each other. The network is taken to be as fast as this machine's loopback: that is
not measured.
"""

import argparse
import heapq

from evergait.studies.base import read_study
from evergait.studies.cells import Tree, study_cells
from evergait.workers import Ray
from evergait.workers.chunks import Chunks


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


def main() -> None:
    """Print the prediction, and what goes into it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", default="paper")
    parser.add_argument("--cores", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--actor-threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1000, help="steps per episode; the time limit is the worst case")
    parser.add_argument("--speed", type=float, default=590_000.0, help="steps per second and core (measured)")
    parser.add_argument("--driver-ms", type=float, default=0.8, help="driver's CPU time per chunk (measured)")
    parser.add_argument("--latency-ms", type=float, default=7.0, help="an almost empty request (measured)")
    parser.add_argument("--gradient-ms", type=float, default=9.0, help="noise regenerated and summed (measured)")
    options = parser.parse_args()
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


if __name__ == "__main__":
    main()
