"""Methods that keep what was learnt: each on a problem small enough to check by hand."""

import numpy as np
import pytest
from oracles import replay_in_gymnasium
from small import tiny_config

from evergait.core.arrays import Array, Float32, Float64
from evergait.core.random import COLLECTION, Noise
from evergait.methods import Adaptive, Anchor, Batch, Collection, Context, Distill, Ewc, Freeze, Method, Project, Step
from evergait.methods.ewc import gauss_newton_diagonal
from evergait.policy import Policy, PolicyConfig, Statistics
from evergait.tasks import Task, parse_task, spaces
from evergait.training.evaluate import Collector
from evergait.training.search import Generation
from evergait.workers import LocalWorkers

A, B, C = Task("InvertedPendulum-v5"), Task("Reacher-v5"), Task("InvertedDoublePendulum-v5")
CONFIG = PolicyConfig(input_width=3, hidden=(4,), activation="tanh")
POLICY = Policy.build(CONFIG, (A, B, C))


def context(*stream: Task, policy: Policy = POLICY) -> Context:
    """The last phase of a stream."""
    stage = Distill().stages(stream, 4, 0)[-1]
    return Context(stage, policy, Statistics.empty(policy.tasks))


def step(gradient: Float64, batches: tuple[Batch, ...] = (), fitness: tuple[Float64, ...] = ()) -> Step:
    return Step(1, batches, fitness, gradient, np.ones(len(gradient), np.bool_))


def observations(task: Task, n: int) -> Float32:
    return np.random.default_rng(0).normal(size=(n, spaces(task).n_observations)).astype(np.float32)


def nothing(task: Task, collection: Collection) -> Float32:
    raise AssertionError("nothing should be collected")


def test_project_takes_out_what_opposes_replay() -> None:
    batches = (Batch(B, 1), Batch(A, 1, replay=True))
    old = np.array([0.0, 2.0])
    opposing, agreeing = [np.array([3.0, -4.0]), old], [np.array([3.0, 4.0]), old]
    assert Project().combine(batches, opposing, np.zeros(2)).tolist() == [3.0, 0.0]
    assert Project().combine(batches, agreeing, np.zeros(2)).tolist() == [3.0, 4.0]
    assert Project("both").combine(batches, opposing, np.zeros(2)).tolist() == [3.0, 2.0]
    alone = np.array([5.0, 6.0])
    assert Project().combine(batches[:1], opposing[:1], alone) is alone


@pytest.mark.parametrize("stream", [(A, B), (B, A)])  # B has more outputs than A
def test_anchor_goes_back_a_quarter_of_the_way(stream: tuple[Task, ...]) -> None:
    here, method = context(*stream), Anchor(rate=0.25)
    start = POLICY.initial(seed=0)
    memory = method.begin(here, start, {}, nothing)
    after, _ = method.after_step(here, step(np.zeros(len(start))), start + np.float32(1), memory)
    moved = after - start
    shared = np.zeros(len(start), np.bool_)
    for name in ("hidden.0", "head"):
        shared[POLICY.layers[name].offset : POLICY.layers[name].end] = True
    np.testing.assert_allclose(moved[shared], 0.75, atol=1e-6)
    np.testing.assert_allclose(moved[~shared], 1.0, atol=1e-6)


def test_freeze_leaves_everything_that_is_shared() -> None:
    config = tiny_config(method=Freeze(), policy=CONFIG, perturb="all")
    policy = config.build_policy()
    first, second = config.stages()
    for stage, free in ((first, ["hidden.0", "head", f"input.{A}", f"input.{B}"]), (second, [f"input.{B}"])):
        batches = Freeze().plan(stage, 1, stage.batches, {})
        touched = Generation(config, policy, stage, 1, batches).touched()
        assert [name for name, layer in policy.layers.items() if touched[layer.offset : layer.end].any()] == free


