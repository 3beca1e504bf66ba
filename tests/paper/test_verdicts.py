"""Verdicts follow the rules that docs/reproduction.md wrote down before anything was trained."""

import statistics

import numpy as np
import pytest

from evergait.analysis.gather import Values
from evergait.core.arrays import Float64
from evergait.paper.claims import Claim, Rule, at_least, at_most, within


@pytest.mark.parametrize(
    ("rule", "estimate", "low", "high", "verdict"),
    [
        (at_least(0.1), 0.3, 0.1, 0.5, "holds"),
        (at_least(0.1), 0.1, 0.01, 0.2, "holds"),
        (at_least(0.1), 0.09, 0.01, 0.2, "undecided"),  # surely positive, but perhaps too small to count
        (at_least(0.1), 0.05, 0.02, 0.08, "does not hold"),  # surely positive and surely too small
        (at_least(0.1), 0.1, -0.1, 0.3, "undecided"),
        (at_least(0.1), -0.1, -0.2, 0.0, "does not hold"),
        (at_most(-0.1), -0.5, -0.7, -0.3, "holds"),
        (at_most(-0.1), -0.05, -0.3, 0.2, "undecided"),
        (at_most(-0.1), 0.1, -0.05, 0.3, "does not hold"),
        (within(0.1), 0.0, -0.1, 0.1, "holds"),
        (within(0.1), 0.0, -0.2, 0.1, "undecided"),
        (within(0.1), -0.4, -0.6, -0.2, "does not hold"),
    ],
)
def test_rules(rule: Rule, estimate: float, low: float, high: float, verdict: str) -> None:
    assert rule.decide(estimate, low, high) == verdict


def values(rows: object) -> Values:
    """Of as many seeds and orders as there are rows and columns."""
    array: Float64 = np.array(rows, np.float64)
    return Values(tuple(range(len(array))), tuple(map(str, range(array.shape[1]))), array)


def test_a_whole_seed_is_one_observation() -> None:
    once, six_times = values([[0.1], [0.2], [0.6]]), values([[0.1] * 6, [0.2] * 6, [0.6] * 6])
    assert once.interval == pytest.approx(six_times.interval)
    low, high = once.interval or (0, 0)
    error = statistics.stdev([0.1, 0.2, 0.6]) / 3**0.5
    assert (high - low) / 2 == pytest.approx(4.303 * error, rel=1e-3)  # Student's t with two degrees of freedom


def test_of_several_parts_the_least_decides() -> None:
    strong, none = values([[0.5], [0.51], [0.52]]), values([[0.0], [0.01], [-0.01]])
    claims = [Claim(3, "", "", parts, at_least(0.05)) for parts in ((strong,), (strong, none), (none, strong))]
    assert [claim.verdict for claim in claims] == ["holds", "does not hold", "does not hold"]
    assert claims[1].estimate == pytest.approx(0.0)


def test_a_seed_alone_may_speak_against_what_all_of_them_say() -> None:
    mixed = values([[0.5, 0.5], [0.6, 0.4], [0.5, -0.7], [0.6, 0.5]])
    assert Claim(2, "", "", (mixed,), at_least(0.1)).n_against == 1  # by the mean over its orders
    assert Claim(1, "", "", (mixed,), at_most(-0.1)).n_against == 3
    assert Claim(5, "", "", (mixed,), within(0.1)).n_against == 3


def test_two_seeds_decide_nothing_and_no_part_is_no_measurement() -> None:
    two = Claim(1, "", "", (values([[0.5], [0.5]]),), at_least(0.1))
    assert (two.verdict, two.n_seeds) == ("undecided", 2)
    assert Claim(1, "", "", (), at_least(0.1)).verdict == "not measured"
