"""What a score means, and every measure on a ledger that is small enough to compute by hand.

Intervals cover the truth as often as they say, with as few seeds as studies have; simulated.
"""

import numpy as np
import pytest

from evergait.analysis.groups import Values
from evergait.core.arrays import Float64
from evergait.core.errors import EvergaitError
from evergait.paper.numbers import SINGLE_TASK
from evergait.paper.study import hat_scale
from evergait.scores.metrics import Metrics
from evergait.scores.scale import Scale, ScoreOptions, choose_scale, scale_of, shipped
from evergait.scores.stats import MIN_SEEDS, detectable, interval, t_quantile
from evergait.store.ledger import Ledger, Record
from evergait.tasks import parse_stream


def scored_ledger(task: str, returns: list[float], randoms: list[float]) -> Ledger:
    records = tuple(Record(i, {task: [value]}, {task: [1]}, {}) for i, value in enumerate(returns))
    return Ledger(0, (task,), (task,), {task: randoms} if randoms else {}, records)


def test_a_score_is_right_for_any_sign() -> None:
    scale = choose_scale(["Cost-v0"], {"Cost-v0": -1600.0}, [("the test", {"Cost-v0": -100.0})])
    assert scale.score("Cost-v0", np.array([-1600.0, -850.0, -100.0, -2350.0])).tolist() == [0, 0.5, 1, -0.5]
    assert scale.name == "score"
    assert "R* comes from the test: Cost-v0 -100" in scale.words


def test_a_random_policy_that_earns_nothing_makes_no_score_the_papers() -> None:
    scale = choose_scale(["Sparse-v0"], {"Sparse-v0": 0.0}, [("the test", {"Sparse-v0": 1.0})])
    assert "0 is a random policy" in scale.meaning


def test_sources_are_asked_in_order_and_never_mixed() -> None:
    ledgers = [scored_ledger("Hopper-v5", [20.0, 900.0], [10.0, 30.0]), scored_ledger("Made-v0", [0.0, 5.0], [0.0])]
    own = ("single-task phases", {"Hopper-v5": 1000.0, "Made-v0": 8.0})
    assert scale_of(ledgers, {"Hopper-v5": 500.0, "Made-v0": 9.0}, own).one == own[1]
    partial = ("single-task phases", {"Hopper-v5": 1000.0})
    given = scale_of(ledgers, {"Hopper-v5": 500.0, "Made-v0": 9.0}, partial)
    assert given.one == {"Hopper-v5": 500.0, "Made-v0": 9.0}
    assert "--score.reference" in given.words
    none = scale_of(ledgers, {}, partial)
    assert not none.is_share
    assert none.score("Hopper-v5", np.array([900.0])).tolist() == [900.0]
    assert "there is no R* for Made-v0" in none.words
    alone = scale_of(ledgers[:1], {})
    assert alone.one == {"Hopper-v5": 3800.0}
    assert "shipped references (Gymnasium's reward threshold)" in alone.words


def test_shipped_references_of_one_table_are_from_one_place() -> None:
    hopper, walker, cheetah, pole = (
        scored_ledger(task, [20.0, 900.0], [0.0])
        for task in ("Hopper-v5", "Walker2d-v5", "HalfCheetah-v5", "CartPole-v1")
    )
    papers = scale_of([hopper, walker], {})
    assert papers.one == {task: SINGLE_TASK[task] for task in ("Hopper-v5", "Walker2d-v5")}
    assert "the paper's single-task runs" in papers.words
    assert "the preset fast" in scale_of([hopper, walker, cheetah], {}).words
    assert not scale_of([walker, pole], {}).is_share


@pytest.mark.parametrize(
    ("randoms", "best", "reason"),
    [([], 9.0, "random policies were not evaluated"), ([9.0], 9.0, "no better than random"), ([9.0], 3.0, "no better")],
)
def test_an_undefined_score_never_becomes_a_number(randoms: list[float], best: float, reason: str) -> None:
    scale = scale_of([scored_ledger("Made-v0", [1.0], randoms)], {}, ("phases", {"Made-v0": best}))
    assert not scale.is_share
    assert reason in scale.words


def test_a_task_outside_the_table_has_no_score() -> None:
    scale = choose_scale(["A"], {"A": 0.0}, [("the test", {"A": 1.0})])
    assert np.isnan(scale.score("B", np.array([1.0]))).all()