def test_ewc_is_the_parabola_of_all_tasks() -> None:
    method = Ewc(strength=0.5, importance="search")
    theta = np.array([1.0, 2.0, 3.0], np.float32)
    _, memory = method.after_step(context(A), step(np.array([1.0, np.sqrt(3.0), 0.0])), theta, {})
    memory = method.begin(context(A, B), theta, memory, nothing)
    np.testing.assert_allclose(memory["ewc.importance"], [0.5, 1.5, 0.0], atol=1e-6)  # 1, 3, 0 over their mean 2
    moved = theta + np.float32(1)
    after, memory = method.after_step(context(A, B), step(np.array([0.0, 2.0, 2.0])), moved, memory)
    np.testing.assert_allclose(after, [1 + 1 / 1.25, 2 + 1 / 1.75, 4.0], atol=1e-6)
    memory = method.begin(context(A, B, C), moved, memory, nothing)
    np.testing.assert_allclose(memory["ewc.importance"], [0.5, 2.5, 1.0], atol=1e-6)
    np.testing.assert_allclose(memory["ewc.anchor"], [1.0, (1.5 * 2 + 1 * 3) / 2.5, 4.0], atol=1e-6)
    assert "ewc.squares" not in memory


def test_ewc_may_let_go_of_the_oldest() -> None:
    method = Ewc(importance="search", decay=0.0)
    old = {"ewc.importance": np.ones(2, np.float32), "ewc.anchor": np.zeros(2, np.float32)}
    memory = {**old, "ewc.squares": np.array([0.0, 4.0], np.float32)}
    after = method.begin(context(A, B, C), np.full(2, 7, np.float32), memory, nothing)
    assert (after["ewc.importance"].tolist(), after["ewc.anchor"].tolist()) == ([0.0, 1.0], [7.0, 7.0])


def test_ewc_lets_a_returning_task_have_its_own_layers() -> None:
    method, theta = Ewc(importance="search"), POLICY.initial(seed=0)
    memory: dict[str, Array] = {}
    for stream in ((A,), (A, B), (A, B, A)):
        memory = dict(method.begin(context(*stream), theta, memory, nothing))
        _, after = method.after_step(context(*stream), step(np.ones(len(theta))), theta, memory)
        memory = dict(after)
    free = [n for n, layer in POLICY.layers.items() if not memory["ewc.importance"][layer.offset : layer.end].any()]
    assert free == [f"input.{A}"]


def test_importance_is_the_gauss_newton_diagonal() -> None:
    theta, seen = POLICY.initial(seed=1), observations(B, 3)
    network = POLICY.network(B)
    expected = np.zeros(len(theta))
    for j in range(len(theta)):
        shift = np.zeros(len(theta))
        shift[j] = 1e-5
        ahead, behind = (network.outputs(theta + s, seen) for s in (shift, -shift))
        expected[j] = np.sum(((ahead - behind) / 2e-5) ** 2) / len(seen)
    np.testing.assert_allclose(gauss_newton_diagonal(network, theta, seen), expected, rtol=1e-6, atol=1e-9)


def test_ewc_collects_from_the_task_that_was_left() -> None:
    asked: list[tuple[Task, Collection]] = []

    def collect(task: Task, collection: Collection) -> Float32:
        asked.append((task, collection))
        return observations(task, 5)

    method = Ewc(collection=Collection(observations=5))
    memory = method.begin(context(A, B, A, C), POLICY.initial(seed=1), {}, collect)
    assert asked == [(A, Collection(observations=5))]
    used = memory["ewc.importance"] > 0
    assert used[POLICY.layers[f"input.{A}"].offset]
    assert not used[POLICY.layers[f"input.{B}"].offset : POLICY.layers[f"input.{B}"].end].any()
    assert np.mean(memory["ewc.importance"][used]) == pytest.approx(1.0, rel=1e-5)


def distillation(method: Distill) -> tuple[Float32, Float32, dict[str, Array]]:
    """θ that remembers task A, another θ, and the memory."""
    teacher = POLICY.initial(seed=1)
    memory = method.begin(context(A, B), teacher, {}, lambda task, _: observations(task, 6))
    return teacher, POLICY.initial(seed=2), dict(memory)


