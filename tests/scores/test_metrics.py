"""Every measure on a ledger that is small enough to compute by hand."""

import pytest

from evergait.paper.study import hat_scale
from evergait.scores.metrics import Metrics
from evergait.scores.scale import Scale
from evergait.store.ledger import Ledger, Record


def ledger(
    stage: int, task: str, curves: dict[str, list[float]], randoms: dict[str, list[float]] | None = None
) -> Ledger:
    n = len(next(iter(curves.values())))
    records = tuple(
        Record(
            10 * k,
            {t: [curve[k] - 1, curve[k] + 1] for t, curve in curves.items()},  # two episodes around the mean
            {t: [5, 5] for t in curves},
            {"training": 100, "replay": 7, "evaluation": 10},
        )
        for k in range(n)
    )
    return Ledger(stage, (task,), tuple(curves), randoms or {}, records)


# R* is 10 for A, 20 for B, 40 for C.
STAGES = (
    ledger(0, "A", {"A": [0, 12, 8], "B": [0, 2, 4], "C": [0, 0, 4]}, {"A": [0, 2], "B": [1, 3], "C": [4, 4]}),
    ledger(1, "B", {"A": [8, 4, 2], "B": [4, 18, 16], "C": [4, 8, 12]}),
    ledger(2, "C", {"A": [2, 1, 5], "B": [16, 10, 6], "C": [12, 20, 44]}),
)
METRICS = Metrics(STAGES, hat_scale("by hand", {"A": 10, "B": 20, "C": 40}, ("A", "B", "C")))


def test_normalised_returns() -> None:
    assert METRICS.curve("A", 0).tolist() == [0, 1.2, 0.8]
    assert METRICS.matrix().tolist() == [[0.8, 0.2, 0.1], [0.2, 0.8, 0.3], [0.5, 0.3, 1.1]]


def test_backward_transfer() -> None:
    # best while learning: A 1.2, B 0.9; at the end: A 0.5, B 0.3
    assert METRICS.backward_transfer(0) == pytest.approx(-0.7)
    assert METRICS.backward_transfer(1) == pytest.approx(-0.6)
    assert METRICS.backward_transfer(0, stage=1) == pytest.approx(-1.0)
    assert METRICS.backward_transfer_curve(0, 2) == pytest.approx([-1.0, -1.1, -0.7])
    assert METRICS.average_backward_transfer() == pytest.approx(-0.65)


def test_forward_transfer() -> None:
    # random: B 2/20, C 4/40
    assert METRICS.forward_transfer(1) == pytest.approx(0.2 - 0.1)
    assert METRICS.forward_transfer(2) == pytest.approx(0.3 - 0.1)
    assert METRICS.forward_transfer(2, stage=0) == pytest.approx(0.0)
    assert METRICS.average_forward_transfer() == pytest.approx(0.15)


def test_interference() -> None:
    assert [METRICS.interference(i) for i in range(3)] == pytest.approx([-0.2, 0.1, -0.1])


def test_other_measures() -> None:
    assert METRICS.average_performance() == pytest.approx((0.5 + 0.3 + 1.1) / 3)
    assert METRICS.maximum_forgetting() == pytest.approx(((0.8 - 0.5) + (0.8 - 0.3)) / 2)
    assert METRICS.gem_backward_transfer() == pytest.approx(((0.5 - 0.8) + (0.3 - 0.8)) / 2)
    assert METRICS.gem_forward_transfer() == pytest.approx(((0.2 - 0.1) + (0.3 - 0.1)) / 2)


def test_continual_world_forward_transfer() -> None:
    baselines = {
        "A": ledger(0, "A", {"A": [0, 10, 5]}),  # AUC 0.5
        "B": ledger(0, "B", {"B": [0, 5, 10]}),  # AUC 0.25
        "C": ledger(0, "C", {"C": [0, 0, 0]}),  # AUC 0
    }
    own = [(0 + 1 + 0.8) / 3, (0.2 + 0.9 + 0.8) / 3, (0.3 + 0.5 + 1) / 3]
    expected = [(own[0] - 0.5) / 0.5, (own[1] - 0.25) / 0.75, own[2]]
    assert METRICS.continual_world_forward_transfer(baselines) == pytest.approx(sum(expected) / 3)


def test_steps_are_counted_by_kind() -> None:
    assert METRICS.total_steps() == {"training": 900, "replay": 63, "collection": 0, "evaluation": 90}


def test_summary_of_a_single_task_has_no_transfer() -> None:
    assert list(Metrics(STAGES[:1], METRICS.scale).summary()) == ["average_performance"]


def test_without_an_r_star_measures_are_returns_and_nothing_is_a_share() -> None:
    plain = Metrics(STAGES, Scale(source="nobody gave one"))
    assert plain.curve("A", 0).tolist() == [0, 12, 8]
    assert plain.backward_transfer(0) == pytest.approx(5 - 12)
    assert plain.interference(0) != plain.interference(0)  # NaN
    assert "average_backward_transfer" in plain.summary()


def test_backward_transfer_from_the_end_of_a_phase_is_zero_where_nothing_changes() -> None:
    # A was at its best in the middle of its phase: last minus best is negative before any other task came.
    still = (STAGES[0], ledger(1, "B", {"A": [8, 8, 8], "B": [4, 18, 16], "C": [4, 8, 12]}))
    metrics = Metrics(still, METRICS.scale)
    assert metrics.average_backward_transfer() == pytest.approx(-0.4)
    assert metrics.gem_backward_transfer() == pytest.approx(0)