def test_variants_have_no_shipped_reference() -> None:
    assert all("@" not in task for _, best in shipped() for task in best)
    assert not scale_of([scored_ledger("Hopper-v5@moon", [1.0, 2.0], [0.0])], {}).is_share


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("Hopper-v5",), "score.reference: is 'Hopper-v5'; it must be TASK=RETURN"),
        (("Hopper-v5=high",), "score.reference: is 'Hopper-v5=high'"),
        (("Hopper-v5=nan",), "score.reference: is 'Hopper-v5=nan'"),
        (("=3",), "score.reference: is '=3'"),
        (("Hoper-v5=3",), "score.reference: there is no task 'Hoper-v5' here; did you mean 'Hopper-v5'?"),
        (("Hopper-v5=3",), "score.reference: has no return for Swimmer-v5"),
    ],
)
def test_bad_references_are_refused_by_name(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(EvergaitError) as refusal:
        ScoreOptions(words).references(["Hopper-v5", "Swimmer-v5"])
    assert message in str(refusal.value)


def test_a_reference_may_spell_its_task_in_any_way() -> None:
    learnt = [task.name for task in parse_stream(["Hopper-v5@moon"])]
    for word in ("Hopper-v5@moon=3", f"{learnt[0]}=3"):
        assert ScoreOptions((word,)).references(learnt) == {learnt[0]: 3.0}


def test_a_reference_below_random_is_refused() -> None:
    with pytest.raises(EvergaitError, match=r"score.reference: A is 3; it must be above the return of random"):
        scale_of([scored_ledger("A", [1.0], [4.0])], {"A": 3.0})


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


def test_what_is_relearnt_counts_neither_as_kept_nor_as_transferred() -> None:
    last = ledger(3, "A", {"A": [5, 9, 10], "B": [6, 4, 2], "C": [44, 40, 36]})
    metrics = Metrics((*STAGES, last), METRICS.scale)
    assert metrics.average_backward_transfer() == pytest.approx(((0.1 - 0.9) + (0.9 - 1.1)) / 2)
    assert metrics.gem_backward_transfer() == pytest.approx(((0.1 - 0.8) + (0.9 - 1.1)) / 2)
    assert metrics.maximum_forgetting() == pytest.approx(((0.8 - 0.1) + (1.1 - 0.9)) / 2)
    assert metrics.average_forward_transfer() == METRICS.average_forward_transfer()
    assert metrics.gem_forward_transfer() == METRICS.gem_forward_transfer()
    assert metrics.later_interference() == METRICS.later_interference()


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
    perfect = baselines | {"A": ledger(0, "A", {"A": [10, 10, 10]})}  # alone nothing is left to gain
    assert METRICS.continual_world_forward_transfer(perfect) == pytest.approx(sum(expected[1:]) / 2)


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


TRUTH = 0.4
N_TRIALS = 1500


def simulated(rng: np.random.Generator, n_seeds: int, skewed: bool = False) -> Float64:
    """(n_seeds, 6 orders) around TRUTH: pairs of orders share a first phase, all orders of a seed share its R*."""
    first = rng.gamma(1.0, 0.2, (n_seeds, 3)) - 0.2 if skewed else rng.normal(0, 0.2, (n_seeds, 3))
    r_star = rng.normal(1, 0.1, (n_seeds, 1))
    return (TRUTH + np.repeat(first, 2, axis=1) + rng.normal(0, 0.15, (n_seeds, 6))) * r_star


def coverage(n_seeds: int, skewed: bool = False) -> float:
    rng = np.random.default_rng(n_seeds)
    hits = 0
    for _ in range(N_TRIALS):
        values = Values(tuple(range(n_seeds)), tuple("abcdef"), simulated(rng, n_seeds, skewed))
        assert values.interval
        hits += values.interval[0] <= TRUTH <= values.interval[1]
    return hits / N_TRIALS


@pytest.mark.parametrize("n_seeds", [3, 5, 10])
def test_an_interval_over_seeds_covers_the_truth(n_seeds: int) -> None:
    assert 0.93 <= coverage(n_seeds) <= 0.97
    assert 0.91 <= coverage(n_seeds, skewed=True) <= 0.97


def bootstrap(values: Float64, rng: np.random.Generator) -> tuple[float, float]:
    """Percentiles of means of seeds drawn with replacement: what we do not do, and why."""
    means = values.mean(axis=1)
    drawn = means[rng.integers(len(means), size=(400, len(means)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def test_a_bootstrap_of_three_seeds_would_promise_too_much() -> None:
    rng = np.random.default_rng(0)
    ends = [bootstrap(simulated(rng, 3), rng) for _ in range(600)]
    assert np.mean([low <= TRUTH <= high for low, high in ends]) < 0.85


@pytest.mark.parametrize("n_seeds", [3, 5, 10, 500])
def test_what_is_called_detectable_is_found_in_nine_of_ten_studies(n_seeds: int) -> None:
    rng = np.random.default_rng(n_seeds)
    # The effect is fixed before the study: it is what the true spread, not that of one sample, lets us find.
    spread = np.array([-1.0, 1.0] * (n_seeds // 2) + [0.0] * (n_seeds % 2))
    effect = detectable(spread / spread.std(ddof=1))
    assert effect
    found = 0
    for _ in range(4000):
        ends = interval(rng.normal(effect, 1, n_seeds))
        found += bool(ends and ends[0] > 0)
    assert 0.885 <= found / 4000 <= 0.915


def test_too_few_seeds_give_no_interval() -> None:
    for n_seeds in range(1, MIN_SEEDS):
        assert interval(np.zeros(n_seeds)) is None
        assert detectable(np.zeros(n_seeds)) is None


def test_quantiles_are_those_of_the_tables() -> None:
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 30: 2.042}
    for freedom, value in table.items():
        assert t_quantile(0.95, freedom) == pytest.approx(value, abs=6e-4)
