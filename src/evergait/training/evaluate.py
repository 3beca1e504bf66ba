"""The unperturbed policy on tasks: measured on every task of a run, or watched for what it observes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from evergait.config import Evaluation
from evergait.core.arrays import Float32, Float64, Int32, UInt32
from evergait.core.errors import EvergaitError
from evergait.core.random import ACTION_NOISE, COLLECTION, EVALUATION, RANDOM_POLICY, RESERVOIR, Noise, layer_index
from evergait.engines import Episodes, Outcome, Recording
from evergait.methods import Collection
from evergait.policy import Network, Policy, Statistics
from evergait.tasks import Task
from evergait.workers import Workers


def evaluation_seeds(seed: int, task: Task, n_episodes: int) -> UInt32:
    """The reset seeds of a task's evaluation episodes: different, and the same all through a run."""
    return Noise(seed, EVALUATION).integers(n_episodes, layer_index(task.name))


def as_recorded(outcome: Outcome) -> Float64:
    """(n,) returns as the ledger has them: NaN where an episode has no finite one."""
    return np.where(np.isfinite(outcome.returns), outcome.returns, np.nan)


@dataclass(frozen=True)
class Evaluator:
    """Measures policies of one run."""

    policy: Policy
    engines: Mapping[Task, str]
    workers: Workers
    config: Evaluation
    seed: int

    def episodes(
        self, theta: Float32, task: Task, statistics: Statistics, n_episodes: int, simulated: Task | None = None
    ) -> Episodes:
        """The request for n episodes of the unperturbed policy, if wanted in a variant of the task."""
        return Episodes(
            simulated or task,
            self.policy.network(task, statistics),
            theta,
            sigma=0.0,
            noise=Noise(self.seed, EVALUATION),
            pair=np.zeros(n_episodes, np.uint32),
            sign=np.zeros(n_episodes, np.float32),
            seed=evaluation_seeds(self.seed, task, n_episodes),
        )

    def measure(
        self, theta: Float32, statistics: Statistics, tasks: Iterable[Task], horizon: int = 0
    ) -> tuple[dict[str, Float64], dict[str, Int32]]:
        """Returns and lengths of the evaluation episodes, by task name; NaN where an episode has no finite return."""
        returns, lengths = {}, {}
        for task in tasks:
            request = self.episodes(theta, task, statistics, self.config.episodes)
            outcome = self.workers.run(self.engines[task], replace(request, horizon=horizon))
            returns[task.name] = as_recorded(outcome)
            lengths[task.name] = outcome.lengths
        return returns, lengths

    def random_policies(self) -> dict[str, list[float]]:
        """Mean return of each of some fresh initialisations, by task name; not a number where one has none."""
        empty = Statistics.empty(self.policy.tasks)
        means: dict[str, list[float]] = {task.name: [] for task in self.policy.tasks}
        for index in range(self.config.random_policies):
            theta = self.policy.initial(self.seed, RANDOM_POLICY, index)
            returns, _ = self.measure(theta, empty, self.policy.tasks)
            for name, values in returns.items():
                means[name].append(float(np.mean(values)))
        return means


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
