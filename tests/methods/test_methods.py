"""Every registered method runs the same suite; each is also checked by hand."""

import re
import types
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import every_method, tiny_config

from evergait.config import Config
from evergait.core.data import to_identity
from evergait.core.errors import EvergaitError
from evergait.methods import Batch, Interval, Method, Multitask, Naive, Replay, Stage, rank_together, weighted_sum
from evergait.tasks import Task
from evergait.training.run import train

A, B, C = (Task(name) for name in ("A-v0", "B-v0", "C-v0"))
EVERY = [pytest.param(method, id=method.name) for method in every_method()]


def plan(method: Method, stage: Stage, generation: int) -> tuple[Batch, ...]:
    """What a generation evaluates when the method remembers nothing yet."""
    return method.plan(stage, generation, stage.batches, {})


@pytest.mark.parametrize("method", EVERY)
@pytest.mark.parametrize("stream", [(A,), (A, B), (A, B, A), (A, B, C)])
def test_plans_only_tasks_that_were_met(method: Method, stream: tuple[Task, ...]) -> None:
    for stage in method.stages(stream, 384, 0):
        for generation in range(1, 30):
            batches = plan(method, stage, generation)
            assert batches == plan(method, stage, generation)
            for batch in batches:
                assert batch.n_pairs > 0
                assert batch.task in (stage.earlier if batch.replay else stage.tasks)


@pytest.mark.parametrize("method", EVERY)
def test_the_first_of_several_tasks_is_trained_as_if_naive(method: Method) -> None:
    first = method.stages((A, B), 384, 0)[0]
    if first.tasks == (A,):
        assert plan(method, first, 7) == plan(Naive(), first, 7)
        assert method.settings(first) == Naive().settings(first)


@pytest.mark.parametrize("method", EVERY)
def test_utilities_have_a_place_for_every_member(method: Method) -> None:
    stage = method.stages((A, B, C), 6, 0)[-1]
    for generation in range(1, 9):
        batches = plan(method, stage, generation)
        fitness = [np.arange(2.0 * batch.n_pairs) for batch in batches]
        ranked = rank_together(fitness, "centered-ranks")
        utilities = method.utilities(batches, fitness, "centered-ranks", ranked)
        assert [len(u) for u in utilities] == [2 * batch.n_pairs for batch in batches]


def test_a_repeated_task_is_not_its_own_past() -> None:
    assert [stage.earlier for stage in Naive().stages((A, B, A, C), 1, 0)] == [(), (A,), (B,), (A, B)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"budget": 192}, [48, 48]),
        ({"budget": 10}, [3, 2]),  # the remainder goes to the earliest
        ({"budget": 2}, [1]),
        ({"budget": 12, "budget_is": "per-task"}, [6, 6]),
        ({"budget": 3, "budget_is": "pairs-per-task"}, [3, 3]),
    ],
)
def test_replay_splits_its_budget(options: dict[str, Any], expected: list[int]) -> None:
    method = Replay(**options)
    current, *replayed = plan(method, method.stages((A, B, C), 384, 0)[2], 1)
    assert current == Batch(C, 384)
    assert [batch.n_pairs for batch in replayed] == expected
    assert [batch.task for batch in replayed] == [A, B][: len(expected)]


@pytest.mark.parametrize("n_pairs", [1, 2, 3, 4])
def test_with_fewer_pairs_than_earlier_tasks_these_take_turns(n_pairs: int) -> None:
    tasks = [Task(f"{name}-v0") for name in "ABCDEF"]
    method = Replay(budget=2 * n_pairs)
    stage = method.stages(tasks, 8, 0)[5]
    replayed = [batch for generation in range(1, 6) for batch in plan(method, stage, generation) if batch.replay]
    assert {batch.n_pairs for batch in replayed} == {1}
    assert Counter(batch.task for batch in replayed) == dict.fromkeys(tasks[:5], n_pairs)
    assert method.settings(stage) != to_identity(method)  # earlier versions replayed the earliest only
    assert method.settings(method.stages(tasks, 8, 0)[n_pairs]) == to_identity(method)


def test_replay_ranks_together_or_apart() -> None:
    batches = [Batch(C, 1), Batch(A, 1, replay=True)]
    fitness = [np.array([1.0, 2.0]), np.array([30.0, 40.0])]
    ranked = rank_together(fitness, "centered-ranks")
    joint = Replay(ranks="joint").utilities(batches, fitness, "centered-ranks", ranked)
    assert np.concatenate(joint).tolist() == pytest.approx([-1 / 2, -1 / 6, 1 / 6, 1 / 2])
    apart = Replay(ranks="per-task").utilities(batches, fitness, "centered-ranks", ranked)
    assert np.concatenate(apart).tolist() == [-0.5, 0.5, -0.5, 0.5]


