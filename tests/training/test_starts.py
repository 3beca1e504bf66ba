"""Several starts within a phase, and what shrinks on the way: the best goes on, through any interruption."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small import QuitError, tiny_config

from evergait import train
from evergait.core.arrays import Float64
from evergait.core.errors import EvergaitError
from evergait.es import Adam
from evergait.methods import Naive, Step
from evergait.policy import PolicyConfig, Statistics
from evergait.training.observer import Diagnostics, Observer, Position
from evergait.training.search import Generation
from evergait.training.starts import fresh, restart
from evergait.training.state import State

POLICY = PolicyConfig(6, (6,), normalise=True, heads="separate")
CONFIG = tiny_config(
    generations=8, starts=3, starting=0.5, anneal=0.5, optimizer=Adam(0.1), policy=POLICY, method=Naive()
)


class EveryTime(Observer):
    """Ends training after every generation."""

    def generation_done(self, at: Position, seen: Diagnostics) -> None:
        raise QuitError


def test_starts_go_on_where_they_were_left(tmp_path: Path) -> None:
    undisturbed, n_quits = train(CONFIG, tmp_path / "undisturbed", threads=1), 0
    while True:
        try:
            run = train(CONFIG, tmp_path / "run", observers=[EveryTime()], checkpoint_seconds=0, threads=1)
            break
        except QuitError:
            n_quits += 1
    assert n_quits == 16
    assert run.theta_sha256 == undisturbed.theta_sha256
    assert [ledger.records for ledger in run.ledgers] == [ledger.records for ledger in undisturbed.ledgers]


def seen(fitness: Float64) -> Diagnostics:
    stage = CONFIG.stages()[0]
    return Diagnostics(Step(1, stage.batches, [fitness], np.zeros(1), np.ones(1, np.bool_)), 0.0, 0)


def test_the_start_whose_members_do_best_goes_on() -> None:
    config = replace(CONFIG, generations=6)  # a start is one generation
    policy, stage = config.build_policy(), config.stages()[0]
    start = State(policy.initial(0), Adam().start(policy.n_parameters), Statistics.empty(policy.tasks))
    state, ends = start, []
    for number, fitness in enumerate((1.0, 5.0, np.nan), 1):
        state = replace(state, theta=state.theta + np.float32(number), generation=number)
        ends.append(state)
        state = restart(config, policy, stage, start, state, seen(np.array([fitness, fitness])))
        loaded = State.load(state.tensors(), state.metadata(), policy, "here")
        assert loaded.rival.keys() == state.rival.keys()
        assert (loaded.n_started, loaded.rival_return) == (number, 5.0 if number > 1 else 1.0)
        if number < 3:
            assert (state.theta == policy.initial(0, index=number)).all()
            assert state.statistics == start.statistics
    assert (state.theta == ends[1].theta).all()
    assert not state.rival
    after = replace(state, generation=4)
    assert restart(config, policy, stage, start, after, seen(np.array([9.0, 9.0]))) is after


@pytest.mark.parametrize("name", ["rival.theta", "rival.optimizer.first", "rival.statistics.InvertedPendulum-v5"])
def test_the_best_start_of_a_damaged_checkpoint_is_refused(name: str) -> None:
    policy, stage = CONFIG.build_policy(), CONFIG.stages()[0]
    start = State(policy.initial(0), Adam().start(policy.n_parameters), Statistics.empty(policy.tasks))
    state = restart(CONFIG, policy, stage, start, replace(start, generation=4), seen(np.array([1.0, 1.0])))
    tensors, metadata = state.tensors(), state.metadata()
    State.load(tensors, metadata, policy, "here")
    with pytest.raises(EvergaitError, match=f"here: its tensor '{name}' does not fit"):
        State.load({**tensors, name: tensors[name][:-1]}, metadata, policy, "here")
    with pytest.raises(EvergaitError, match=f"here: its tensor '{name}' does not fit"):
        State.load({key: tensor for key, tensor in tensors.items() if key != name}, metadata, policy, "here")


def test_a_generation_that_was_a_replay_judges_no_start() -> None:
    policy, stage = CONFIG.build_policy(), CONFIG.stages()[1]
    start = State(policy.initial(0), Adam().start(policy.n_parameters), Statistics.empty(policy.tasks))
    state = replace(start, generation=4)
    replayed = (replace(stage.batches[0], replay=True),)
    blind = Diagnostics(Step(4, replayed, [np.array([9.0, 9.0])], np.zeros(1), np.ones(1, np.bool_)), 0.0, 0)
    assert restart(CONFIG, policy, stage, start, state, blind) is state
    assert restart(CONFIG, policy, stage, start, state, seen(np.array([9.0, 9.0]))).n_started == 1


@pytest.mark.parametrize("stream", [("InvertedPendulum-v5", "Reacher-v5"), ("Reacher-v5", "InvertedPendulum-v5") * 2])
def test_a_later_phase_starts_anew_only_the_own_layers_of_what_it_learns(stream: tuple[str, ...]) -> None:
    config = replace(CONFIG, stream=stream)
    policy, stage = config.build_policy(), config.stages()[-1]
    theta = policy.initial(7)
    redrawn = fresh(config, policy, stage, theta, 2) != theta
    expected = np.zeros(policy.n_parameters, np.bool_)
    for begin, end in policy.active(stage.tasks[0], "own"):
        expected[begin:end] = True
    assert (redrawn == expected).all()


@pytest.mark.parametrize(("done", "left"), [(0.0, 1.0), (0.5, 0.75), (1.0, 0.5)])
def test_sigma_and_the_learning_rate_fall_evenly(done: float, left: float) -> None:
    policy, stage = CONFIG.build_policy(), CONFIG.stages()[0]
    generation = Generation(CONFIG, policy, stage, 1, stage.batches, done)
    request = generation.episodes(0, policy.initial(0), Statistics.empty(policy.tasks), 0)
    assert request.sigma == CONFIG.sigma * left
    assert generation.optimizer == replace(CONFIG.optimizer, learning_rate=0.1 * left)
