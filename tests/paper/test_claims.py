"""The paper's numbers stand beside ours, its claims are decided by intervals, and neither appears anywhere else."""

import statistics
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from evergait.analysis.groups import Values
from evergait.core.arrays import Float64
from evergait.figures.drawing import ranges_figures
from evergait.paper.claims import Claim, Rule, at_least, at_most, claims_table, study_claims, within
from evergait.paper.numbers import (
    MULTI_TASK,
    SINGLE_TASK,
    distance,
    paper_extrema,
    published,
    ranges_table,
    study_ranges,
    worst_share,
)
from evergait.paper.roles import find_roles, reference_condition
from evergait.paper.study import all_tables, analyse, hat_scale
from evergait.scores.metrics import Metrics
from evergait.store.ledger import Ledger, Record
from evergait.studies.base import read_study
from evergait.studies.cells import study_cells
from evergait.studies.folder import load_results
from evergait.studies.results import Entry, Results


def ledger(stage: int, learning: tuple[str, ...], returns: dict[str, list[float]]) -> Ledger:
    n = len(next(iter(returns.values())))
    records = tuple(
        Record(10 * i, {t: [v[i]] for t, v in returns.items()}, {t: [1] for t in returns}, {}) for i in range(n)
    )
    return Ledger(stage, learning, tuple(returns), {t: [0.0] for t in returns}, records)


class FakeRun:
    """A run made of ledgers."""

    def __init__(self, config: object, ledgers: tuple[Ledger, ...]) -> None:
        self.config, self.ledgers, self.ledger, self.is_done = config, ledgers, ledgers[-1], True
        self.phases = tuple(SimpleNamespace(name=str(id(one))) for one in ledgers)


def paper_results() -> Results:
    """The paper's own numbers as if we had measured them: ledgers whose extrema are its tables."""
    published = {(r["condition"], r["order"], int(r["step"]), r["task"]): r for r in paper_extrema()}
    entries = []
    for cell in study_cells(read_study("paper")):
        tasks = cell.config.stream
        ledgers = []
        for i, phase in enumerate(cell.phases):
            learning = tuple(task.name for task in phase.stage.tasks)
            returns = {t: [0.0, 0.0] for t in cell.config.tasks}
            for task in tasks[: i + 1] if len(learning) == 1 else tasks:
                if cell.condition == "single":
                    returns[task] = [0.0, SINGLE_TASK[task]]
                elif len(learning) > 1:
                    returns[task] = [0.0, MULTI_TASK[cell.config.policy.heads][task]]
                else:
                    row = published[cell.condition, cell.order, i + 1, task.removesuffix("-v5")]
                    ends = [float(row["max_return"]), float(row["min_return"])]
                    returns[task] = ends if i else ends[::-1]  # a first phase ends at its best
            ledgers.append(ledger(i, learning, returns))
        entries.append(Entry(cell.condition, cell.order, cell.seed, FakeRun(cell.config, tuple(ledgers))))  # type: ignore[arg-type]
    return Results("paper", Path("/nowhere"), tuple(entries), scores="paper")


def test_every_published_number_is_beside_ours() -> None:
    results = paper_results()
    tables = {table.name: table for table in all_tables(analyse(results))}
    n_compared = 0
    for name in ("single-task", "multi-task", "extrema-shared", "extrema-replay-192", "extrema-distinct"):
        for row in tables[name].rows:
            n_compared += 1
            differences = [v for c, v in zip(tables[name].columns, row, strict=True) if "difference" in c]
            assert differences
            assert all(value == 0 for value in differences), (name, row)
    assert n_compared == 3 + 6 + 3 * 36
    assert [row[0] for row in tables["extrema-budgets"].rows[::6]] == ["replay-12", "replay-192", "replay-288"]
    roles = find_roles(analyse(results))
    assert roles.middle_replay == "replay-192"
    assert roles.multitask == ("multitask-shared", "multitask-separate")
    twice = (*results.entries, *(replace(e, condition="other") for e in results.entries if e.condition == "replay-12"))
    assert find_roles(analyse(replace(results, entries=twice))).replay == roles.replay  # no budget of its own


