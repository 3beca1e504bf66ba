"""Training: same bits whatever happens, nothing trained twice, and it does learn."""

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from small import QuitError, every_method, tiny_config

from evergait import Config, EvergaitError, train
from evergait.config import Evaluation
from evergait.core.arrays import Float32
from evergait.es import Adam, Optimizer
from evergait.methods import Collection, Context, Distill, Ewc, Freeze, Memory, Method, Multitask, Naive, Replay, Step
from evergait.policy import PolicyConfig, Statistics
from evergait.training.observer import Diagnostics, Observer, Position
from evergait.training.run import Run, default_threads
from evergait.training.search import Generation


class Seen(Observer):
    """Remembers what was trained."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.generations = 0

    def phase_started(self, at: Position) -> None:
        self.started.append(at.stage.name)

    def generation_done(self, at: Position, seen: Diagnostics) -> None:
        self.generations += 1


def files(run: Run) -> dict[str, bytes]:
    """What a run's phases hold, times aside."""
    names = ("config.toml", "ledger.jsonl", "theta.safetensors")
    return {f"{phase.name}/{name}": (phase.path / name).read_bytes() for phase in run.phases for name in names}


BUDGET = 4400
CUT = Evaluation(every=2, episodes=2, random_policies=2, cut=True)
BY_STEPS = Evaluation(every_steps=1100, episodes=1, random_policies=1)


@pytest.mark.parametrize("n_threads", [2, 7])
def test_threads_do_not_change_a_bit(trained: Path, tmp_path: Path, n_threads: int) -> None:
    assert files(train(tiny_config(), tmp_path / "run", threads=n_threads)) == files(Run.load(trained))


@pytest.mark.parametrize(
    "changes",
    [{"method": method} for method in every_method(budget=4)]
    + [{"optimizer": member()} for member in Optimizer.members.values()]
    + [
        {"policy": PolicyConfig(normalise=True, replay_updates_statistics=True)},
        {"policy": PolicyConfig(heads="separate", hidden=(8, 8), activation="tanh")},
        {"steps": BUDGET, "horizon": 20, "evaluation": BY_STEPS},
        {"episodes": 2, "adaptive_horizon": True, "shaping": "nes", "perturb": "all", "carry": "best"},
        {"stream": ("InvertedPendulum-v5@gravity=0.5,observation_noise=0.1", "InvertedPendulum-v5"), "horizon": 20},
        {"method": Replay(budget=4, ranks="per-task", update="shared", budget_is="per-task", weight=0.5)},
        {"method": Replay(budget=2, average="tasks", budget_is="pairs-per-task"), "shaping": "ordered-ranks"},
        {"carry": "best-population", "resets": "member", "episodes": 2, "perturb": "layers"},
        {"adaptive_horizon": True, "adaptive_horizon_over": "all", "evaluation": CUT},
        {"method": Ewc(importance="search", decay=0.5)},
        {"method": Distill(steps=2), "policy": PolicyConfig(normalise=True, heads="separate")},
        {"method": Distill(steps=2), "policy": PolicyConfig(heads="separate"), "carry": "best"},
    ],
    ids=str,
)
def test_every_option_trains_the_same_bits_on_one_and_two_threads(changes: dict[str, object], tmp_path: Path) -> None:
    config = tiny_config(generations=3, **changes)
    one, two = (train(config, tmp_path / str(n), threads=n) for n in (1, 2))
    assert files(one) == files(two)
    assert np.isfinite(one.theta).all()
    assert (one.theta != one.policy.initial(config.seed)).any()


def test_a_horizon_that_follows_the_new_task_leaves_replay_whole(tmp_path: Path) -> None:
    config = tiny_config(stream=("Swimmer-v5", "InvertedPendulum-v5"), adaptive_horizon=True, engine="auto")
    ledger = train(config, tmp_path / "run", threads=1).ledgers[1]
    n_replayed = sum(record.steps.get("replay", 0) for record in ledger.records)
    assert n_replayed == config.generations * 4 * 1000  # a swimmer never falls, a pendulum soon does
    assert sum(record.steps.get("training", 0) for record in ledger.records) < n_replayed / 2