def test_weight_counts_on_the_replayed_part_only() -> None:
    method = Replay(budget=2, weight=0.5)
    batches = plan(method, method.stages((A, B), 4, 0)[1], 1)
    assert weighted_sum(batches, [np.array([1.0]), np.array([1.0])]).tolist() == [1.5]


def test_averaged_by_tasks_replay_weighs_the_same_whatever_its_budget() -> None:
    method = Replay(budget=2, budget_is="per-task", average="tasks", weight=3.0)
    current, *replayed = plan(method, method.stages((A, B, C), 4, 0)[2], 1)
    assert current == Batch(C, 4, averaged_alone=True)
    assert replayed == [Batch(old, 1, replay=True, weight=1.5, averaged_alone=True) for old in (A, B)]


def test_options_that_came_later_are_named_only_where_they_are_used() -> None:
    stage = Replay().stages((A, B), 4, 0)[1]
    assert "average" not in Replay().settings(stage)
    assert Replay(average="tasks").settings(stage)["average"] == "tasks"


def test_interval_follows_algorithm_1() -> None:
    method = Interval(interval=3)
    stage = method.stages((A, B, C), 5, 0)[2]
    tasks = [plan(method, stage, generation)[0].task for generation in range(1, 10)]
    assert tasks == [C, C, A, C, C, B, C, C, A]
    assert plan(method, stage, 3) == (Batch(A, 5, replay=True),)


def test_interval_choices() -> None:
    stage = Interval().stages((A, B, C), 5, 0)[2]
    latest = [plan(Interval(2, "latest"), stage, g)[0].task for g in (2, 4, 6)]
    assert latest == [B, B, B]
    uniform = [plan(Interval(2, "uniform"), stage, g)[0].task for g in range(2, 80, 2)]
    assert {A, B} == set(uniform)
    assert 8 < uniform.count(A) < 31


def test_interval_zero_never_replays() -> None:
    stage = Interval(0).stages((A, B), 5, 0)[1]
    assert all(not plan(Interval(0), stage, g)[0].replay for g in range(1, 20))
    assert Interval(0).settings(stage) == Naive().settings(stage)


def test_multitask_takes_turns_or_shares() -> None:
    (stage,) = Multitask().stages((A, B, C), 8, 0)
    assert [plan(Multitask(), stage, g)[0].task for g in range(1, 5)] == [A, B, C, A]
    together = plan(Multitask("all-tasks"), stage, 1)
    assert [(batch.task, batch.n_pairs) for batch in together] == [(A, 3), (B, 3), (C, 2)]


def test_a_task_that_no_pair_would_be_left_for_is_refused() -> None:
    method = Multitask("all-tasks")
    method.check(method.stages((A, B, C, A), 3, 0))
    with pytest.raises(
        EvergaitError, match=r"method.each_generation: is 'all-tasks'; it must be 'one-task' with fewer"
    ):
        method.check(method.stages((A, B, C), 2, 0))


@pytest.mark.parametrize("budget", [0, 3, -2, 800])
def test_impossible_budgets_are_refused(budget: int) -> None:
    method = Replay(budget=budget)
    with pytest.raises(EvergaitError, match=rf"method.budget: is {budget}; it must be an even number from 2 to"):
        method.check(method.stages((A, B), 384, 0))


def test_replay_with_nothing_to_replay_is_refused() -> None:
    with pytest.raises(EvergaitError, match="replay needs an earlier task"):
        Replay().check(Replay().stages((A,), 384, 0))


def test_interval_one_is_refused() -> None:
    with pytest.raises(EvergaitError, match=r"method.interval: is 1; it must be 0 \(never\) or at least 2"):
        Interval(1).check(Interval(1).stages((A, B), 384, 0))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("replay+distil", "there is no method 'distil'; did you mean 'distill'?"),
        ("replay+", "there is no method ''"),
        ("distill+ewc+distill", "distill may be there only once"),
        ("multitask+replay", "multitask stands alone: it has no earlier tasks"),
        ("distill+freeze", "freeze stands alone: nothing that an earlier task uses changes"),
        ("naive+anchor", "naive stands alone"),
        ("distill+project", "project needs replay before it; write 'replay\\+project'"),
        ("adaptive+replay", "adaptive needs replay before it; write 'replay\\+adaptive'"),
    ],
)
def test_methods_that_cannot_be_joined_are_refused(name: str, message: str) -> None:
    with pytest.raises(EvergaitError, match=rf"^method: .*{message}"):
        Method.named(name, "method")


