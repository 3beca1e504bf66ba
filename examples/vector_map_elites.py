"""MAP-Elites (pyribs) on Walker2d: one policy for every way of walking that is found, drawn as a map.

A gait is told by how far each thigh swings. Needs `pip install ribs`.

python examples/vector_map_elites.py [--iterations 300] [--batch 200] [--threads 2] [--seed 1] [--picture gaits.png]
"""

import argparse
import time

import matplotlib as mpl
import numpy as np
from ribs.archives import GridArchive
from ribs.emitters import EvolutionStrategyEmitter
from ribs.schedulers import Scheduler

from evergait import vector

mpl.use("agg")
from matplotlib import pyplot as plt

TASK, THIGHS = "Walker2d-v5", (3, 6)


def swing(outcome: vector.Rollouts) -> np.ndarray:
    """(n, 2) standard deviation of both thighs' angles over an episode."""
    angles = outcome.positions[:, 0][:, :, THIGHS]
    lived = np.arange(angles.shape[1]) <= outcome.lengths[:, :1]
    weight = (lived / lived.sum(axis=1, keepdims=True))[..., np.newaxis]
    mean = (angles * weight).sum(axis=1, keepdims=True)
    return np.sqrt(((angles - mean) ** 2 * weight).sum(axis=1))


def main() -> None:
    """Search, print how the map fills, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--picture", default="gaits.png")
    arguments = parser.parse_args()

    network = vector.policy(TASK)
    start = np.zeros(vector.n_parameters(network))
    archive = GridArchive(solution_dim=len(start), dims=(40, 40), ranges=[(0, 0.8)] * 2, seed=arguments.seed)
    emitters = [
        EvolutionStrategyEmitter(archive, x0=start, sigma0=0.3, batch_size=arguments.batch // 4, seed=seed)
        for seed in range(4 * arguments.seed, 4 * arguments.seed + 4)
    ]
    scheduler, steps, started = Scheduler(archive, emitters), 0, time.perf_counter()
    for iteration in range(arguments.iterations):
        outcome = vector.rollout(
            TASK, network, scheduler.ask(), [iteration], horizon=300, threads=arguments.threads, trajectories=True
        )
        scheduler.tell(np.nan_to_num(outcome.returns[:, 0], nan=-1000.0), np.nan_to_num(swing(outcome)))
        steps += int(outcome.lengths.sum())
        if iteration % 20 == 0 or iteration == arguments.iterations - 1:
            seconds, found = time.perf_counter() - started, archive.stats
            print(f"{steps} steps, {seconds:.1f} s: {found.num_elites} gaits, best return {found.obj_max:.1f}")
    grid = np.full((40, 40), np.nan)
    found = archive.data()
    grid.flat[found["index"]] = found["objective"]
    plt.imshow(grid.T, origin="lower", extent=(0, 0.8, 0, 0.8))
    plt.colorbar(label="return in 300 steps")
    plt.xlabel("swing of the right thigh (rad)")
    plt.ylabel("swing of the left thigh (rad)")
    plt.savefig(arguments.picture, dpi=120)


if __name__ == "__main__":
    main()