def test_evaluations_may_be_cut_where_training_was(tmp_path: Path) -> None:
    settings = {"stream": ("Swimmer-v5", "InvertedPendulum-v5"), "engine": "auto"}
    run = train(tiny_config(**settings, adaptive_horizon=True, evaluation=CUT), tmp_path / "run", threads=1)
    first, *later = run.ledgers[1].records
    assert first.horizon == 0
    assert set(first.lengths["Swimmer-v5"]) == {1000}
    for record in later:
        assert 0 < record.horizon < 1000
        assert set(record.lengths["Swimmer-v5"]) == {record.horizon}  # a swimmer never falls


def test_the_best_population_decides_what_is_carried_and_survives_a_kill(tmp_path: Path) -> None:
    config = replace(remembering(Naive()), carry="best-population", seed=3)
    run = train(config, tmp_path / "run", threads=1)
    assert any((run.state(i).best_theta != run.state(i).theta).any() for i in range(3))
    assert files(train_through_quits(config, tmp_path / "quit")[0]) == files(run)


def test_members_with_their_own_resets_meet_different_states() -> None:
    config = tiny_config(resets="member", episodes=3)
    policy, stage = config.build_policy(), config.stages()[1]
    pair, member = (
        Generation(replace(config, resets=resets), policy, stage, 1, stage.batches)
        .episodes(0, policy.initial(0), Statistics.empty(policy.tasks), 0)
        .seed.reshape(-1, 2, 3)
        for resets in ("pair", "member")
    )
    assert (pair[:, 0] == pair[:, 1]).all()
    assert len(np.unique(pair)) == pair.size // 2
    assert len(np.unique(member)) == member.size


class Quitter(Seen):
    """An observer that ends training, after its checkpoint, in the fifth generation that it sees."""

    def generation_done(self, at: Position, seen: Diagnostics) -> None:
        super().generation_done(at, seen)
        if self.generations == 5:
            raise QuitError


def train_through_quits(config: Config, out: Path) -> tuple[Run, int]:
    """A run that was ended and resumed again and again, and how often."""
    n_quits = 0
    while True:
        try:
            return train(config, out, observers=[Quitter()], checkpoint_seconds=0, threads=1), n_quits
        except QuitError:
            n_quits += 1


STREAM = ("InvertedPendulum-v5", "Reacher-v5", "InvertedDoublePendulum-v5", "InvertedPendulum-v5")
METHODS = [*every_method(budget=6), Ewc(importance="search")]


def remembering(method: Method) -> Config:
    """Four phases of three generations, the last one a return."""
    evaluation = Evaluation(every=2, episodes=1, random_policies=1)
    return tiny_config(stream=STREAM, generations=3, pairs=3, evaluation=evaluation, method=method)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_goes_on_from_the_middle_of_any_phase(method: Method, tmp_path: Path) -> None:
    config = remembering(method)
    undisturbed = train(config, tmp_path / "undisturbed", threads=1)
    run, n_quits = train_through_quits(config, tmp_path / "run")
    assert n_quits == len(config.stages()) * 3 // 5
    assert files(run) == files(undisturbed)


KEEPING = Distill(collection=Collection(episodes=1))


def budgeted(method: Method) -> Config:
    """Four phases of so many environment steps, the last one a return."""
    return tiny_config(stream=STREAM, steps=BUDGET, pairs=6, horizon=20, evaluation=BY_STEPS, method=method)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Method], Run]:
    """Budgeted runs that nothing disturbed, each trained once."""
    return cache(lambda method: train(budgeted(method), tmp_path_factory.mktemp("budget") / "run", threads=1))


