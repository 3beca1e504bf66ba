"""Tables say what the ledgers say, to the last digit, and nothing in a user's names can break out of them.

The page, the figures, the tables and `show --json` say the same about one study, number for number.
"""

import csv
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from small import tiny_study
from synthetic import make_config, make_study, write_run

from evergait.analysis.ranking import Standing, headline, standings
from evergait.analysis.study import Analysis
from evergait.analysis.tables import MEASURES
from evergait.analysis.transfer import interference, pairwise, panel
from evergait.cli import main
from evergait.commands.report import write_report
from evergait.commands.show import describe_study
from evergait.commands.study import run_study
from evergait.core.table import Table, escape_latex, escape_markdown, number
from evergait.figures.artifacts import write_artifacts
from evergait.figures.drawing import curve_figures, pairwise_figure
from evergait.paper.study import all_tables, analyse
from evergait.studies.results import Entry, Results
from evergait.tasks.base import short
from report.test_page import page_data

# The independent script: standard library only, straight from the files.


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def curves(study: Path, phase: str) -> tuple[dict[str, Any], dict[str, list[float]]]:
    lines = [json.loads(line) for line in (study / "phases" / phase / "ledger.jsonl").read_text().splitlines()]
    return lines[0], {
        task: [mean(line["evaluations"][task]["returns"]) for line in lines[1:]] for task in lines[0]["tasks"]
    }


def recompute(study: Path) -> dict[tuple[str, str, int], dict[str, float]]:
    """By the final policies of single-task phases over 50 episodes, which `study run` has played."""
    cells = json.loads((study / "study.json").read_text())["cells"]
    played = json.loads((study / "references.json").read_text())["returns"]
    best: dict[str, float] = {}
    randoms: dict[str, list[float]] = {}
    for cell in cells:
        head, _ = curves(study, cell["phases"][0])
        for task, values in head["random_returns"].items():
            randoms.setdefault(task, []).extend(values)
        if cell["condition"] == "single":
            task = head["learning"][0]
            best[task] = max(best.get(task, -1e9), played[cell["phases"][0]])
    zero = {task: mean(values) for task, values in randoms.items()}
    found = {}
    for cell in cells:
        if cell["condition"] != "single":
            stages = [curves(study, phase) for phase in cell["phases"]]
            task = [head["learning"][0] for head, _ in stages]
            last = len(stages) - 1

            def score(task: str, value: float) -> float:
                return (value - zero[task]) / (best[task] - zero[task])

            top = [score(task[i], max(stages[i][1][task[i]])) for i in range(last + 1)]
            own = [score(task[i], stages[i][1][task[i]][-1]) for i in range(last + 1)]
            final = [score(t, stages[last][1][t][-1]) for t in task]
            random = {t: score(t, mean(v)) for t, v in stages[0][0]["random_returns"].items()}
            before = [score(task[i], stages[i - 1][1][task[i]][-1]) for i in range(1, last + 1)]
            found[cell["condition"], cell["order"], cell["seed"]] = {
                "final score": mean(final),
                "avg BWT, from best": mean([final[i] - top[i] for i in range(last)]),
                "avg BWT, from end of phase": mean([final[i] - own[i] for i in range(last)]),
                "avg FWT": mean([before[i - 1] - random[task[i]] for i in range(1, last + 1)]),
                "Int": mean([1 - top[i] for i in range(1, last + 1)]),
            }
    return found


