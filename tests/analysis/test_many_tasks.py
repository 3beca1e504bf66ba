"""A stream of many tasks: every table and figure can still be read."""

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.text import Text
from synthetic import make_config, make_study, write_run

from evergait.analysis.study import Analysis
from evergait.analysis.transfer import pairwise
from evergait.commands.base import console, print_table
from evergait.commands.show import print_run, print_study
from evergait.figures.artifacts import all_figures
from evergait.figures.drawing import SETTINGS, Picture, pairwise_figure
from evergait.paper.study import analyse
from evergait.tasks.base import short

TASKS = ("InvertedPendulum-v5", *(f"InvertedPendulum-v5@gravity=0.{i}783" for i in range(1, 9)), "Hopper-v5@mass=1.5")
NAMES = ["InvertedPendulum", *(f"InvertedPendulum@gravity=0.{i}783" for i in range(1, 9)), "Hopper@mass=1.5"]


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return analyse(make_study(tmp_path_factory.mktemp("long"), tasks=TASKS))


def width_of(text: str) -> int:
    return max(map(len, text.splitlines()))


def test_show_of_a_long_run_fits_and_breaks_no_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path, make_config(TASKS))
    console.width = 80
    print_run(run, run.scored({}))
    shown = capsys.readouterr().out
    heads = [line for line in shown.splitlines() if line.startswith("trained on")]
    assert width_of(shown) <= 80
    assert " ".join(heads).replace("trained on", "").split() == NAMES  # each once, in the order of the stream
    assert len(heads) > 1
    last = [line.split() for line in shown.splitlines() if re.match(r"Hopper@mass=1.5 +[\d−]", line)]
    returns = [run.ledger.records[-1].mean(task.name) for task in run.config.stream_tasks]
    told = [float(text.replace("−", "-")) for line in last for text in line[1:] if "(" not in text]
    assert told == pytest.approx(returns, abs=0.5)


def test_show_of_a_study_of_many_tasks_fits(analysis: Analysis, capsys: pytest.CaptureFixture[str]) -> None:
    console.width = 80
    print_study(analysis)
    shown = capsys.readouterr().out
    assert width_of(shown) <= 80
    heads = [line for line in shown.splitlines() if line.startswith("condition ")]
    assert " ".join(heads).replace("condition", "").split() == NAMES
    assert sum(line.startswith("naive ") for line in shown.splitlines()) == len(heads)


def test_what_a_row_is_about_stands_in_every_part_of_a_wide_table(capsys: pytest.CaptureFixture[str]) -> None:
    console.width = 40
    rows = [("phase-1", "Hopper-v5", "planar", 1234.5, True), ("phase-1", "Swimmer-v5", "planar", 34.25, False)]
    print_table("Checked", ["phase", "task", "engine", "recorded", "agrees"], rows, n_names=2)
    shown = capsys.readouterr().out.splitlines()
    starts = [line.split()[:2] for line in shown if line.startswith("phase-1")]
    assert starts == [["phase-1", "Hopper-v5"], ["phase-1", "Swimmer-v5"]] * (len(starts) // 2)
    assert len(starts) > 2
    assert [line.split()[-1] for line in shown if line.startswith("phase-1")][-2:] == ["yes", "no"]


def uncut(picture: Picture) -> list[str]:
    """The words of a figure that its edges do not cut."""
    figure, labels = picture.figure, list[Text]()
    dict(picture.files())  # draws it
    for axes in figure.axes:
        labels += [axes.title, *axes.get_xticklabels(), *axes.get_yticklabels()]
    labels += [text for legend in figure.legends for text in legend.get_texts()]
    width, height = figure.bbox.size
    boxes = [(" ".join(text.get_text().split()), text.get_window_extent()) for text in labels]
    return [name for name, box in boxes if min(box.x0, box.y0) >= 0 and box.x1 <= width and box.y1 <= height]


def test_no_edge_of_a_figure_cuts_a_name(analysis: Analysis) -> None:
    pictures = {picture.name: picture for picture in all_figures(analysis, measure=False)}
    found = uncut(pictures["curves-naive"])
    assert set(NAMES) <= set(found)
    assert {" > ".join(NAMES), " > ".join(NAMES[::-1])} <= set(found)
    assert set(NAMES) <= set(uncut(pictures["pairwise-bwt"]))
    assert max(picture.figure.get_figwidth() for picture in pictures.values()) < 20


def test_a_matrix_has_the_pairs_that_bars_would_have(analysis: Analysis) -> None:
    with mpl.rc_context(SETTINGS):
        for kind in ("backward", "forward"):
            (picture,) = pairwise_figure(analysis, kind)
            for chart, axes in zip(pairwise(analysis.streams, kind), picture.figure.axes, strict=False):
                (image,) = axes.images
                rows, columns = (
                    [label.get_text() for label in labels]
                    for labels in (axes.get_yticklabels(), axes.get_xticklabels())
                )
                for bar in chart.bars:
                    first, arrow, second = bar.label.split()
                    row, column = (first, second) if arrow == "←" else (second, first)
                    value = np.asarray(image.get_array())[rows.index(row), columns.index(column)]
                    assert value == pytest.approx(bar.value)
                    assert short(bar.task) == row
