"""Observations that a policy meets, for methods that learn from them."""

from dataclasses import dataclass

import numpy as np

from evergait.core.arrays import Float32
from evergait.core.errors import EvergaitError
from evergait.core.random import ACTION_NOISE, COLLECTION, RESERVOIR, Noise
from evergait.engines import Episodes, Recording
from evergait.methods import Collection
from evergait.policy import Network
from evergait.tasks import Task
from evergait.workers import Workers


@dataclass
class Collector:
    """Collects observations at one stage of a run, and counts the environment steps that it takes."""

    workers: Workers
    seed: int
    stage: int
    n_steps: int = 0

    def collect(self, task: Task, network: Network, theta: Float32, collection: Collection) -> Float32:
        """(n, n_observations) a uniform sample of what the policy saw; every second episode has action noise."""
        n = collection.episodes
        request = Episodes(
            task,
            network,
            theta,
            sigma=0.0,
            noise=self.noise(COLLECTION),
            pair=np.arange(n, dtype=np.uint32),
            sign=np.zeros(n, np.float32),
            seed=self.noise(COLLECTION).integers(n),
            recording=Recording(self.noise(ACTION_NOISE), collection.noise),
        )
        outcome = self.workers.run("gymnasium", request)
        seen = np.concatenate(outcome.observations)
        self.n_steps += len(seen)
        if not len(seen):
            raise EvergaitError(f"task {task.name!r}: the policy's actions are not finite; nothing can be kept of it")
        order = np.argsort(self.noise(RESERVOIR).integers(len(seen)), kind="stable")
        return seen[np.sort(order[: collection.observations])].astype(np.float32)

    def noise(self, purpose: int) -> Noise:
        """A stream of this stage."""
        return Noise(self.seed, purpose, stage=self.stage)
