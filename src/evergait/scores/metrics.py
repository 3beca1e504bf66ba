"""Ledgers → what was learnt, kept, forgotten and transferred.

Notation of the paper: R̂(T, k) is the mean return on task T at evaluation k, on a scale (`scale.py`: a score, the
paper's R̂, or the return itself); stage t = 1..n trains task T_t. A run's ledgers come in the order of its stages.
Every evaluation of a phase counts, also the one before its first generation. What is not defined is NaN. In a stream
that comes back to a task, averages count its last stage for what is kept, and its first for what was transferred.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evergait.core.arrays import Float64
from evergait.scores.scale import Scale, learnt_tasks
from evergait.store.ledger import Ledger, best_of, mean_of


@dataclass(frozen=True)
class Metrics:
    """The measures of one run. Stages are counted from 0 here."""

    ledgers: Sequence[Ledger]
    scale: Scale

    @property
    def n_stages(self) -> int:
        """Phases trained so far."""
        return len(self.ledgers)

    def task(self, stage: int) -> str:
        """The task that a stage learns; the first one in multi-task training."""
        return self.ledgers[stage].learning[0]

    def curve(self, task: str, stage: int) -> Float64:
        """(n_records,) R̂ on a task at the evaluations of a stage."""
        return self.scale.score(task, self.returns(task, stage))

    def returns(self, task: str, stage: int) -> Float64:
        """(n_records,) plain returns on a task at the evaluations of a stage."""
        key = task, stage % self.n_stages
        if key not in self._curves:
            self._curves[key] = self.ledgers[stage].curve(task)
        return self._curves[key]

    @cached_property
    def _curves(self) -> dict[tuple[str, int], Float64]:
        return {}

    def final(self, task: str, stage: int = -1) -> float:
        """R̂ on a task at the last evaluation of a stage."""
        return float(self.curve(task, stage)[-1])

    def best_while_learning(self, stage: int) -> float:
        """R̂*(T_i | T≤i): the best evaluation of a stage's task during that stage."""
        return best_of(self.curve(self.task(stage), stage))

    def random(self, task: str) -> float:
        """R̂(T | rand): mean over random policies."""
        return self.scale.score_of(task, mean_of(self.ledgers[0].random_returns.get(task, ())))

    def matrix(self) -> Float64:
        """(n_stages, n_stages): R̂ on the task of stage j at the last evaluation of stage i."""
        return np.array([[self.final(self.task(j), i) for j in range(self.n_stages)] for i in range(self.n_stages)])

    def backward_transfer_curve(self, learnt: int, stage: int) -> Float64:
        """BWT(T_i ← T_t, k) = R̂(T_i, k) − R̂*(T_i | T≤i) at every evaluation k of stage t ≥ i."""
        return self.curve(self.task(learnt), stage) - self.best_while_learning(learnt)

    def backward_transfer(self, learnt: int, stage: int = -1) -> float:
        """BWT(T_i ← T_t, last); negative is forgetting."""
        return float(self.backward_transfer_curve(learnt, stage)[-1])

    def average_backward_transfer(self) -> float:
        """Avg BWT = mean over i < n of BWT(T_i ← T_n, last): last minus best, so below 0 even if nothing is lost."""
        return _mean([self.backward_transfer(i) for i in self._left()])

    def forward_transfer_curve(self, future: int, stage: int) -> Float64:
        """FWT(T_i → T_t, k) = R̂(T_i, k) − R̂(T_i | rand) at every evaluation k of stage t < i."""
        task = self.task(future)
        return self.curve(task, stage) - self.random(task)

    def forward_transfer(self, future: int, stage: int | None = None) -> float:
        """FWT at the last evaluation of a stage, by default the one right before the task is learnt."""
        return float(self.forward_transfer_curve(future, future - 1 if stage is None else stage)[-1])

    def average_forward_transfer(self) -> float:
        """Avg FWT = mean over i ≥ 2 of FWT(T_i → T_{i−1}, last)."""
        return _mean([self.forward_transfer(i) for i in self._new()])

    def interference(self, stage: int) -> float:
        """Int(T, ρ) = 1 − R̂*(T_ρ | T≤ρ); 0 is R*, the best of a study's single-task runs."""
        return 1 - self.best_while_learning(stage) if self.scale.is_share else float("nan")

    def later_interference(self) -> float:
        """Int averaged over the second and later positions; at the first there is nothing to interfere."""
        return _mean([self.interference(stage) for stage in self._new()])

    def _left(self) -> list[int]:
        """Stages before the last whose task is not learnt again: what is relearnt tells nothing of keeping."""
        tasks = [self.task(stage) for stage in range(self.n_stages)]
        return [stage for stage, task in enumerate(tasks[:-1]) if task not in tasks[stage + 1 :]]

    def _new(self) -> list[int]:
        """Stages after the first whose task was not learnt before: what is known already has nothing to transfer."""
        tasks = [self.task(stage) for stage in range(self.n_stages)]
        return [stage for stage, task in enumerate(tasks) if stage and task not in tasks[:stage]]

    def average_performance(self) -> float:
        """Mean over all tasks that the run learnt of R̂ at the very end (Wołczyk et al. 2021, P(t))."""
        return _mean([self.final(task) for task in learnt_tasks(self.ledgers)])

    def maximum_forgetting(self) -> float:
        """Mean over i < n of max over l < n of R[l, i] − R[n, i], from ends of stages (Chaudhry et al. 2018, eq. 3).

        Only stages l ≥ i count: before its own stage a task has nothing to forget.
        """
        matrix, last = self.matrix(), self.n_stages - 1
        return _mean([float(matrix[i:last, i].max() - matrix[last, i]) for i in self._left()])

    def gem_backward_transfer(self) -> float:
        """1/(n−1) Σ_{i<n} R[n, i] − R[i, i]: last minus end of phase (Lopez-Paz & Ranzato 2017, eq. 3)."""
        matrix, last = self.matrix(), self.n_stages - 1
        return _mean([float(matrix[last, i] - matrix[i, i]) for i in self._left()])

    def gem_forward_transfer(self) -> float:
        """1/(n−1) Σ_{i>1} R[i−1, i] − b_i, b_i of random policies (Lopez-Paz & Ranzato 2017, eq. 4)."""
        matrix = self.matrix()
        return _mean([float(matrix[i - 1, i]) - self.random(self.task(i)) for i in self._new()])

    def continual_world_forward_transfer(self, baselines: Mapping[str, Ledger]) -> float:
        """Mean over tasks of (AUC − AUC_b)/(1 − AUC_b), AUC the mean R̂ over a task's own stage, clipped to [0, 1].

        AUC_b is that of single-task training (Wołczyk et al. 2021, section 3.2). A task that it has perfectly from its
        first evaluation on leaves nothing to transfer, and does not count.
        """
        transfers = []
        for stage in range(self.n_stages):
            task = self.task(stage)
            baseline = _area(self.scale.score(task, baselines[task].curve(task)))
            if baseline < 1:
                transfers.append((_area(self.curve(task, stage)) - baseline) / (1 - baseline))
        return _mean(transfers)

    def summary(self) -> dict[str, float]:
        """Every defined measure that needs nothing but this run, by the name that files and tables use."""
        names = {"average_performance": self.average_performance}
        if self.n_stages > 1:
            names |= {
                "average_backward_transfer": self.average_backward_transfer,
                "average_forward_transfer": self.average_forward_transfer,
                "maximum_forgetting": self.maximum_forgetting,
                "gem_backward_transfer": self.gem_backward_transfer,
                "gem_forward_transfer": self.gem_forward_transfer,
            }
        return {name: value for name, measure in names.items() if np.isfinite(value := measure())}

    def total_steps(self) -> dict[str, int]:
        """Environment steps of the whole run by kind."""
        parts = [ledger.total_steps() for ledger in self.ledgers]
        return {kind: sum(part[kind] for part in parts) for kind in parts[0]} if parts else {}


def _area(curve: Float64) -> float:
    return float(np.clip(curve, 0.0, 1.0).mean())


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