def error(theta: Float32 | Float64, memory: dict[str, Array], task: Task = A) -> float:
    seen, wanted = memory[f"distill.{task}.observations"], memory[f"distill.{task}.outputs"]
    outputs = POLICY.network(task).outputs(theta.astype(np.float64), seen)
    return float(np.mean(np.sum((outputs - wanted) ** 2, axis=1)) / 2)


def test_distillation_steps_down_the_exact_gradient() -> None:
    method = Distill(steps=1, batch=6000)  # so many draws of six observations are nearly their mean
    _, student, memory = distillation(method)
    after, _ = method.after_step(context(A, B), step(np.zeros(len(student))), student, memory)
    slope = np.zeros(len(student))
    for j in range(len(student)):
        shift = np.zeros(len(student))
        shift[j] = 1e-5
        slope[j] = (error(student + shift, memory) - error(student - shift, memory)) / 2e-5
    steep = np.abs(slope) > 0.1 * np.abs(slope).max()
    # Adam's first step is its learning rate, against the sign of the gradient.
    np.testing.assert_allclose((after - student)[steep], -1e-3 * np.sign(slope)[steep], rtol=1e-3)
    assert (after[slope == 0] == student[slope == 0]).all()
    assert steep.sum() >= 10
    assert (slope == 0).sum() >= POLICY.layers[f"input.{B}"].end - POLICY.layers[f"input.{B}"].offset


def test_distillation_goes_down_the_slope_of_the_mean_error() -> None:
    _, student, memory = distillation(Distill())
    seen, wanted = memory[f"distill.{A}.observations"], memory[f"distill.{A}.outputs"]
    theta = student.astype(np.float64)
    slope = np.array([error(theta + s, memory) - error(theta - s, memory) for s in 1e-5 * np.eye(len(theta))]) / 2e-5
    gradient, rows = np.zeros(len(theta)), np.arange(len(seen), dtype=np.uint32)
    POLICY.network(A).approach(theta, seen, wanted, rows, gradient)
    np.testing.assert_allclose(-gradient, slope, rtol=1e-6, atol=1e-9)


def test_every_earlier_task_is_taught() -> None:
    method = Distill(steps=300, batch=12, learning_rate=1e-2)
    teacher, student = POLICY.initial(seed=1), POLICY.initial(seed=2)
    memory: dict[str, Array] = {}
    for stream in ((A,), (A, B), (A, B, C)):
        memory = dict(method.begin(context(*stream), teacher, memory, lambda task, _: observations(task, 6)))
    after, _ = method.after_step(context(A, B, C), step(np.zeros(len(student))), student, memory)
    assert all(error(after, memory, task) < 0.05 * error(student, memory, task) for task in (A, B))


def test_who_acts_as_before_is_taught_nothing() -> None:
    teacher, _, memory = distillation(Distill())
    after, _ = Distill(steps=30).after_step(context(A, B), step(np.zeros(len(teacher))), teacher, memory)
    np.testing.assert_array_equal(after, teacher)


def test_distillation_brings_the_actions_back() -> None:
    method = Distill(steps=300, batch=12, learning_rate=1e-2)
    teacher, student, memory = distillation(method)
    after, _ = method.after_step(context(A, B), step(np.zeros(len(student))), student, memory)
    assert error(teacher, memory) < 1e-12
    assert error(after, memory) < 0.01 * error(student, memory)


def test_distillation_forgets_what_is_learnt_again() -> None:
    method, theta = Distill(), POLICY.initial(seed=1)
    memory: dict[str, Array] = {}
    tasks = []
    for i in range(1, 5):
        memory = dict(method.begin(context(*(A, B, A, C)[:i]), theta, memory, lambda task, _: observations(task, 2)))
        tasks.append(sorted({name.split(".")[1] for name in memory}))
    assert tasks == [[], [A.name], [B.name], [A.name, B.name]]


