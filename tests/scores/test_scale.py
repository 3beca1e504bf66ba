"""What a score means: one definition, right for any sign, by one named source, and never a number where undefined."""

import numpy as np
import pytest

from evergait.core.errors import EvergaitError
from evergait.scores.scale import ScoreOptions, choose_scale, scale_of, shipped
from evergait.store.ledger import Ledger, Record


def ledger(task: str, returns: list[float], randoms: list[float]) -> Ledger:
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
    ledgers = [ledger("Hopper-v5", [20.0, 900.0], [10.0, 30.0]), ledger("Made-v0", [0.0, 5.0], [0.0])]
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


@pytest.mark.parametrize(
    ("randoms", "best", "reason"),
    [([], 9.0, "random policies were not evaluated"), ([9.0], 9.0, "no better than random"), ([9.0], 3.0, "no better")],
)
def test_an_undefined_score_never_becomes_a_number(randoms: list[float], best: float, reason: str) -> None:
    scale = scale_of([ledger("Made-v0", [1.0], randoms)], {}, ("phases", {"Made-v0": best}))
    assert not scale.is_share
    assert reason in scale.words


def test_a_task_outside_the_table_has_no_score() -> None:
    scale = choose_scale(["A"], {"A": 0.0}, [("the test", {"A": 1.0})])
    assert np.isnan(scale.score("B", np.array([1.0]))).all()


def test_variants_have_no_shipped_reference() -> None:
    assert "Hopper-v5" in shipped()
    assert not scale_of([ledger("Hopper-v5@moon", [1.0, 2.0], [0.0])], {}).is_share


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


def test_a_reference_below_random_is_refused() -> None:
    with pytest.raises(EvergaitError, match=r"score.reference: A is 3; it must be above the return of random"):
        scale_of([ledger("A", [1.0], [4.0])], {"A": 3.0})
