"""Training of one phase: the inner loop of the paper's Algorithm 1. What it keeps and counts is in `keeping.py`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evergait.config import Config
from evergait.core.errors import EvergaitError
from evergait.core.signals import Stop, interruptible
from evergait.engines import Outcome
from evergait.methods import Context, Stage, Step, rank_together, weighted_sum
from evergait.policy import Policy
from evergait.store.ledger import Record, record_line
from evergait.store.phases import PhaseWriter
from evergait.training.evaluate import Evaluator
from evergait.training.keeping import (
    account,
    header,
    is_due,
    keep_best,
    look_back,
    position,
    progress,
    recorded,
    resume,
    used,
)
from evergait.training.observer import Diagnostics, Observer, norm
from evergait.training.search import Generation
from evergait.training.starts import restart
from evergait.training.state import State
from evergait.workers import Workers


@dataclass(frozen=True)
class Trainer:
    """Trains phases of one run."""

    config: Config
    policy: Policy
    evaluator: Evaluator
    workers: Workers
    observers: Sequence[Observer] = ()
    checkpoint_seconds: float = 30.0

    def train(self, stage: Stage, start: State, writer: PhaseWriter) -> State:
        """Train one phase from its start, or from where an earlier process left it."""
        state, last_saved = self.begin(stage, start, writer), time.monotonic()
        while used(self.config, state) < self.config.phase_length:
            try:
                with interruptible():
                    after, seen = self.advance(stage, state)
                    record = None
                    if is_due(self.config, after):
                        after, record = self.evaluate(stage, after, seen.horizon)
                    after = restart(self.config, self.policy, stage, start, after, seen)
            except Stop:  # in the middle of a generation, or of the evaluation that belongs to it
                self.save(writer, state)
                raise
            state = after
            if record:
                writer.append(record_line(record))
            if time.monotonic() - last_saved > self.checkpoint_seconds:
                self.save(writer, state)
                last_saved = time.monotonic()
            self.tell(stage, state, seen, record)
        for observer in self.observers:
            observer.phase_done(position(self.config, stage, state))
        return state

    def begin(self, stage: Stage, start: State, writer: PhaseWriter) -> State:
        """Where an earlier process stopped, or else the start, evaluated."""
        state = resume(self.policy, start, writer) if writer.resumed else start
        for observer in self.observers:
            observer.phase_started(position(self.config, stage, state))
        if writer.resumed:
            return state
        with interruptible():
            randoms = self.evaluator.random_policies() if stage.index == 0 else {}
            state = look_back(self.config, self.policy, self.workers, stage, start)
            state, record = self.evaluate(stage, state, start.horizon)
        writer.append(header(self.config, self.policy, stage, randoms))
        writer.append(record_line(record))
        self.tell(stage, state, None, record)
        return state

    def advance(self, stage: Stage, state: State) -> tuple[State, Diagnostics]:
        """One generation."""
        config, method = self.config, self.config.method
        number = state.generation + 1
        batches = method.plan(stage, number, stage.batches, state.memory)
        done = used(config, state) / config.phase_length
        generation = Generation(config, self.policy, stage, number, batches, done)

        outcomes = [self.simulate(generation, batch, state) for batch in range(len(batches))]
        fitness = [generation.fitness(outcome) for outcome in outcomes]
        utilities = method.utilities(batches, fitness, config.shaping, rank_together(fitness, config.shaping))
        gradients = generation.gradients(utilities, self.workers.n_threads)
        gradient = method.combine(batches, gradients, weighted_sum(batches, gradients))
        touched = generation.touched()
        with np.errstate(over="ignore", invalid="ignore"):
            theta, optimizer = generation.optimizer.update(state.theta, gradient, touched, state.optimizer)
        context = Context(stage, self.policy, state.statistics)
        step = Step(number, batches, fitness, gradient, touched)
        theta, memory = method.after_step(context, step, theta, state.memory)
        if not np.isfinite(theta).all():
            raise EvergaitError(
                f"{stage.name}: θ left the finite numbers in generation {number}; a smaller optimizer.learning_rate or "
                "shaping by ranks keeps it in"
            )

        seen = Diagnostics(step, norm(theta.astype(np.float64) - state.theta), state.horizon)
        state = keep_best(config, replace(state, theta=theta, optimizer=optimizer, memory=memory), seen)
        return account(config, state, generation, outcomes, seen), seen

    def simulate(self, generation: Generation, batch: int, state: State) -> Outcome:
        """The episodes of one batch; how long an old task's may be has nothing to do with those of the new one."""
        horizon = self.config.horizon if generation.batches[batch].replay else state.horizon
        episodes = generation.episodes(batch, state.theta, state.statistics, horizon)
        return self.workers.run(self.evaluator.engines[episodes.task], episodes)

    def evaluate(self, stage: Stage, state: State, horizon: int) -> tuple[State, Record]:
        """Measure the unperturbed policy on every task, if wanted with episodes as long as training's last were."""
        horizon = horizon if self.config.evaluation.cut else 0
        returns, lengths = self.evaluator.measure(state.theta, state.statistics, self.policy.tasks, horizon)
        return recorded(self.config, stage, state, returns, lengths, horizon)

    def tell(self, stage: Stage, state: State, seen: Diagnostics | None, record: Record | None) -> None:
        """Let observers know."""
        at = position(self.config, stage, state)
        for observer in self.observers:
            if seen:
                observer.generation_done(at, seen)
            if record:
                observer.evaluated(at, record)

    def save(self, writer: PhaseWriter, state: State) -> None:
        """Write a checkpoint."""
        writer.checkpoint(state.tensors(), state.metadata(), progress(self.config, state))