def test_parts_of_a_composite_start_from_what_the_one_before_made() -> None:
    method = Method.named("anchor+ewc", "method")(Anchor(rate=0.5), Ewc(strength=1.0, importance="search"))  # type: ignore[call-arg]
    start, here = POLICY.initial(seed=0), context(A, B)
    ones = step(np.ones(len(start)))
    _, memory = method.after_step(context(A), ones, start, {})
    memory = method.begin(here, start, memory, nothing)
    after, memory = method.after_step(here, ones, start + np.float32(1), memory)
    moved, head, own = after - start, POLICY.layers["head"], POLICY.layers[f"input.{A}"]
    np.testing.assert_allclose(moved[head.offset : head.end], 0.25, atol=1e-6)  # half of the way back, and half again
    np.testing.assert_allclose(moved[own.offset : own.end], 0.5, atol=1e-6)  # what is not shared has no anchor
    assert {"anchor.start", "ewc.importance", "ewc.squares"} <= set(memory)


def test_adaptive_replay_follows_the_losses() -> None:
    method = Adaptive(rate=0.5)
    stage = context(A, B, C).stage
    batches = (*stage.batches, Batch(A, 4, replay=True, weight=0.5), Batch(B, 4, replay=True, weight=0.5))
    assert method.plan(stage, 1, batches, {}) == batches
    memory: dict[str, Array] = {}
    for a, b in ((100.0, -10.0), (60.0, -12.0)):
        done = step(np.zeros(1), batches, (np.zeros(8), np.full(8, a), np.array([b, np.nan] * 4)))
        _, memory = method.after_step(context(A, B, C), done, np.zeros(1, np.float32), memory)  # type: ignore[assignment]
    assert memory[f"adaptive.{A}"].tolist() == [100.0, 80.0]
    assert memory[f"adaptive.{B}"].tolist() == [-10.0, -11.0]
    _, first, second = method.plan(stage, 3, batches, memory)  # 0.2 and 0.1 are lost: 6 pairs as 4 and 2, and one each
    assert (first, second) == (Batch(A, 5, replay=True, weight=0.5), Batch(B, 3, replay=True, weight=0.5))
    assert list(method.begin(context(A, B, A), np.zeros(1, np.float32), memory, nothing)) == [f"adaptive.{B}"]


@pytest.mark.parametrize("name", ["InvertedPendulum-v5", "InvertedPendulum-v5@gravity=2.0,observation_noise=0.3"])
def test_recorded_episodes_are_gymnasiums(name: str) -> None:
    task = parse_task(name)
    policy = Policy.build(CONFIG, [task])
    theta, network = policy.initial(seed=3), policy.network(task)
    collector = Collector(LocalWorkers(1), seed=5, stage=2)

    def collect(*amounts: float) -> Float32:
        return Collector(LocalWorkers(1), 5, 2).collect(task, network, theta, Collection(*amounts))  # type: ignore[arg-type]

    seen = collector.collect(task, network, theta, Collection(10**6, 1, 0.5))
    (seed,) = Noise(5, COLLECTION, stage=2).integers(1)
    assert len(seen) == collector.n_steps == replay_in_gymnasium(network, theta, task, int(seed))[1]
    both = collect(10**6, 2, 0.5)
    np.testing.assert_array_equal(both[: len(seen)], seen)
    calm = collect(10**6, 2, 0.0)
    assert not np.array_equal(both, calm)
    few = collect(3, 2, 0.5)
    assert few.shape == (3, 4)
    assert few.dtype == np.float32
    assert all((row == both).all(axis=1).any() for row in few)


def test_discrete_actions_are_recorded_too() -> None:
    task = Task("CartPole-v1")
    policy = Policy.build(CONFIG, [task])
    seen = Collector(LocalWorkers(1), 0, 1).collect(
        task, policy.network(task), policy.initial(seed=0), Collection(64, 4, 1.0)
    )
    assert seen.shape[1] == 4
    assert np.isfinite(seen).all()
