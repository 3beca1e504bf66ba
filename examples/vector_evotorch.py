"""EvoTorch's PGPE on a planar robot, whole populations in native code. Needs `pip install evotorch`.

python examples/vector_evotorch.py [--task Walker2d-v5] [--generations 100] [--population 200] [--threads 2] [--seed 1]
"""

import argparse
import time

import numpy as np
import torch
from evotorch import Problem, SolutionBatch
from evotorch.algorithms import PGPE

from evergait import vector


class Robot(Problem):
    """Maximise the mean return of a linear policy over a few episodes, new ones in every generation."""

    def __init__(self, task: str, episodes: int, horizon: int, threads: int, seed: int) -> None:
        self.network = vector.policy(task)
        self.task, self.options, self.steps = task, {"horizon": horizon, "threads": threads}, 0
        self.episodes, self.random = episodes, np.random.default_rng(seed)
        n = vector.n_parameters(self.network)
        super().__init__("max", solution_length=n, initial_bounds=(0.0, 0.0), seed=seed, num_actors=0)

    def _evaluate_batch(self, solutions: SolutionBatch) -> None:
        seeds = self.random.integers(0, 2**31, self.episodes)
        outcome = vector.rollout(self.task, self.network, solutions.values.numpy(), seeds, **self.options)
        self.steps += int(outcome.lengths.sum())
        solutions.set_evals(torch.as_tensor(np.nan_to_num(outcome.returns, nan=-1000.0).mean(axis=1)))


def main() -> None:
    """Search, and print the return of the centre."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="Walker2d-v5")
    parser.add_argument("--generations", type=int, default=100)
    parser.add_argument("--population", type=int, default=200)
    parser.add_argument("--horizon", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    robot = Robot(args.task, 2, args.horizon, args.threads, args.seed)
    searcher = PGPE(
        robot,
        popsize=args.population,
        center_learning_rate=0.1,
        stdev_learning_rate=0.1,
        stdev_init=0.3,
        ranking_method="centered",
    )
    started = time.perf_counter()
    for generation in range(args.generations):
        searcher.step()
        if generation % 10 == 0:
            print(f"generation {generation}: mean return {searcher.status['mean_eval']:.1f}", flush=True)
    centre = searcher.status["center"].numpy()[np.newaxis]
    final = vector.rollout(args.task, robot.network, centre, list(range(10)), **robot.options)
    seconds = time.perf_counter() - started
    print(f"{robot.steps} steps, {seconds:.1f} s: mean return {final.returns.mean():.1f}")


if __name__ == "__main__":
    main()
