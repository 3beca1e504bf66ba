"""Ranges and distances against numbers by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from evergait.figures.drawing import ranges_figures
from evergait.paper.numbers import paper_extrema, paper_single_task
from evergait.paper.ranges import distance, published, ranges_table, study_ranges, worst_share
from evergait.paper.study import hat_scale
from evergait.scores.metrics import Metrics
from evergait.store.ledger import Ledger, Record
from evergait.studies.folder import load_results

ORDER = "Hopper > Swimmer > Walker2d"
TASKS = ("Hopper-v5", "Swimmer-v5", "Walker2d-v5")


def ledger(stage: int, *evaluations: tuple[float, float, float]) -> Ledger:
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
        ledgers.append(ledger(stage, *zip(*extrema, strict=True)))
    metrics = Metrics(ledgers, hat_scale("", paper_single_task(), TASKS))
    assert distance(metrics, paper) == pytest.approx(0.0)
    hopper = paper[0, "Hopper-v5"][1]
    assert worst_share(metrics, 0, 2) == pytest.approx(paper[2, "Hopper-v5"][0] / hopper)
    off = [replace(ledgers[0], records=(*ledgers[0].records, replace(ledgers[0].records[0], generation=9)))]
    assert distance(Metrics([*off, *ledgers[1:]], metrics.scale), paper) == pytest.approx(0.0)
    shifted = ledger(0, (paper[0, "Hopper-v5"][0], 0, 0), (hopper + 351.192, 0, 0))
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
