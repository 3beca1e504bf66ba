"""What a phase keeps and counts beside θ: steps, statistics, the best θ, snapshots, and what a method looks back on."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from evergait.config import Config
from evergait.core.arrays import Float32, Float64, Int32
from evergait.core.errors import EvergaitError
from evergait.engines import Outcome
from evergait.methods import Collection, Context, Stage
from evergait.policy import Policy
from evergait.store.ledger import Ledger, Record, header_line
from evergait.store.phases import PhaseWriter
from evergait.tasks import Task
from evergait.training.evaluate import Collector
from evergait.training.observer import Diagnostics, Position, add, means
from evergait.training.search import Generation
from evergait.training.state import State
from evergait.workers import Workers


def used(config: Config, state: State) -> int:
    """How much of a phase is done, in the unit of its length."""
    return state.spent if config.steps else state.generation


def position(config: Config, stage: Stage, state: State) -> Position:
    """Where a phase is, for observers."""
    return Position(stage, state.generation, state.n_steps, used(config, state), config.phase_length)


def progress(config: Config, state: State) -> dict[str, int]:
    """How far a phase is, for those who look into its folder."""
    found = {"generation": state.generation, config.unit: config.phase_length}
    return {**found, "spent": state.spent} if config.steps else found


def is_due(config: Config, state: State) -> bool:
    """Whether the policy is to be evaluated after this generation."""
    if used(config, state) >= config.phase_length:
        return True
    if not config.steps:
        return state.generation % config.evaluation.every == 0
    every, before = config.evaluation.every_steps, state.spent - sum(state.steps.values())
    return state.spent // every > before // every


def account(
    config: Config, state: State, generation: Generation, outcomes: Sequence[Outcome], seen: Diagnostics
) -> State:
    """Count what a generation used, and let its observations and lengths decide what the next one sees."""
    steps, statistics, horizon = dict(state.steps), state.statistics, state.horizon
    for i, (batch, outcome) in enumerate(zip(generation.batches, outcomes, strict=True)):
        kind = "replay" if batch.replay else "training"
        steps[kind] = steps.get(kind, 0) + int(outcome.lengths.sum())
        if generation.updates_statistics(i):
            statistics = statistics.add(batch.task, outcome.lengths, outcome.statistics)
    if config.adaptive_horizon and not generation.batches[0].replay:
        if config.adaptive_horizon_over == "all":
            horizon = int(2 * np.concatenate([outcome.lengths for outcome in outcomes]).mean())
        else:
            horizon = int(np.ceil(2 * outcomes[0].lengths.mean()))
        horizon = min(horizon, config.horizon or horizon)
    n_steps = sum(int(outcome.lengths.sum()) for outcome in outcomes)
    if config.steps and not n_steps:
        raise EvergaitError(f"steps: no episode of generation {generation.number} took one; none would ever be used")
    return replace(
        state,
        generation=generation.number,
        statistics=statistics,
        horizon=horizon,
        steps=steps,
        n_steps=state.n_steps + n_steps,
        spent=state.spent + n_steps,
        diverged=state.diverged + sum(int(outcome.diverged.sum()) for outcome in outcomes),
        diagnostics=add(state.diagnostics, seen.numbers()),
    )


def keep_best(config: Config, state: State, seen: Diagnostics) -> State:
    """Note the new θ if its generation's members did better on what is being learnt than any before."""
    if config.carry != "best-population" or not seen.fitness.size:
        return state
    is_best = seen.mean_fitness > state.best_return or not state.best_theta.size
    return replace(state, best_theta=state.theta, best_return=seen.mean_fitness) if is_best else state


def recorded(
    config: Config,
    stage: Stage,
    state: State,
    returns: Mapping[str, Float64],
    lengths: Mapping[str, Int32],
    horizon: int,
) -> tuple[State, Record]:
    """An evaluation as a record of the ledger; the best θ on what is being learnt is kept, and snapshots are."""
    n_steps = sum(int(part.sum()) for part in lengths.values())
    record = Record(
        state.generation,
        {task: part.tolist() for task, part in returns.items()},
        {task: part.tolist() for task, part in lengths.items()},
        {**state.steps, "evaluation": n_steps},
        state.diverged,
        horizon,
        means(state.diagnostics),
    )
    achieved = float(np.mean([record.mean(task.name) for task in stage.tasks]))
    if config.carry != "best-population" and achieved > state.best_return:
        state = replace(state, best_theta=state.theta, best_return=achieved)
    if is_snapshot(config, state):
        state = replace(state, snapshots={**state.snapshots, str(state.generation): state.theta})
    return replace(state, steps={}, diverged=0, diagnostics={}, n_steps=state.n_steps + n_steps), record


def is_snapshot(config: Config, state: State) -> bool:
    """Whether this is the first evaluation past one of the evenly spaced snapshots."""
    done, total, parts = used(config, state), config.phase_length, config.evaluation.snapshots + 1
    since = sum(state.steps.values()) if config.steps else config.evaluation.every
    before = max(done - since, 0)
    return 0 < done < total and done * parts // total > before * parts // total


def header(config: Config, policy: Policy, stage: Stage, random_returns: Mapping[str, Sequence[float]]) -> bytes:
    """The first line of a phase's ledger."""
    learning, names = (tuple(task.name for task in tasks) for tasks in (stage.tasks, policy.tasks))
    every_steps = config.evaluation.every_steps
    return header_line(Ledger(stage.index, learning, names, random_returns, every_steps=every_steps))


def resume(policy: Policy, start: State, writer: PhaseWriter) -> State:
    """The state that an earlier process saved, which must fit this phase."""
    tensors, metadata = writer.resumed or ({}, {})
    state = State.load(tensors, metadata, policy, writer.folder.path)
    found, expected = ({k: v.shape for k, v in s.optimizer.items()} for s in (state, start))
    if found != expected:
        raise EvergaitError(f"{writer.folder.path}: its checkpoint does not fit the optimizer of its config")
    return state


def look_back(config: Config, policy: Policy, workers: Workers, stage: Stage, state: State) -> State:
    """Let the method keep what it needs of the phase before; what it simulates for that is counted."""
    collector = Collector(workers, config.seed, stage.index)

    def collect(task: Task, collection: Collection) -> Float32:
        return collector.collect(task, policy.network(task, state.statistics), state.theta, collection)

    memory = config.method.begin(Context(stage, policy, state.statistics), state.theta, state.memory, collect)
    n_steps = collector.n_steps
    steps = {"collection": n_steps} if n_steps else {}
    return replace(state, memory=memory, steps=steps, n_steps=n_steps, spent=n_steps)
