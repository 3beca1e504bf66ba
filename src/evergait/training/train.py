"""Training of one phase: the inner loop of the paper's Algorithm 1, with checkpoints."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from evergait.config import Config
from evergait.core.arrays import Float32, Float64
from evergait.core.errors import EvergaitError
from evergait.core.signals import Stop, interruptible
from evergait.engines import Outcome
from evergait.engines.gymnasium.recorder import Recorder
from evergait.methods import Batch, Collection, Context, Stage, Step, rank_together, weighted_sum
from evergait.policy import Policy
from evergait.store.ledger import Ledger, Record, header_line, record_line
from evergait.store.phases import PhaseWriter
from evergait.tasks import Task
from evergait.training.evaluate import Evaluator
from evergait.training.search import Generation
from evergait.training.state import Position, State
from evergait.workers import Workers


class Observer(Protocol):
    """Is told what happens; must not change it."""

    def phase_started(self, stage: Stage, at: Position) -> None:
        """A phase begins, or goes on from where it was left."""

    def generation_done(self, stage: Stage, at: Position) -> None:
        """A generation has been trained."""

    def evaluated(self, stage: Stage, record: Record) -> None:
        """The unperturbed policy has been evaluated."""


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
        while self.used(state) < self.config.budget:
            try:
                with interruptible():
                    state, record = self.advance(stage, state)
            except Stop:
                self.save(writer, state)
                raise
            if record:
                writer.append(record_line(record))
            if time.monotonic() - last_saved > self.checkpoint_seconds:
                self.save(writer, state)
                last_saved = time.monotonic()
            for observer in self.observers:
                observer.generation_done(stage, self.position(state))
                if record:
                    observer.evaluated(stage, record)
        return state

    def advance(self, stage: Stage, state: State) -> tuple[State, Record | None]:
        """One generation, and the evaluation that may be due after it."""
        config, method = self.config, self.config.method
        number = state.generation + 1
        batches = method.plan(stage, number, stage.batches, state.memory)
        generation = Generation(config, self.policy, stage, number, batches)

        outcomes = [self.simulate(generation, batch, state) for batch in range(len(batches))]
        fitness = [generation.fitness(outcome) for outcome in outcomes]
        utilities = method.utilities(batches, fitness, config.shaping, rank_together(fitness, config.shaping))
        gradients = generation.gradients(utilities, self.workers.n_threads)
        gradient = method.combine(batches, gradients, weighted_sum(batches, gradients))
        touched = generation.touched()
        with np.errstate(over="ignore", invalid="ignore"):
            theta, optimizer = config.optimizer.update(state.theta, gradient, touched, state.optimizer)
        context, step = self.context(stage, state), Step(number, batches, fitness, gradient, touched)
        theta, memory = method.after_step(context, step, theta, state.memory)
        if not np.isfinite(theta).all():
            raise EvergaitError(
                f"{stage.name}: θ left the finite numbers in generation {number}; a smaller optimizer.learning_rate or "
                "shaping by ranks keeps it in"
            )

        horizon = state.horizon
        state = replace(state, theta=theta, optimizer=optimizer, memory=memory)
        state = self.account(self.keep_best(state, batches, fitness), generation, outcomes)
        return self.evaluate(stage, state, horizon) if self.is_due(state) else (state, None)

    def keep_best(self, state: State, batches: Sequence[Batch], fitness: Sequence[Float64]) -> State:
        """Note the new θ if its generation's members did better on what is being learnt than any before."""
        members = [part for batch, part in zip(batches, fitness, strict=True) if not batch.replay]
        if self.config.carry != "best-population" or not members:
            return state
        survivors = np.concatenate(members)
        survivors = survivors[np.isfinite(survivors)]
        mean = float(survivors.mean()) if survivors.size else -np.inf
        is_best = mean > state.best_return or not state.best_theta.size
        return replace(state, best_theta=state.theta, best_return=mean) if is_best else state

    def used(self, state: State) -> int:
        """What a phase has used of its budget."""
        return state.spent if self.config.steps else state.generation

    def position(self, state: State) -> Position:
        """How far a phase is, for observers."""
        return Position(state.generation, state.n_steps, self.used(state))

    def is_due(self, state: State) -> bool:
        """Whether the policy is to be evaluated after this generation."""
        if self.used(state) >= self.config.budget:
            return True
        if not self.config.steps:
            return state.generation % self.config.evaluation.every == 0
        every, before = self.config.evaluation.every_steps, state.spent - sum(state.steps.values())
        return state.spent // every > before // every

    def simulate(self, generation: Generation, batch: int, state: State) -> Outcome:
        """The episodes of one batch; how long an old task's may be has nothing to do with those of the new one."""
        horizon = self.config.horizon if generation.batches[batch].replay else state.horizon
        episodes = generation.episodes(batch, state.theta, state.statistics, horizon)
        return self.workers.run(self.evaluator.engines[episodes.task], episodes)

    def account(self, state: State, generation: Generation, outcomes: Sequence[Outcome]) -> State:
        """Count what a generation used, and let its observations and lengths decide what the next one sees."""
        steps, statistics, horizon = dict(state.steps), state.statistics, state.horizon
        for i, (batch, outcome) in enumerate(zip(generation.batches, outcomes, strict=True)):
            kind = "replay" if batch.replay else "training"
            steps[kind] = steps.get(kind, 0) + int(outcome.lengths.sum())
            if generation.updates_statistics(i):
                statistics = statistics.add(batch.task, outcome.lengths, outcome.statistics)
        if self.config.adaptive_horizon and not generation.batches[0].replay:
            if self.config.adaptive_horizon_over == "all":
                horizon = int(2 * np.concatenate([outcome.lengths for outcome in outcomes]).mean())
            else:
                horizon = int(np.ceil(2 * outcomes[0].lengths.mean()))
            horizon = min(horizon, self.config.horizon or horizon)
        n_steps = sum(int(outcome.lengths.sum()) for outcome in outcomes)
        if self.config.steps and not n_steps:
            raise EvergaitError(
                f"steps: no episode of generation {generation.number} took one; none would ever be used"
            )
        return replace(
            state,
            generation=generation.number,
            statistics=statistics,
            horizon=horizon,
            steps=steps,
            n_steps=state.n_steps + n_steps,
            spent=state.spent + n_steps,
            diverged=state.diverged + sum(int(outcome.diverged.sum()) for outcome in outcomes),
        )

    def evaluate(self, stage: Stage, state: State, horizon: int) -> tuple[State, Record]:
        """Measure the unperturbed policy on every task; keep the best θ on what is being learnt."""
        horizon = horizon if self.config.evaluation.cut else 0
        returns, lengths = self.evaluator.measure(state.theta, state.statistics, self.policy.tasks, horizon)
        n_steps = sum(int(part.sum()) for part in lengths.values())
        record = Record(
            state.generation,
            {task: part.tolist() for task, part in returns.items()},
            {task: part.tolist() for task, part in lengths.items()},
            {**state.steps, "evaluation": n_steps},
            state.diverged,
            horizon,
        )
        achieved = float(np.mean([record.mean(task.name) for task in stage.tasks]))
        if self.config.carry != "best-population" and achieved > state.best_return:
            state = replace(state, best_theta=state.theta, best_return=achieved)
        if self.is_snapshot(state):
            state = replace(state, snapshots={**state.snapshots, str(state.generation): state.theta})
        return replace(state, steps={}, diverged=0, n_steps=state.n_steps + n_steps), record

    def is_snapshot(self, state: State) -> bool:
        """Whether this is the first evaluation past one of the evenly spaced snapshots."""
        used, total, parts = self.used(state), self.config.budget, self.config.evaluation.snapshots + 1
        since = sum(state.steps.values()) if self.config.steps else self.config.evaluation.every
        before = max(used - since, 0)
        return 0 < used < total and used * parts // total > before * parts // total

    def begin(self, stage: Stage, start: State, writer: PhaseWriter) -> State:
        """Where an earlier process stopped, or else the start, evaluated."""
        if writer.resumed:
            state = self.resume(start, writer)
        else:
            with interruptible():
                randoms = self.evaluator.random_policies() if stage.index == 0 else {}
                state, record = self.evaluate(stage, self.look_back(stage, start), start.horizon)
            names = tuple(task.name for task in self.policy.tasks)
            learning = tuple(task.name for task in stage.tasks)
            every_steps = self.config.evaluation.every_steps
            writer.append(header_line(Ledger(stage.index, learning, names, randoms, every_steps=every_steps)))
            writer.append(record_line(record))
        for observer in self.observers:
            observer.phase_started(stage, self.position(state))
        return state

    def resume(self, start: State, writer: PhaseWriter) -> State:
        """The state that an earlier process saved, which must fit this phase."""
        tensors, metadata = writer.resumed or ({}, {})
        state = State.load(tensors, metadata, self.policy, writer.folder.path)
        found, expected = ({k: v.shape for k, v in s.optimizer.items()} for s in (state, start))
        if found != expected:
            raise EvergaitError(f"{writer.folder.path}: its checkpoint does not fit the optimizer of its config")
        return state

    def look_back(self, stage: Stage, state: State) -> State:
        """Let the method keep what it needs of the phase before; what it simulates for that is counted."""
        recorder = Recorder(self.config.seed, stage.index)

        def collect(task: Task, collection: Collection) -> Float32:
            network = self.policy.network(task, state.statistics)
            amounts = collection.episodes, collection.observations, collection.noise
            return recorder.record(task, network, state.theta, *amounts)

        memory = self.config.method.begin(self.context(stage, state), state.theta, state.memory, collect)
        steps = {"collection": recorder.n_steps} if recorder.n_steps else {}
        return replace(state, memory=memory, steps=steps, n_steps=recorder.n_steps, spent=recorder.n_steps)

    def context(self, stage: Stage, state: State) -> Context:
        """What a method may know besides its memory."""
        return Context(stage, self.policy, state.statistics)

    def save(self, writer: PhaseWriter, state: State) -> None:
        """Write a checkpoint."""
        writer.checkpoint(state.tensors(), state.metadata(), self.progress(state))

    def progress(self, state: State) -> dict[str, int]:
        """How far a phase is, for those who look into its folder."""
        progress = {"generation": state.generation, self.config.unit: self.config.budget}
        return {**progress, "spent": state.spent} if self.config.steps else progress
