"""The page, the figures, the tables and `show --json` say the same about one study, number for number."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from synthetic import make_study

from evergait.analysis.ranking import number, standings
from evergait.analysis.study import Analysis
from evergait.analysis.tables import MEASURES
from evergait.analysis.transfer import interference, pairwise, panel
from evergait.cli import main
from evergait.commands.report import write_report
from evergait.commands.show import describe_study
from evergait.figures.drawing import curve_figures, pairwise_figure
from evergait.paper.study import all_tables, analyse
from evergait.studies.results import Results
from evergait.tasks.base import short
from report.test_page import page_data

REFERENCES = {"Hopper-v5": 310.0, "InvertedPendulum-v5": 290.0}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two conditions, two orders, three seeds: enough for intervals."""
    return make_study(tmp_path_factory.mktemp("truth"), n_seeds=3)


@pytest.fixture(scope="module", params=[{}, REFERENCES], ids=["shipped", "given"])
def analysis(request: pytest.FixtureRequest, study: Results) -> Analysis:
    return analyse(study, request.param)


@pytest.fixture(scope="module")
def page(study: Results, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = write_report(study, tmp_path_factory.mktemp("page"), REFERENCES)
    return {"text": path.read_text(), "data": page_data(path.read_text())}


def drawn_lines(axes: Axes) -> Iterator[np.ndarray]:
    return (np.asarray(line.get_ydata(), float) for line in axes.lines if len(np.asarray(line.get_ydata())) > 2)


def test_curves_of_page_and_figures_are_the_same(study: Results, page: dict[str, Any]) -> None:
    analysis = analyse(study, REFERENCES)
    pictures = {picture.name: picture for picture in curve_figures(analysis)}
    assert {"curves-naive", "bwt-naive", "fwt-naive", "curves-replay"} <= set(pictures)
    for kind, measure in (("curves", "score"), ("bwt", "backward"), ("fwt", "forward")):
        for condition in study.conditions:
            panels = [data for data in page["data"]["panels"] if data["condition"] == condition]
            assert len(panels) == 2
            for data, axes in zip(panels, pictures[f"{kind}-{condition}"].figure.axes, strict=False):
                wanted = [np.array(line["y"], float) for line in data["lines"][measure]]
                found = list(drawn_lines(axes))
                assert len(found) == len(wanted)
                for one, other in zip(sorted(found, key=np.nansum), sorted(wanted, key=np.nansum), strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_pairs_of_page_and_figures_are_the_same(analysis: Analysis) -> None:
    for direction in ("backward", "forward"):
        (picture,) = pairwise_figure(analysis, direction)
        heights = sorted(bar.get_height() for bar in picture.figure.axes[0].patches if isinstance(bar, Rectangle))
        charts = pairwise(analysis.streams, direction)
        assert heights == pytest.approx(sorted(bar.value for chart in charts for bar in chart.bars))
        for chart in charts:
            assert all(bar.values.interval for bar in chart.bars)


def test_tables_page_and_command_rank_and_number_alike(analysis: Analysis) -> None:
    told = describe_study(analysis)
    summary = next(table for table in all_tables(analysis) if table.name == "summary")
    rows = list(csv.DictReader(summary.to_csv().splitlines()))
    ranked = standings(analysis)
    names = [standing.condition for standing in ranked]
    assert [row["condition"] for row in rows] == [one["condition"] for one in told["conditions"]] == names
    for row, one, standing in zip(rows, told["conditions"], ranked, strict=True):
        assert float(row[f"final {analysis.scale.name}"]) == one["final"] == standing.final.estimate
        low, high = one["interval"]
        assert (float(row[f"final {analysis.scale.name}, low"]), float(row[f"final {analysis.scale.name}, high"])) == (
            low,
            high,
        )
        for name in MEASURES:
            assert float(row[name]) == one["measures"][name]["estimate"]
        for task, found in one["tasks"].items():
            assert float(row[f"final return, {short(task)}"]) == pytest.approx(found["final_return"])
        assert np.mean([found["final"] for found in one["tasks"].values()]) == pytest.approx(one["final"])


def test_the_page_prints_those_numbers(study: Results, page: dict[str, Any]) -> None:
    for standing in standings(analyse(study, REFERENCES)):
        low, high = standing.final.interval or (0.0, 0.0)
        words = f"a mean score of <b>{number(standing.final.estimate)}</b> [{number(low)}, {number(high)}]"
        assert words in page["text"]
        for row in standing.rows:
            assert f"{short(row.task)} {number(row.final_return)}" in page["text"]


def test_interference_is_one_minus_the_best_of_the_curves(analysis: Analysis) -> None:
    for chart in interference(analysis.streams):
        groups = [group for group in analysis.streams if group.condition == chart.condition]
        for bar in chart.bars:
            position, task = int(bar.label[0]) - 1, bar.task
            (group,) = [group for group in groups if group.learning[position] == (task,)]
            best = [metrics.curve(task, position).max() for metrics in group.metrics]
            assert bar.value == pytest.approx(1 - np.mean(best))


def test_a_run_and_its_report_have_the_same_score(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(trained), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    analysis = analyse(Results.of_run(trained))
    assert shown["scale"]["source"] == analysis.scale.source
    (group,) = analysis.groups
    lines = panel(group).lines
    for task, value in shown["stages"][-1]["scores"].items():
        assert lines["score"][task].mean[-1] == pytest.approx(value)
    for task, value in shown["stages"][-1]["returns"].items():
        assert lines["return"][task].mean[-1] == pytest.approx(value)
