"""Several starts within the length of one phase: some initial weights lead nowhere, and a short look tells which."""

from dataclasses import replace

from evergait.config import Config
from evergait.core.arrays import Float32
from evergait.core.random import INITIAL_WEIGHTS
from evergait.methods import Stage
from evergait.policy import Policy, Statistics
from evergait.training.keeping import used
from evergait.training.observer import Diagnostics
from evergait.training.state import GROUPS, State


def restart(config: Config, policy: Policy, stage: Stage, start: State, state: State, seen: Diagnostics) -> State:
    """Where the next generation begins: where the last one ended, at the next start or, after the last, at the best.

    A start has had its share when the phase has used it; how good it is, the members of its last generation say. One
    that was a replay says nothing: the start has another.
    """
    each = config.starting * config.phase_length / config.starts
    if config.starts == 1 or state.n_started == config.starts or used(config, state) < (state.n_started + 1) * each:
        return state
    if not seen.fitness.size:
        return state
    if not state.rival or seen.mean_fitness > state.rival_return:
        kept = {name: tensor for name, tensor in state.tensors().items() if name.startswith(GROUPS)}
        state = replace(state, rival={"theta": state.theta, **kept}, rival_return=seen.mean_fitness)
    state = replace(state, n_started=state.n_started + 1)
    if state.n_started < config.starts:
        theta = fresh(config, policy, stage, start.theta, state.n_started)
        return replace(state, theta=theta, optimizer=start.optimizer, statistics=start.statistics)
    optimizer, statistics = (
        {key: state.rival[f"{group}.{key}"] for key in now}
        for group, now in (("optimizer", state.optimizer), ("statistics", state.statistics.sums))
    )
    return replace(state, theta=state.rival["theta"], optimizer=optimizer, statistics=Statistics(statistics), rival={})


def fresh(config: Config, policy: Policy, stage: Stage, theta: Float32, index: int) -> Float32:
    """(n_parameters,) initial weights of another number: all of them, or in later phases the own layers of what is
    learnt, also of a task that comes back: only the first start has what it knew.
    """
    drawn = policy.initial(config.seed, INITIAL_WEIGHTS, index)
    if stage.index == 0:
        return drawn
    theta = theta.copy()
    for task in stage.tasks:
        for begin, end in policy.active(task, "own"):
            theta[begin:end] = drawn[begin:end]
    return theta