def test_published_numbers_ship() -> None:
    names = {"shared", "replay-12", "replay-192", "replay-288", "distinct"}
    assert {row["condition"] for row in paper_extrema()} == names


def test_claims_of_the_paper_appear_only_in_its_study() -> None:
    results = paper_results()
    assert len(study_claims(analyse(results))) == 6
    other = analyse(replace(results, scores=""))
    assert not study_claims(other)
    assert "claims" not in [table.name for table in all_tables(other)]
    columns = [column for table in all_tables(other) for column in table.columns]
    assert not [column for column in columns if "paper" in column]
    assert other.scale.name == "score"
    assert analyse(results).scale.name == "R̂"


def test_claims_need_three_seeds() -> None:
    one = paper_results()
    assert {claim.verdict for claim in study_claims(analyse(one))} == {"undecided"}
    three = analyse(replace(one, entries=tuple(replace(e, seed=s) for s in range(3) for e in one.entries)))
    claims = study_claims(three)
    assert "undecided" not in [claim.verdict for claim in claims]
    assert claims[0].verdict == "holds"
    assert reference_condition(one.entries[-1].run.config) == ""
    assert len(claims_table(three).rows) == 6


def test_claim_three_looks_at_plasticity_and_claim_six_at_transfer_itself() -> None:
    claims = {claim.number: claim for claim in study_claims(analyse(paper_results()))}
    assert len(claims[3].parts) == 3
    assert "Int at later positions of replay-288 minus replay-192" in claims[3].statistic
    assert len(claims[6].parts) == 4  # towards Swimmer, and its lead, without replay and with it
    assert claims[6].statistic.endswith("in shared and replay-192")


def test_no_claim_rests_on_a_seed_that_lacks_an_order() -> None:
    one = paper_results()
    entries = [replace(entry, seed=seed) for seed in range(4) for entry in one.entries]
    gone = next(e for e in entries if (e.condition, e.seed) == ("shared", 3))
    claims = study_claims(analyse(replace(one, entries=tuple(e for e in entries if e is not gone))))
    resting = {claim.number for claim in claims if "shared" in claim.statistic}
    assert resting == {1, 2, 6}
    assert {claim.number: claim.n_seeds for claim in claims if claim.number in resting} == dict.fromkeys(resting, 3)


def test_claim_four_compares_policies_that_differ_in_heads_alone() -> None:
    results = paper_results()

    def normalised(entry: Entry) -> Entry:
        if entry.condition != "distinct":
            return entry
        config = replace(entry.run.config, policy=replace(entry.run.config.policy, normalise=True))
        return replace(entry, run=FakeRun(config, entry.run.ledgers))  # type: ignore[arg-type]

    other = replace(results, entries=tuple(map(normalised, results.entries)))
    assert find_roles(analyse(results)).distinct == "distinct"
    assert find_roles(analyse(other)).distinct == ""
    assert study_claims(analyse(other))[3].verdict == "not measured"


def test_distinct_heads_have_an_r_star_of_their_own_and_sources_are_not_mixed() -> None:
    results = paper_results()
    scales = analyse(results).scales
    assert scales["distinct"].one["Hopper-v5"] != scales["shared"].one["Hopper-v5"]
    assert scales["shared"].one["Hopper-v5"] == SINGLE_TASK["Hopper-v5"]  # the single-task phase's last
    incomplete = tuple(e for e in results.entries if not (e.condition == "single" and e.order == "Swimmer"))
    incomplete = tuple(e for e in incomplete if not e.order.startswith("Swimmer >"))
    told = analyse(replace(results, entries=incomplete)).scales
    assert {scale.source for scale in told.values()} == {"the paper's single-task runs"}


# Verdicts follow the rules that docs/reproduction.md wrote down before anything was trained.


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


def test_a_claim_rests_on_the_seeds_that_all_its_parts_have() -> None:
    many, others = values([[0.5], [0.51], [0.52], [-9.0]]), values([[0.6], [0.61], [0.62]])
    claim = Claim(6, "", "", (many, others), at_least(0.05))
    assert (claim.n_seeds, claim.verdict, claim.n_against, claim.n_opposite) == (3, "holds", 0, 0)
    assert claim.by_seed == pytest.approx([0.5, 0.51, 0.52])