@pytest.fixture(scope="module")
def drawn(trained_study: Results, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The study with its tables and figures."""
    path = tmp_path_factory.mktemp("drawn")
    shutil.copytree(trained_study.path, path / "out")
    (path / "tiny.toml").write_text(tiny_study())
    return run_study(path / "tiny.toml", path / "out", seeds=2, threads=1)


def test_tables_equal_an_independent_script_to_the_last_digit(drawn: Results) -> None:
    expected = recompute(drawn.path)
    tables = {table.name: table for table in all_tables(analyse(drawn))}
    rows = list(csv.DictReader(tables["runs"].to_csv().splitlines()))
    assert len(rows) == len(expected) == 8
    for row in rows:
        for name, value in expected[row["condition"], row["order"], int(row["seed"])].items():
            assert float(row[name]) == pytest.approx(value, rel=1e-12, abs=1e-12), name
            assert f"{float(row[name]):.12g}" == f"{value:.12g}"
    for row in csv.DictReader(tables["summary"].to_csv().splitlines()):
        for name in expected[next(iter(expected))]:
            values = [run[name] for key, run in expected.items() if key[0] == row["condition"]]
            assert float(row[name]) == pytest.approx(mean(values), rel=1e-12)
            assert not row[f"{name}, low"]  # two seeds are too few


def test_extrema_are_those_of_the_ledgers(drawn: Results) -> None:
    cells = json.loads((drawn.path / "study.json").read_text())["cells"]
    table = next(table for table in all_tables(analyse(drawn)) if table.name == "extrema-replay")
    rows = list(csv.DictReader(table.to_csv().splitlines()))
    assert len(rows) == 2 * 3
    for row in rows:
        wanted = [c for c in cells if (c["condition"], c["order"]) == ("replay", row["order"])]
        found = [curves(drawn.path, c["phases"][int(row["step"]) - 1])[1][f"{row['task']}-v5"] for c in wanted]
        assert float(row["max, ours"]) == pytest.approx(mean([max(curve) for curve in found]), rel=1e-12)
        assert float(row["min, ours"]) == pytest.approx(mean([min(curve) for curve in found]), rel=1e-12)


def test_artifacts_are_the_same_bytes_again_and_simulate_once(drawn: Results, tmp_path: Path) -> None:
    folders = [drawn.path / part for part in ("tables", "figures")]
    first = {file.name: file.read_bytes() for folder in folders for file in folder.iterdir()}
    assert {"summary.csv", "summary.md", "summary.tex", "plane.png", "plane.pdf", "curves-naive.png"} <= set(first)
    before = (drawn.path / "plane.json").stat().st_mtime_ns
    write_artifacts(analyse(drawn), tmp_path)
    again = {file.name: file.read_bytes() for part in ("tables", "figures") for file in (tmp_path / part).iterdir()}
    assert again == first
    assert (drawn.path / "plane.json").stat().st_mtime_ns == before


HOSTILE = ["=1+1|x", "a & b_c 50% $x$ \\input{y} <script>", "@cmd", "-2", "néw\nline", "{}~^#"]


def test_names_cannot_break_out() -> None:
    table = Table("t", HOSTILE[1], ("name", "value"), tuple((name, 1.5) for name in HOSTILE))
    cells = [row[0] for row in csv.reader(table.to_csv().splitlines(keepends=True))][1:]
    assert not any(cell[0] in "=+-@" for cell in cells)
    lines = [line for line in table.to_markdown().splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(HOSTILE)
    assert all(line.replace(r"\|", "").count("|") == 3 for line in lines)
    assert "<" not in table.to_markdown()
    assert r"a \& b\_c 50\% \$x\$ \textbackslash{}input\{y\} \textless{}script\textgreater{}" in table.to_latex()
    assert escape_latex("R̂ → x") == r"$\hat{R}$ $\rightarrow$ x"
    assert escape_markdown("a\\b") == "a\\\\b"


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


def test_runs_that_share_a_phase_count_its_random_policies_once(study: Results) -> None:
    more = (replace(entry, condition="again") for entry in study.entries if entry.seed == 0)
    zero = analyse(study, REFERENCES).scale.zero
    assert analyse(replace(study, entries=(*study.entries, *more)), REFERENCES).scale.zero == zero


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


def of_naive(results: Results) -> tuple[Standing, tuple[object, ...]]:
    """Its standing and its row of the summary."""
    analysis = analyse(results, REFERENCES)
    (standing,) = [one for one in standings(analysis) if one.condition == "naive"]
    summary = next(table for table in all_tables(analysis) if table.name == "summary")
    return standing, next(row for row in summary.rows if row[0] == "naive")


def test_a_seed_that_lacks_an_order_is_in_no_number(study: Results) -> None:
    naive = [entry for entry in study.entries if entry.condition == "naive"]
    last = [entry for entry in naive if entry.seed == 2]
    found, row = of_naive(replace(study, entries=tuple(entry for entry in study.entries if entry is not last[0])))
    wanted, other = of_naive(replace(study, entries=tuple(entry for entry in study.entries if entry not in last)))
    assert (found.n_orders, found.n_seeds) == (2, 2)
    assert (found.final.estimate, found.rows, row) == (wanted.final.estimate, wanted.rows, other)
    assert found.notes == ("1 run is left out, so that every seed has the same orders",)
    assert wanted.notes == of_naive(study)[0].notes == ()


def test_where_no_seed_has_every_order_those_of_the_first_seed_are_told(study: Results) -> None:
    naive = [entry for entry in study.entries if entry.condition == "naive"]
    first, second = dict.fromkeys(entry.order for entry in naive)
    orders = {0: first, 1: first, 2: second}
    found, row = of_naive(replace(study, entries=tuple(e for e in naive if e.order == orders[e.seed])))
    assert (found.n_orders, found.n_seeds, found.final.orders, found.final.seeds) == (1, 2, (first,), (0, 1))
    assert [len(one.points) for one in found.rows] == [2, 2]
    assert row[-2:] == (1, 2)


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


@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        ({"a": 805, "b": 405}, "a ended highest, with a score of 0.80 .InvertedPendulum 80..; b lowest, with 0.40 .*"),
        (
            {"a": 805, "b": 405, "c": 805},
            "(a and c|c and a) ended highest, with a score of 0.80 .InvertedPendulum 80. and 80..; b lowest, with .*",
        ),
        ({"a": 805, "b": 405, "c": 405}, "a ended highest, .*; (b and c|c and b) lowest, with 0.40 .*"),
        ({"a": 805, "b": 805, "c": 805}, "[abc], [abc] and [abc] ended alike, with a score of 0.80 .*"),
        ({"a": 805}, "a ended with a score of 0.80 .* on InvertedPendulum"),
    ],
)
def test_who_ended_on_one_level_is_named_together(tmp_path: Path, ends: dict[str, int], sentence: str) -> None:
    entries = [
        Entry(
            name,
            "InvertedPendulum-v5",
            0,
            write_run(tmp_path / name, make_config(["InvertedPendulum-v5"]), lambda *at, end=end: end * at[2]),
        )
        for name, end in ends.items()
    ]
    told = headline(
        standings(analyse(Results("Level", tmp_path, tuple(entries)), {"InvertedPendulum-v5": 1005.0})), "score"
    )
    assert re.fullmatch(sentence, told), told