@pytest.mark.parametrize("method", [Naive(), Replay(budget=6), KEEPING], ids=lambda method: method.name)
def test_a_budget_of_steps_pays_for_all_but_evaluations(method: Method, undisturbed: Callable[[Method], Run]) -> None:
    run = undisturbed(method)
    largest = (12 + 6) * 20  # a generation's training and replay
    for ledger in run.ledgers:
        assert len(ledger.records) == 5
        spent = {**ledger.total_steps(), "evaluation": 0}
        collected = spent["collection"]
        assert BUDGET <= sum(spent.values()) < max(BUDGET, collected) + largest
        cumulative = np.cumsum([sum(record.steps.values()) - record.steps["evaluation"] for record in ledger.records])
        for i, taken in enumerate(cumulative):
            assert i * 1100 <= taken < max(i * 1100, collected) + largest
    assert run.ledgers[0].axis == [0, 0.0011, 0.0022, 0.0033, 0.0044]


@pytest.mark.parametrize("method", [Replay(budget=6), KEEPING], ids=lambda method: method.name)
def test_a_budget_of_steps_is_kept_through_interruptions(
    method: Method, undisturbed: Callable[[Method], Run], tmp_path: Path
) -> None:
    run, n_quits = train_through_quits(budgeted(method), tmp_path / "run")
    assert n_quits >= 3
    assert files(run) == files(undisturbed(method))


def test_memory_grows_with_the_stream_and_is_counted(tmp_path: Path) -> None:
    run = train(remembering(Distill()), tmp_path / "run", threads=1)
    a, b, c, _ = STREAM
    memories = [run.state(stage).memory for stage in range(4)]
    tasks = [sorted({name.split(".")[1] for name in memory}) for memory in memories]
    assert tasks == [[], [a], [a, b], [c, b]]  # the return to the first task lets go of it
    name = f"distill.{b}.outputs"
    assert memories[2][name].tobytes() == memories[3][name].tobytes()
    assert memories[2][name].shape == (8 * 50, 2)  # all that eight episodes of Reacher have
    collected = [ledger.total_steps()["collection"] for ledger in run.ledgers]
    assert collected[0] == 0
    assert min(collected[1:]) > 0
    assert collected[2] == 8 * 50


def test_frozen_layers_forget_nothing(tmp_path: Path) -> None:
    run = train(tiny_config(method=Freeze()), tmp_path / "run", threads=1)
    first, second = run.ledgers
    learnt = first.records[-1].returns["InvertedPendulum-v5"]
    assert all(record.returns["InvertedPendulum-v5"] == learnt for record in second.records)
    assert second.curve("Reacher-v5")[0] != second.curve("Reacher-v5")[-1]


def test_threads_where_a_system_cannot_say_which_processors_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert default_threads() == (os.cpu_count() or 1)


def test_seeds_matter(trained: Path, tmp_path: Path) -> None:
    assert train(tiny_config(seed=1), tmp_path / "run", threads=1).theta_sha256 != Run.load(trained).theta_sha256


def test_a_finished_run_is_not_trained_again(trained: Path) -> None:
    seen = Seen()
    train(tiny_config(), trained, observers=[seen], threads=1)
    assert seen.generations == 0


def test_shared_prefixes_are_trained_once(tmp_path: Path) -> None:
    store, seen = tmp_path / "store", Seen()
    a, b, c = "InvertedPendulum-v5", "Reacher-v5", "InvertedDoublePendulum-v5"
    for i, (stream, method) in enumerate(
        [((a, b), Replay(budget=4)), ((a, b), Naive()), ((a, c), Naive()), ((a,), Naive())]
    ):
        config = tiny_config(stream=stream, tasks=(a, b, c), method=method)
        train(config, tmp_path / str(i), store=store, observers=[seen], threads=1)
    assert seen.started == [a, b, b, c]


