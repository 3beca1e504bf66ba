"""The unperturbed policy on every task of a run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from evergait.config import Evaluation
from evergait.core.arrays import Float32, Float64, Int32, UInt32
from evergait.core.random import EVALUATION, RANDOM_POLICY, Noise, layer_index
from evergait.engines import Episodes, Outcome
from evergait.policy import Policy, Statistics
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
