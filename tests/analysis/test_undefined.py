"""An evaluation without a finite return is a value for nobody: it ranks last, hides no number and stops no command."""

import json
import math
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic import Curve, forgetting, make_config, write_run

from evergait.analysis import plane, study
from evergait.analysis.ranking import headline, percent, standings
from evergait.analysis.study import measure_references, measured_references, settings, single_task_source
from evergait.analysis.tables import extrema_tables, multi_task_table, single_task_table
from evergait.cli import main
from evergait.core.errors import EvergaitError
from evergait.core.files import write_json
from evergait.core.table import Table
from evergait.figures.artifacts import all_figures
from evergait.figures.drawing import legend_below, panels, task_colours, task_lines
from evergait.methods import Method, Multitask
from evergait.paper.numbers import SINGLE_TASK, distance, published, ranges_table, study_ranges, worst_share
from evergait.paper.study import analyse, hat_scale
from evergait.report.charts import row_domains, ticks
from evergait.report.html import render_report, sentence
from evergait.scores.metrics import Metrics
from evergait.store.ledger import Ledger, Record, best_of, worst_of
from evergait.studies.folder import load_results
from evergait.studies.results import Entry, Results
from evergait.training.frame import order_name
from evergait.training.run import Run
from paper.test_claims import ORDER, TASKS, FakeRun, paper_results, ranged_ledger

NAN = math.nan
Played = tuple[Results, list[str], set[str]]
POLE, MOON = "InvertedPendulum-v5", "InvertedPendulum-v5@gravity=0.1654"
"""The second one has no R* that ships, so that values stay returns."""


def until(end: float) -> Curve:
    """Rises to this return, whatever is learnt."""
    return lambda task, stage, share, stream: end * share


def undefined_at(curve: Curve, stage: int, share: float, only: str = "") -> Curve:
    """The same, but for one evaluation."""
    return lambda task, at, when, stream: (
        NAN if (at, when) == (stage, share) and only in (task, "") else curve(task, at, when, stream)
    )


def make_results(
    path: Path, curves: dict[str, Curve], stream: Sequence[str] = (POLE,), method: Method | None = None
) -> Results:
    """One run per condition, each in a store of its own."""
    config = make_config(stream, method=method)
    entries = [Entry(n, order_name(stream), 0, write_run(path / n, config, curve)) for n, curve in curves.items()]
    return Results("Undefined", path, tuple(entries))


def test_the_best_and_the_worst_are_among_what_is_defined() -> None:
    values = np.array([3.0, NAN, -1.0, np.inf])
    assert (best_of(values), worst_of(values)) == (3.0, -1.0)
    assert np.isnan([best_of(np.full(2, NAN)), worst_of(np.zeros(0))]).all()
    records = tuple(Record(i, {"a": [value]}, {"a": [1]}, {}) for i, value in enumerate(values[:3]))
    ledger = Ledger(0, ("a",), ("a",), records=records)
    assert (ledger.best("a"), ledger.worst("a")) == (3.0, -1.0)


@pytest.mark.parametrize("order", ["abc", "bca", "cab"])
def test_who_ended_undefined_ranks_last_and_is_neither_highest_nor_lowest(tmp_path: Path, order: str) -> None:
    curves = {"a": until(205.0), "b": undefined_at(until(505.0), 0, 1.0), "c": until(905.0)}
    analysis = analyse(make_results(tmp_path, {name: curves[name] for name in order}), {POLE: 1005.0})
    ranked = standings(analysis)
    assert [standing.condition for standing in ranked] == ["c", "a", "b"]
    told = headline(ranked, "score")
    assert told.startswith("c ended highest, with a score of 0.90 (")
    assert "; a lowest, with 0.20 (" in told
    assert headline(ranked[-1:], "score") == "No condition ended with a score that is defined"
    assert [standing.notes for standing in ranked[:2]] == [(), ()]
    assert ranked[-1].notes == ("its end is not defined: an evaluation there has no finite return",)