def test_a_phase_that_is_called_naive_is_a_naive_one(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Wipe(Method, name="wipe"):
        """Does not say that first phases are not naive ones."""

        def after_step(self, context: Context, step: Step, theta: Float32, memory: Memory) -> tuple[Float32, Memory]:
            return theta * 0, memory

    try:
        wiped = train(tiny_config(method=Wipe()), tmp_path / "wiped", threads=1)
    finally:
        del Method.members["wipe"]
    naive = train(tiny_config(method=Naive()), tmp_path / "naive", threads=1)
    assert wiped.phases[0].name == naive.phases[0].name
    assert (wiped.state(0).theta == naive.state(0).theta).all()
    assert not wiped.theta.any()


def test_names_threads_and_paths_do_not_decide_the_hash(tmp_path: Path) -> None:
    runs = [
        train(tiny_config(stream=stream), tmp_path / str(i), threads=i + 1)
        for i, stream in enumerate(
            [("InvertedPendulum-v5", "Reacher-v5"), ("InvertedPendulum-v5@gravity=1.0", "Reacher-v5")]
        )
    ]
    assert runs[0].phases[1].name == runs[1].phases[1].name


def test_another_config_into_the_same_folder_is_refused(trained: Path) -> None:
    before = files(Run.load(trained))
    with pytest.raises(EvergaitError, match=r"another config \(seed is 0 there and 5 here\)"):
        train(tiny_config(seed=5), trained, threads=1)
    assert files(Run.load(trained)) == before


def test_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("dear")
    with pytest.raises(EvergaitError, match="not empty and not a run's folder"):
        train(tiny_config(), tmp_path, threads=1)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_config_that_someone_wrote_is_not_written_over(tmp_path: Path) -> None:
    mine = "# my notes\nsigma = 0.3\n"
    (tmp_path / "config.toml").write_text(mine)
    with pytest.raises(EvergaitError, match=r"config.toml is there already, with something else in it"):
        train(tiny_config(), tmp_path)
    assert (tmp_path / "config.toml").read_text() == mine


def test_two_trainings_in_one_program_share_the_processes_of_an_engine(tmp_path: Path) -> None:
    config = tiny_config(stream=("CartPole-v1",), method=Naive(), horizon=20, engine="gymnasium")
    with ThreadPoolExecutor(2) as pool:
        seeds = [replace(config, seed=seed) for seed in (1, 2)]
        together = list(pool.map(lambda c: train(c, tmp_path / f"{c.seed}", threads=2), seeds))
    alone = [train(c, tmp_path / f"alone{c.seed}", threads=1) for c in seeds]
    assert [run.theta_sha256 for run in together] == [run.theta_sha256 for run in alone]


def test_zero_threads_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EvergaitError, match="threads: is 0; it must be at least 1"):
        train(tiny_config(), tmp_path / "run", threads=0)
    assert not (tmp_path / "run").exists()


def test_it_learns(tmp_path: Path) -> None:
    config = Config(
        stream=("InvertedPendulum-v5",),
        generations=60,
        pairs=16,
        engine="mujoco",
        optimizer=Adam(learning_rate=0.05),
        evaluation=Evaluation(every=10, episodes=4, random_policies=2),
    )
    curve = train(config, tmp_path / "run", threads=1).ledger.curve("InvertedPendulum-v5")
    assert curve[0] < 100
    assert curve.max() > 10 * curve[0]


def test_multitask_is_one_phase(tmp_path: Path) -> None:
    run = train(tiny_config(method=Multitask()), tmp_path / "run", threads=1)
    assert len(run.phases) == 1
    assert run.ledger.learning == ("InvertedPendulum-v5", "Reacher-v5")


def test_steps_are_counted_apart(trained: Path) -> None:
    first, second = (ledger.total_steps() for ledger in Run.load(trained).ledgers)
    assert first["replay"] == 0
    assert second["training"] == 4 * 12 * 50  # Reacher always takes 50 steps
    assert 0 < second["replay"] <= 4 * 4 * 1000
    assert second["evaluation"] >= 3 * 2 * 50
