"""One generation of ES: candidates by counter, their fitness, and the search gradient (Salimans et al. 2017)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evergait import _native
from evergait.config import Config
from evergait.core.arrays import Bool, Float32, Float64, UInt32
from evergait.core.random import PERTURBATION, RESET, Noise
from evergait.engines import Episodes, Outcome
from evergait.es import Optimizer
from evergait.methods import Batch, Stage
from evergait.policy import Policy, Statistics


@dataclass(frozen=True)
class Generation:
    """The counters of one generation: pairs are numbered through all of its batches."""

    config: Config
    policy: Policy
    stage: Stage
    number: int
    batches: tuple[Batch, ...]
    done: float = 0.0
    """Share of the phase that lies before it."""

    @property
    def cooling(self) -> float:
        """What is left of σ and the learning rate."""
        return 1 - (1 - self.config.anneal) * self.done

    @property
    def sigma(self) -> float:
        """Standard deviation of this generation's perturbations."""
        return self.config.sigma * self.cooling

    @property
    def optimizer(self) -> Optimizer:
        """What makes this generation's step."""
        optimizer = self.config.optimizer
        return replace(optimizer, learning_rate=optimizer.learning_rate * self.cooling)

    @property
    def noise(self) -> Noise:
        """Where the perturbations are drawn."""
        return Noise(self.config.seed, PERTURBATION, self.number, self.stage.index)

    def pairs(self, batch: int) -> UInt32:
        """Numbers of a batch's pairs."""
        first = sum(b.n_pairs for b in self.batches[:batch])
        return np.arange(first, first + self.batches[batch].n_pairs, dtype=np.uint32)

    def episodes(self, batch: int, theta: Float32, statistics: Statistics, horizon: int) -> Episodes:
        """All episodes of a batch; rows run over (pair, sign, episode). Signs of a pair may share their seeds."""
        config, task, pairs = self.config, self.batches[batch].task, self.pairs(batch)
        n = config.episodes
        noise = Noise(config.seed, RESET, self.number, self.stage.index)
        n_seeds = n if config.resets == "pair" else 2 * n
        seeds = noise.integers((int(pairs[-1]) + 1) * n_seeds).reshape(-1, n_seeds)[pairs]
        signs = np.repeat(np.array([1, -1], np.float32), n)
        return Episodes(
            task,
            self.policy.network(task, statistics),
            theta,
            self.sigma,
            self.noise,
            pair=np.repeat(pairs, 2 * n),
            sign=np.tile(signs, len(pairs)),
            seed=np.tile(seeds, 2 * n // n_seeds).ravel(),
            horizon=horizon,
            healthy_bonus=config.healthy_bonus.get(task.name, 1.0),
            gather_statistics=self.updates_statistics(batch),
        )

    def updates_statistics(self, batch: int) -> bool:
        """Whether observations of a batch count for its task's normalisation."""
        policy = self.policy.config
        return policy.normalise and (policy.replay_updates_statistics or not self.batches[batch].replay)

    def fitness(self, outcome: Outcome) -> Float64:
        """(2·n_pairs,) mean return over the episodes of each member, NaN if any of them diverged."""
        mean: Float64 = outcome.returns.reshape(-1, self.config.episodes).mean(axis=1)
        return mean

    def ranges(self, batch: int) -> list[tuple[int, int]]:
        """Ranges of θ that a batch may change."""
        update = self.batches[batch].update
        part = "all" if self.config.perturb == "all" and update != "own" else update
        return self.policy.active(self.batches[batch].task, part, whole_layers=self.config.perturb == "layers")

    def touched(self) -> Bool:
        """(n_parameters,) what this generation may change."""
        touched = np.zeros(self.policy.n_parameters, np.bool_)
        for batch in range(len(self.batches)):
            for begin, end in self.ranges(batch):
                touched[begin:end] = True
        return touched

    def gradients(self, utilities: Sequence[Float64], n_threads: int) -> list[Float64]:
        """Per batch (n_parameters,): 1/(λσ) Σ_k u_k ε_k over its members, λ counting the members of all batches, or of
        this one if it is averaged alone.

        Mirrored members share ε up to its sign, so a pair contributes (u₊ − u₋) ε. Sums run in the order of pairs.
        """
        n_pairs = sum(batch.n_pairs for batch in self.batches)
        gradients = []
        for batch, utility in enumerate(utilities):
            gradient = np.zeros(self.policy.n_parameters)
            n_members = 2 * (self.batches[batch].n_pairs if self.batches[batch].averaged_alone else n_pairs)
            weights = (utility[0::2] - utility[1::2]) / (n_members * self.sigma)
            for begin, end in self.ranges(batch):
                _native.accumulate_noise(self.noise, self.pairs(batch), weights, begin, end, gradient, n_threads)
            gradients.append(gradient)
        return gradients
