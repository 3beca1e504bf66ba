"""What a study will cost, before anything runs: counted, and timed by a short measurement on this machine."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from evergait.config import Config
from evergait.core.random import PERTURBATION, Noise
from evergait.engines import Episodes, engine_name
from evergait.methods import Stage
from evergait.policy import Statistics
from evergait.store.phases import PhaseStore
from evergait.studies.cells import Node, Tree
from evergait.tasks import Task, spaces
from evergait.workers import LocalWorkers

UNLIMITED = 1000
"""Steps that an episode of a task without a time limit is taken to have."""
MEASURE_SECONDS = 0.2


@dataclass(frozen=True)
class Cost:
    """Work of one or more phases."""

    n_episodes: int
    """Without those that a fixed number of steps pays for: nobody knows how long they will be."""
    n_steps: Mapping[Task, int]
    """Environment steps by task if every episode runs to its end: an upper bound."""
    given: Mapping[Task, int] = field(default_factory=dict)
    """Steps that the settings give, by task: neither more nor less, but for the last generation."""

    @staticmethod
    def total(costs: Iterable["Cost"]) -> "Cost":
        """All together."""
        total = Cost(0, {})
        for cost in costs:
            parts = _add(total.n_steps, cost.n_steps), _add(total.given, cost.given)
            total = Cost(total.n_episodes + cost.n_episodes, *parts)
        return total


def _add(a: Mapping[Task, int], b: Mapping[Task, int]) -> dict[Task, int]:
    return {task: a.get(task, 0) + b.get(task, 0) for task in (*a, *b)}


def episode_steps(config: Config, task: Task) -> int:
    """The most steps that a training episode can have."""
    limit = spaces(task).n_steps or UNLIMITED
    return min(limit, config.horizon) if config.horizon else limit


def phase_cost(config: Config, stage: Stage) -> Cost:
    """Training and evaluation of one phase."""
    n_episodes: dict[Task, int] = {}
    evaluation, given = config.evaluation, dict[Task, int]()
    if config.steps:
        # Some methods take tasks in turn; a dozen generations have seen them all.
        batches = [b for number in range(1, 13) for b in config.method.plan(stage, number, stage.batches, {})]
        n_pairs = sum(batch.n_pairs for batch in batches)
        for batch in batches:
            given[batch.task] = given.get(batch.task, 0) + config.steps * batch.n_pairs // n_pairs
        n_evaluations = config.steps // evaluation.every_steps + 1
    else:
        for generation in range(1, config.generations + 1):
            for batch in config.method.plan(stage, generation, stage.batches, {}):
                n_episodes[batch.task] = n_episodes.get(batch.task, 0) + 2 * batch.n_pairs * config.episodes
        n_evaluations = -(-config.generations // evaluation.every) + 1
    steps = {task: n * episode_steps(config, task) for task, n in n_episodes.items()}
    n_evaluations += evaluation.random_policies if stage.index == 0 else 0
    for task in config.build_policy().tasks:
        n = n_evaluations * evaluation.episodes
        n_episodes[task] = n_episodes.get(task, 0) + n
        steps[task] = steps.get(task, 0) + n * (spaces(task).n_steps or UNLIMITED)
    return Cost(sum(n_episodes.values()), steps, given)


@dataclass(frozen=True)
class Speed:
    """What a short measurement says of a task."""

    steps_per_second: float
    survival: float
    """Mean length of the first candidates' episodes as a share of the longest; it rises as they learn."""


def measure_speed(config: Config, task: Task, n_threads: int) -> Speed:
    """Candidates of the first generation, twice as many each time until it takes a moment."""
    policy = config.build_policy()
    workers, engine = LocalWorkers(n_threads), engine_name(config.engine, task)
    horizon = min(episode_steps(config, task), 200)

    def simulate(n_pairs: int) -> tuple[int, float]:
        request = Episodes(
            task,
            policy.network(task, Statistics.empty(policy.tasks)),
            policy.initial(config.seed),
            config.sigma,
            Noise(config.seed, PERTURBATION, 1),
            pair=np.repeat(np.arange(n_pairs, dtype=np.uint32), 2),
            sign=np.tile(np.array([1, -1], np.float32), n_pairs),
            seed=np.arange(2 * n_pairs, dtype=np.uint32),
            horizon=horizon,
        )
        begun = time.perf_counter()
        n_steps = int(workers.run(engine, request).lengths.sum())
        return n_steps, time.perf_counter() - begun

    n_pairs = n_threads
    simulate(n_pairs)  # models are loaded at first use
    n_steps, seconds = simulate(n_pairs)
    while seconds < MEASURE_SECONDS:
        n_pairs *= 2
        n_steps, seconds = simulate(n_pairs)
    mean_length = n_steps / (2 * n_pairs)
    survival = 1.0 if mean_length == horizon else mean_length / episode_steps(config, task)
    return Speed(n_steps / seconds, survival)


@dataclass(frozen=True)
class Plan:
    """The cost of what is left of a study."""

    n_phases: int
    n_done: int
    left: Cost
    speed: Mapping[Task, Speed]

    @property
    def most_seconds(self) -> float:
        """If every episode runs to its end."""
        return self._seconds(_add(self.left.n_steps, self.left.given))

    @property
    def least_seconds(self) -> float:
        """If episodes stay as short as they are before anything is learnt."""
        short = {task: int(n * self.speed[task].survival) for task, n in self.left.n_steps.items()}
        return self._seconds(_add(short, self.left.given))

    def _seconds(self, n_steps: Mapping[Task, int]) -> float:
        return sum(n / self.speed[task].steps_per_second for task, n in n_steps.items())


def make_plan(tree: Tree, store: PhaseStore, n_threads: int) -> Plan:
    """Count what the store does not have yet, and measure this machine on its tasks."""
    missing: list[Node] = [node for name, node in tree.nodes.items() if not store.folder(name).is_done()]
    left = Cost.total(phase_cost(node.config, node.phase.stage) for node in missing)
    speed = {task: measure_speed(missing[0].config, task, n_threads) for task in left.n_steps}
    return Plan(len(tree.nodes), len(tree.nodes) - len(missing), left, speed)
