"""The cross-entropy method on a planar robot: whole episodes of a population at once, in native code.

python examples/vector_cem.py [--task Hopper-v5] [--generations 40] [--population 256] [--threads 2]
"""

import argparse
import time

import numpy as np

from evergait import vector


def main() -> None:
    """Search, and print how it goes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="Hopper-v5")
    parser.add_argument("--generations", type=int, default=40)
    parser.add_argument("--population", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    random = np.random.default_rng(arguments.seed)
    network = vector.policy(arguments.task)  # linear, then tanh
    mean, deviation = np.zeros(vector.n_parameters(network)), np.full(vector.n_parameters(network), 0.5)
    n_elite, steps, started = max(2, arguments.population // 8), 0, time.perf_counter()
    for generation in range(arguments.generations):
        thetas = mean + deviation * random.standard_normal((arguments.population, len(mean)))
        seeds = random.integers(0, 2**31, 3)
        outcome = vector.rollout(arguments.task, network, thetas, seeds, threads=arguments.threads)
        returns = np.nan_to_num(outcome.returns, nan=-np.inf).mean(axis=1)
        elite = thetas[np.argsort(returns)[-n_elite:]]
        extra = 0.2 * 0.9**generation  # keeps the search from closing too early
        mean, deviation = elite.mean(axis=0), elite.std(axis=0) + extra
        steps += int(outcome.lengths.sum())
        rate = steps / (time.perf_counter() - started)
        print(f"generation {generation}: best {returns.max():.1f}, mean {returns.mean():.1f}, {rate:,.0f} steps/s")
    final = vector.rollout(arguments.task, network, mean[np.newaxis], list(range(10)), threads=arguments.threads)
    seconds = time.perf_counter() - started
    print(f"{steps} steps, {seconds:.1f} s: mean return {final.returns.mean():.1f} of the mean policy")


if __name__ == "__main__":
    main()