def test_single_seeds_may_say_the_opposite_of_the_verdict() -> None:
    none = Claim(3, "", "", (values([[0.001], [-0.001], [0.0]]),), at_least(0.05))
    assert (none.verdict, none.n_opposite) == ("does not hold", 1)
    assert Claim(3, "", "", (values([[5.0], [-5.0], [0.1]]),), at_least(0.05)).n_opposite is None


def test_a_seed_alone_may_speak_against_what_all_of_them_say() -> None:
    mixed = values([[0.5, 0.5], [0.6, 0.4], [0.5, -0.7], [0.6, 0.5]])
    assert Claim(2, "", "", (mixed,), at_least(0.1)).n_against == 1  # by the mean over its orders
    assert Claim(1, "", "", (mixed,), at_most(-0.1)).n_against == 3
    assert Claim(5, "", "", (mixed,), within(0.1)).n_against == 3


def test_two_seeds_decide_nothing_and_no_part_is_no_measurement() -> None:
    two = Claim(1, "", "", (values([[0.5], [0.5]]),), at_least(0.1))
    assert (two.verdict, two.n_seeds) == ("undecided", 2)
    assert Claim(1, "", "", (), at_least(0.1)).verdict == "not measured"


ORDER = "Hopper > Swimmer > Walker2d"
TASKS = ("Hopper-v5", "Swimmer-v5", "Walker2d-v5")


def ranged_ledger(stage: int, *evaluations: tuple[float, float, float]) -> Ledger:
    records = [
        Record(i, {task: [r] for task, r in zip(TASKS, row, strict=True)}, {task: [1] for task in TASKS}, {})
        for i, row in enumerate(evaluations)
    ]
    return Ledger(stage, (TASKS[stage],), TASKS, records=tuple(records))


def test_the_papers_own_numbers_have_no_distance_to_themselves() -> None:
    paper = published("shared", ORDER)
    ledgers = []
    for stage in range(3):
        extrema = [paper.get((stage, task), (0.0, 0.0)) for task in TASKS]
        ledgers.append(ranged_ledger(stage, *zip(*extrema, strict=True)))
    metrics = Metrics(ledgers, hat_scale("", SINGLE_TASK, TASKS))
    assert distance(metrics, paper) == pytest.approx(0.0)
    hopper = paper[0, "Hopper-v5"][1]
    assert worst_share(metrics, 0, 2) == pytest.approx(paper[2, "Hopper-v5"][0] / hopper)
    off = [replace(ledgers[0], records=(*ledgers[0].records, replace(ledgers[0].records[0], generation=9)))]
    assert distance(Metrics([*off, *ledgers[1:]], metrics.scale), paper) == pytest.approx(0.0)
    shifted = ranged_ledger(0, (paper[0, "Hopper-v5"][0], 0, 0), (hopper + 351.192, 0, 0))
    moved = distance(Metrics([shifted, *ledgers[1:]], metrics.scale), paper)
    kept = [paper[stage, "Hopper-v5"][0] * (1 / hopper - 1 / (hopper + 351.192)) for stage in (1, 2)]
    assert moved == pytest.approx((0.1 + sum(kept)) / 3 / 3, rel=1e-3)  # R* of Hopper is 3511.92


def test_ranges_have_every_published_number_of_a_phase_that_is_there() -> None:
    paper_study = load_results(Path(__file__).parents[2] / "results" / "paper")
    found = study_ranges(paper_study)
    numbers = {(row["condition"], row["order"], row["step"], row["task"]) for row in paper_extrema()}
    assert {(one.condition, one.order, str(one.step), one.task) for one in found} <= numbers
    assert found
    assert not ranges_table(paper_study).rows  # one seed has no range
    assert not ranges_figures(paper_study)
    entries = [replace(entry, seed=seed) for seed in range(2) for entry in paper_study.entries]
    twice = replace(paper_study, entries=tuple(entries))
    table = ranges_table(twice)
    assert len(table.rows) == len(found)
    assert ranges_figures(twice)[0].name == "ranges"
    for one, row in zip(study_ranges(twice), table.rows, strict=True):
        assert row[-1] == ("yes" if min(one.ours) <= one.paper <= max(one.ours) else "no")