def test_a_composite_is_its_parts_one_after_another() -> None:
    method = Method.named("replay+project", "method")(replay=Replay(budget=4))  # type: ignore[call-arg]
    stage = method.stages((A, B), 3, 0)[1]
    assert plan(method, stage, 1) == plan(Replay(budget=4), stage, 1)
    gradients = [np.array([1.0, -1.0]), np.array([0.0, 1.0])]
    assert method.combine(plan(method, stage, 1), gradients, np.zeros(2)).tolist() == [1.0, 0.0]
    assert type(method) is Method.named("replay + project", "method")
    with pytest.raises(EvergaitError, match=r"method.replay.budget: is 4"):
        method.check(method.stages((A, B), 1, 0))


def test_a_composite_is_named_by_what_it_does_in_a_phase() -> None:
    first, second = Naive().stages((A, B), 8, 0)
    method = Method.named("replay+ewc", "method")()
    assert method.settings(first) == {"name": "naive"}
    assert method.settings(second)["name"] == "replay+ewc"
    assert method.settings(second)["replay"] == Replay().settings(second)


@pytest.mark.parametrize(
    ("hook", "value", "words"),
    [
        ("begin", None, "begin has returned None; it must be memory, a dictionary of arrays"),
        ("begin", {"a": np.array("text")}, "begin has returned"),
        ("plan", (), "plan has returned (); it must be a tuple of batches, at least one"),
        ("utilities", [np.zeros(3)], "a list of float64 arrays, one per batch, of a number per member"),
        ("utilities", [[0.0] * 12], "a list of float64 arrays"),
        ("combine", None, "combine has returned None; it must be a gradient of the same shape"),
        ("after_step", np.zeros(3, np.float32), "after_step has returned array([0., 0., 0.], dtype=float32); it must"),
        ("after_step", (np.zeros(3, np.float32), {}), "it must be θ, float32 and of the same shape, and memory"),
    ],
)
def test_what_a_hook_of_ones_own_may_not_return_is_told(hook: str, value: Any, words: str, tmp_path: Path) -> None:
    fields = {"__module__": __name__, hook: lambda self, *given: value}
    try:
        made: Any = dataclass(frozen=True)(
            types.new_class("Odd", (Method,), {"name": "odd"}, lambda space: space.update(fields))
        )
        config = tiny_config(method=made())
        with pytest.raises(EvergaitError, match=re.escape(words)):
            train(config, tmp_path / "run", threads=1)
    finally:
        Method.members.pop("odd", None)


def test_a_method_of_ones_own_that_nobody_could_use_is_refused() -> None:
    with pytest.raises(EvergaitError, match="there is no hook 'afterstep'; did you mean 'after_step'"):

        class Odd(Method):
            def afterstep(self) -> None: ...

    class Planned(Method):  # what is near a hook's name may be a helper's
        def combined(self) -> None: ...
        def planar(self) -> None: ...
        @staticmethod
        def combine(batches: Any, gradients: Any, combined: Any) -> Any:
            return combined

    assert Planned().combine([], [], 3) == 3
    with pytest.raises(EvergaitError, match="'replay' is the name of a part of evergait"):

        class Mine(Method, name="replay"):
            pass

    assert Method.members["replay"] is Replay
    try:

        class Bare(Method, name="bare"):
            share: float = 0.5

        class Plain(Replay, name="plain"):
            """Has the options of the one that it is made of."""

        with pytest.raises(
            EvergaitError, match=r"method: 'bare' has a field share, but is no @dataclass\(frozen=True\)"
        ):
            Method.named("bare", "method")
        assert Method.named("plain", "method") is Plain
    finally:
        Method.members.pop("bare", None)
        Method.members.pop("plain", None)


def test_a_hook_that_spoils_what_it_was_given_is_found(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Spoil(Method, name="spoil"):
        def after_step(self, context: Any, step: Any, theta: Any, memory: Any) -> Any:
            theta[0] = np.nan
            return theta, memory

    try:
        with pytest.raises(EvergaitError, match="method 'spoil': after_step has returned a θ that is not finite"):
            train(tiny_config(method=Spoil()), tmp_path / "run", threads=1)
    finally:
        del Method.members["spoil"]


def test_a_part_must_be_one_that_does_something() -> None:
    class Odd(Method):
        pass

    with pytest.raises(EvergaitError, match=r"method: Odd has no name; write class Odd\(Method, name='odd'\)"):
        Config(method=Odd())
    for wrong in ("replay", Method()):
        with pytest.raises(EvergaitError, match=r"method: is .*; it must be a Method, such as Adaptive\(\)"):
            Config(method=wrong)  # type: ignore[arg-type]
