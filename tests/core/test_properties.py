"""What must hold for any input: of shaping, the policy's layout, the store and the measures."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evergait.es import SHAPINGS, shape
from evergait.paper.study import hat_scale
from evergait.policy import Policy, PolicyConfig
from evergait.scores.metrics import Metrics
from evergait.store.ledger import Ledger, Record, header_line, parse_ledger, record_line
from evergait.store.phases import PhaseStore
from evergait.tasks import Task

any_return = st.floats(allow_nan=True, allow_infinity=True, width=64)
TASKS = [Task(f"{name}-v5") for name in ("Hopper", "Swimmer", "Walker2d", "InvertedPendulum", "Reacher")]
NAMES = ("A", "B", "C")


@given(arrays(np.float64, st.integers(1, 30), elements=any_return), st.sampled_from(sorted(SHAPINGS)))
def test_utilities_are_finite_and_diverged_members_never_lead(fitness: np.ndarray, shaping: str) -> None:
    utility = shape(fitness, shaping)  # type: ignore[arg-type]
    assert np.isfinite(utility).all()
    diverged = ~np.isfinite(fitness)
    if shaping == "ordered-ranks":  # of equal members the later one ranks higher, but none above a survivor
        assert diverged.all() or utility[diverged].max(initial=-1) < utility[~diverged].min()
    elif diverged.any():
        assert (utility[diverged] == utility.min()).all()
    if shaping != "raw" and not diverged.all():
        assert np.abs(utility).max() <= len(fitness)


configs = st.builds(
    PolicyConfig,
    input_width=st.integers(1, 9),
    hidden=st.lists(st.integers(1, 9), max_size=3).map(tuple),
    heads=st.sampled_from(["shared", "separate"]),
)


@settings(deadline=None)  # the first example asks Gymnasium for spaces
@given(configs, st.lists(st.sampled_from(TASKS), min_size=1, max_size=5), st.sampled_from(TASKS))
def test_layers_tile_theta(config: PolicyConfig, tasks: list[Task], more: Task) -> None:
    policy = Policy.build(config, tasks)
    edges = [edge for layer in policy.layers.values() for edge in (layer.offset, layer.end)]
    assert edges == sorted(edges)
    assert edges[0] == 0
    assert edges[1:-1:2] == edges[2::2]  # each layer begins where the one before ends
    assert edges[-1] == policy.n_parameters == len(policy.initial(0))
    used = np.zeros(policy.n_parameters, int)
    for task in policy.tasks:
        ranges = policy.active(task)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(ranges))
        for begin, end in ranges:
            used[begin:end] += 1
        assert set(policy.active(task, "shared")) <= set(ranges)
    assert (used > 0).all()  # no parameter is idle for all tasks
    larger = Policy.build(config, [*tasks, more])
    theta = policy.initial(1)
    moved = larger.transplant(policy, theta, seed=2)
    for task in policy.tasks:
        for old, new in zip(policy.path(task), larger.path(task), strict=True):
            n = old[1] * old[0].n_in
            assert (moved[new[0].offset :][:n] == theta[old[0].offset :][:n]).all()


returns = st.floats(-1e6, 1e6)


@st.composite
def streams(draw: st.DrawFn) -> list[Ledger]:
    """Ledgers of a run with some evaluations of some episodes each."""
    n_records, n_episodes = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    episodes = st.lists(returns, min_size=n_episodes, max_size=n_episodes)
    records = st.fixed_dictionaries(dict.fromkeys(NAMES, episodes))
    found = []
    for stage, task in enumerate(NAMES[: draw(st.integers(2, 3))]):
        lengths = {name: [1] * n_episodes for name in NAMES}
        made = [Record(10 * k, draw(records), lengths, {"training": 1}) for k in range(n_records)]
        randoms = draw(records) if stage == 0 else {}
        found.append(Ledger(stage, (task,), NAMES, randoms, tuple(made)))
    return found


@given(streams())
def test_ledgers_and_back(ledgers: list[Ledger]) -> None:
    for ledger in ledgers:
        content = header_line(ledger) + b"".join(map(record_line, ledger.records))
        assert parse_ledger(content, Path("ledger")) == ledger


@given(streams(), st.sampled_from([2.0, 0.5, 1024.0]))
def test_measures_do_not_depend_on_units_or_on_the_order_of_episodes(ledgers: list[Ledger], factor: float) -> None:
    def changed(values: dict[str, list[float]]) -> dict[str, list[float]]:
        return {task: [factor * value for value in reversed(part)] for task, part in values.items()}

    other = [
        Ledger(
            ledger.stage,
            ledger.learning,
            ledger.tasks,
            changed(dict(ledger.random_returns)),  # type: ignore[arg-type]
            tuple(Record(r.generation, changed(dict(r.returns)), r.lengths, r.steps) for r in ledger.records),  # type: ignore[arg-type]
        )
        for ledger in ledgers
    ]
    best = {"A": 10.0, "B": 300.0, "C": 7.0}
    one = Metrics(ledgers, hat_scale("", best, tuple(best)))
    two = Metrics(other, hat_scale("", {task: factor * value for task, value in best.items()}, tuple(best)))
    for name, value in one.summary().items():
        assert two.summary()[name] == pytest.approx(value, rel=1e-9, abs=1e-6)
    matrix = one.matrix()
    assert one.average_performance() == pytest.approx(matrix[-1].mean(), rel=1e-9, abs=1e-6)
    assert one.average_backward_transfer() <= one.gem_backward_transfer() + 1e-6  # the best is no worse than the last
    assert one.maximum_forgetting() >= -one.gem_backward_transfer() - 1e-6


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(["append", "checkpoint", "crash"]), max_size=12), st.integers(0, 20))
def test_a_store_keeps_what_the_last_checkpoint_counts(steps: list[str], torn: int) -> None:
    """Whatever comes between, a crash takes the ledger back to the last checkpoint, and θ with it."""
    with tempfile.TemporaryDirectory() as folder:
        store, number, kept, pending = PhaseStore(Path(folder)), 0, b"", b""
        steps = [*steps, "crash"]
        while steps:
            with store.writing({"seed": 1}) as writer:
                assert writer
                path = writer.folder.path / "ledger.jsonl"
                assert path.read_bytes() == kept
                assert (writer.resumed is None) == (kept == b"" and number == 0)
                if writer.resumed:
                    assert writer.resumed[0]["theta"].tolist() == [number]
                while steps and (step := steps.pop(0)) != "crash":
                    if step == "append":
                        line = f"{len(kept + pending)}\n".encode()
                        writer.append(line)
                        pending += line
                    else:
                        number, kept, pending = number + 1, kept + pending, b""
                        writer.checkpoint({"theta": np.array([float(number)])}, {}, {"generation": number})
            if pending:  # a crash may have left any part of what was appended
                path.write_bytes(kept + pending[: torn % (len(pending) + 1)])
                pending = b""