def test_what_is_left_of_an_undefined_end_is_not_told_in_per_cent(tmp_path: Path) -> None:
    other = "Hopper-v5"
    curves = {"naive": undefined_at(forgetting, 1, 1.0, POLE), "other": forgetting}
    analysis = analyse(make_results(tmp_path, curves, (POLE, other)), {POLE: 310.0, other: 310.0})
    defined, standing = standings(analysis)
    assert (standing.condition, standing.kept) == ("naive", None)
    assert defined.kept == pytest.approx(0.1, abs=0.02)
    assert re.search(r"InvertedPendulum to [01]\.\d\d, which ended at –;", sentence(standing))
    assert percent(NAN) == "an unknown share"
    text = render_report(analysis)
    assert "nan\u00a0%" not in text
    assert "<b>nan" not in text


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("stream", [(POLE,), (MOON,), (MOON, POLE)])
def test_a_report_is_written_whichever_evaluation_is_undefined(
    tmp_path: Path, stream: tuple[str, ...], share: float
) -> None:
    results = make_results(tmp_path, {"one": undefined_at(until(200.0), 0, share), "two": until(100.0)}, stream)
    out = tmp_path / "page.html"
    assert main(["report", str(results.entries[0].run.path), "--output", str(out)]) == 0
    page = render_report(analyse(results))
    assert "Undefined" in page
    assert not re.search(r'style="[^"]*nan', page)  # what has no place is not drawn


def test_axes_show_what_is_defined(tmp_path: Path) -> None:
    nothing: Curve = lambda *_: NAN  # noqa: E731
    results = make_results(tmp_path, {"half": undefined_at(until(200.0), 0, 0.0)}, (MOON,))
    (low, high) = row_domains(standings(analyse(results)), (MOON,))[MOON]
    assert 190 < low < high < 210  # right after learning and the end, which are the same
    results = make_results(tmp_path / "none", {"none": nothing}, (MOON,))
    bounds = row_domains(standings(analyse(results)), (MOON,))[MOON]
    assert ticks(bounds)


def test_tables_have_the_extrema_of_what_is_defined(tmp_path: Path) -> None:
    curve = undefined_at(until(200.0), 0, 0.5)
    analysis = analyse(make_results(tmp_path / "single", {"single": curve}))
    assert single_task_table(analysis).rows[0][1] == pytest.approx(200, abs=5)
    analysis = analyse(make_results(tmp_path / "naive", {"naive": curve}))
    (table,) = extrema_tables(analysis)
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert cells["max, ours"] == pytest.approx(200, abs=5)
    assert cells["min, ours"] == pytest.approx(0, abs=5)
    analysis = analyse(make_results(tmp_path / "all", {"all": curve}, (POLE, "Reacher-v5"), Multitask()))
    assert [row[3] for row in multi_task_table(analysis).rows] == pytest.approx([200, 200], abs=5)


def test_a_cell_that_is_not_defined_is_empty() -> None:
    table = Table("t", "Caption", ("name", "value"), (("a", NAN), ("b", None), ("c", 1.5)))
    assert [table.text(value) for _, value in table.rows] == ["–", "–", "1.50"]
    assert table.to_csv().splitlines() == ["name,value", "a,", "b,", "c,1.5"]


def test_the_distance_to_the_paper_leaves_out_what_is_undefined() -> None:
    paper = published("shared", ORDER)
    ledgers = []
    for stage in range(3):
        extrema = [paper.get((stage, task), (0.0, 0.0)) for task in TASKS]
        ledgers.append(ranged_ledger(stage, *zip(*extrema, strict=True), (NAN, NAN, NAN)))
    metrics = Metrics(ledgers, hat_scale("", SINGLE_TASK, TASKS))
    assert distance(metrics, paper) == pytest.approx(0.0)
    assert worst_share(metrics, 0, 2) == pytest.approx(paper[2, TASKS[0]][0] / paper[0, TASKS[0]][1])
    nothing = Metrics([ranged_ledger(0, (NAN, NAN, NAN)), *ledgers[1:]], metrics.scale)
    assert np.isnan(worst_share(nothing, 0, 2))  # and not "everything was lost"


def test_ranges_are_those_of_the_seeds_that_have_a_number() -> None:
    results = paper_results()
    nothing = Record(99, {task: [NAN] for task in TASKS}, {}, {})

    def seen(entry: Entry, seed: int, *, all_undefined: bool) -> Entry:
        before = [() if all_undefined else ledger.records for ledger in entry.run.ledgers]
        ledgers = [replace(x, records=(*y, nothing)) for x, y in zip(entry.run.ledgers, before, strict=True)]
        return replace(entry, seed=seed, run=FakeRun(entry.run.config, tuple(ledgers)))  # type: ignore[arg-type]

    twice = [seen(entry, seed, all_undefined=False) for seed in range(2) for entry in results.entries]
    blind = [seen(entry, 2, all_undefined=True) for entry in results.entries]
    found = study_ranges(replace(results, entries=(*blind, *twice)))
    assert {len(one.ours) for one in found} == {2}
    assert all(one.is_inside and np.isfinite(one.ours).all() for one in found)
    assert "nan" not in ranges_table(replace(results, entries=(*blind, *twice))).to_csv()
    assert not study_ranges(replace(results, entries=tuple(blind)))


# R*: final policies are played out over fifty episodes, once each.


@pytest.fixture
def played(trained_study: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    """A study, the phases that are played, in order, and those of them that are to have no finite return."""
    shutil.copytree(trained_study.path, tmp_path / "out")
    order: list[str] = []
    undefined: set[str] = set()

    def play(entry: Entry, workers: object) -> float:
        order.append(entry.run.phases[0].name)
        return NAN if order[-1] in undefined else 100.0 + entry.seed

    monkeypatch.setattr(study, "_play", play)
    return load_results(tmp_path / "out"), order, undefined


def singles(results: Results) -> dict[tuple[str, int], str]:
    """(task, seed) → the phase that learnt it alone."""
    found = [entry for entry in results.entries if entry.condition == "single"]
    return {(entry.run.config.stream[0], entry.seed): entry.run.phases[0].name for entry in found}


def source_of(results: Results) -> tuple[str, dict[str, float]]:
    config = next(entry.run.config for entry in results.entries if entry.condition == "single")
    words, best = single_task_source(results, settings(config))
    return words, dict(best)


def test_where_all_is_defined_the_file_has_the_returns_alone(played: Played) -> None:
    results, order, _ = played
    measure_references(results)
    assert len(order) == len(set(order)) == 4
    kept = json.loads((results.path / "references.json").read_text())
    assert kept.keys() - {"checksum"} == {"format", "episodes", "returns"}
    assert source_of(results)[1] == {POLE: 101.0, "InvertedDoublePendulum-v5": 101.0}


def test_an_undefined_policy_is_played_once_and_r_star_is_the_best_of_the_others(
    played: Played,
) -> None:
    results, order, undefined = played
    undefined.add(singles(results)[POLE, 1])
    measure_references(results)
    assert np.isnan(measured_references(results.path)[singles(results)[POLE, 1]])
    n_played = len(order)
    measure_references(results)
    assert len(order) == n_played
    words, best = source_of(results)
    assert best == {POLE: 100.0, "InvertedDoublePendulum-v5": 101.0}
    assert "(50 episodes each; 1 of 4 policies has no finite return)" in words


def test_a_task_whose_policies_are_all_undefined_has_no_r_star_and_none_of_another_kind(
    played: Played,
) -> None:
    results, _, undefined = played
    undefined.update(name for (task, _), name in singles(results).items() if task == POLE)
    measure_references(results)
    assert source_of(results)[1] == {"InvertedDoublePendulum-v5": 101.0}
    # Scores then come from the next source that has every task, never from two.
    assert analyse(results).scale.source.startswith("shipped references")


def test_the_last_evaluations_stand_in_only_where_nothing_was_played(tmp_path: Path) -> None:
    config = make_config((POLE,))
    curves = {0: undefined_at(until(900.0), 0, 1.0), 1: until(200.0)}
    entries = [
        Entry("single", POLE, seed, write_run(tmp_path / str(seed), replace(config, seed=seed), curve))
        for seed, curve in curves.items()
    ]
    words, best = source_of(Results("Unplayed", tmp_path, tuple(entries)))
    assert best[POLE] == pytest.approx(200, abs=5)
    assert "(their last evaluation; 1 of 2 policies has no finite return)" in words
    assert source_of(Results("Unplayed", tmp_path, tuple(entries[:1])))[1] == {}


@pytest.mark.parametrize("undefined", ["abc", [1], {"a": 1}])
def test_references_that_were_edited_are_refused(tmp_path: Path, undefined: object) -> None:
    write_json(tmp_path / "references.json", {"format": 1, "episodes": 50, "returns": {}, "undefined": undefined})
    with pytest.raises(EvergaitError, match="`undefined` must be a list of phases"):
        measured_references(tmp_path)


def test_a_landscape_with_a_hole_is_no_traceback(
    trained_study: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(trained_study.path, tmp_path / "out")
    hole = np.full((plane.N_GRID, plane.N_GRID), NAN).tolist()
    monkeypatch.setattr(plane, "_landscape", lambda *_: hole)
    assert plane.plane_data(load_results(tmp_path / "out")) == plane.UNDEFINED
    assert not (tmp_path / "out" / "plane.json").exists()


def test_a_single_task_run_without_a_best_policy_is_no_traceback(
    trained_study: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(trained_study.path, tmp_path / "out")
    state = Run.state
    monkeypatch.setattr(Run, "state", lambda *of: replace(state(*of), best_theta=np.zeros(0, np.float32)))
    assert plane.plane_data(load_results(tmp_path / "out")) == plane.NO_BEST


def test_figures_leave_out_the_line_of_a_task_whose_evaluations_are_all_undefined(tmp_path: Path) -> None:
    other = "Hopper-v5"
    blind: Curve = lambda task, *at: NAN if task == POLE else until(200.0)(task, *at)  # noqa: E731
    streams = make_results(tmp_path / "streams", {"naive": blind, "replay": until(100.0)}, (POLE, other))
    singles = make_results(tmp_path / "singles", {"single": blind})
    whole = make_results(tmp_path / "whole", {"single": blind}, (other,))
    entries = (*streams.entries, *singles.entries, *whole.entries)
    analysis = analyse(replace(streams, entries=entries), {POLE: 300.0, other: 300.0})
    pictures = {picture.name: picture.figure for picture in all_figures(analysis, measure=False)}
    assert {"curves-naive", "curves-replay", "baselines"} <= set(pictures)

    def colours(name: str) -> list[set[str]]:
        """Of the lines with points, by panel."""
        lines = [[line for line in axes.lines if len(np.asarray(line.get_ydata())) > 2] for axes in pictures[name].axes]
        return [{str(line.get_color()) for line in found} for found in lines]

    known = task_colours((POLE, other))
    assert colours("curves-naive") == [{known[other]}]
    assert colours("curves-replay") == [{known[POLE], known[other]}]
    assert colours("baselines") == [set(), {known[other]}]


MANY = [f"Task-v{i}" for i in range(32)]


def test_a_line_has_a_name_and_a_look_of_its_own() -> None:
    looks = {
        (colour, line) for colour, line in zip(task_colours(MANY).values(), task_lines(MANY).values(), strict=True)
    }
    assert len(looks) == len(MANY)
    figure, (first, second) = panels(1, 2)
    first.plot([], [], label="A")
    second.plot([], [], label="A")
    second.plot([], [], label="B")
    legend_below(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["A", "B"]
