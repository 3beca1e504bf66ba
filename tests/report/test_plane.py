"""The plane of θ on the page: what was measured is what is drawn, and there are words when nothing was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergait.analysis.plane import FILE, Plane
from evergait.commands.report import write_report
from evergait.paper.study import analyse
from evergait.report.plane import DAMAGED, LEVELS, sketch
from evergait.scores.scale import Scale
from evergait.studies.results import Results
from report.conftest import PLANE_REFERENCES
from report.test_page import page_data

TASKS = ("InvertedPendulum-v5", "InvertedDoublePendulum-v5")


def test_the_page_holds_what_was_measured(measured: Results, plane_page: Path) -> None:
    plane = json.loads((measured.path / FILE).read_text())
    scale = analyse(measured, PLANE_REFERENCES).scale
    data: Any = page_data(plane_page.read_text())["plane"]
    for values, task in zip(data["values"], TASKS, strict=True):
        expected = scale.score(task, np.array(plane["landscapes"][task]))
        np.testing.assert_allclose(values, expected, atol=5e-4)
    assert [len(stops) for stops in data["stops"]] == [len(path) for path in plane["paths"].values()]
    first = plane["paths"]["naive"]
    assert [stop["off"] for stop in data["stops"][0]] == pytest.approx([p["off"] for p in first], abs=5e-4)
    # Both begin at the same θ, and what hovering says there is the ledger's own first evaluation.
    assert data["stops"][0][0]["values"] == data["stops"][1][0]["values"]
    naive = next(e.run for e in measured.entries if e.condition == "naive" and e.order.startswith("InvertedPendulum "))
    reached = scale.score_of(TASKS[0], naive.ledgers[0].curve(TASKS[0])[0])
    assert data["stops"][0][0]["values"][0] == pytest.approx(reached, abs=5e-4)


def test_making_the_page_simulates_nothing(measured: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evergait.analysis.plane._measure", lambda *_: pytest.fail("measured again"))
    assert 'class="veil"' in write_report(measured, tmp_path, PLANE_REFERENCES).read_text()
    kept = (measured.path / FILE).read_bytes()
    try:
        (measured.path / FILE).unlink()
        assert "`evergait study run` does that" in write_report(measured, tmp_path, PLANE_REFERENCES).read_text()
    finally:
        (measured.path / FILE).write_bytes(kept)


SCALE = Scale("score", {"a": 0.0}, {"a": 10.0}, "the test")


def flat(best: float = 10.0) -> dict[str, Any]:
    """A landscape that rises from left to right, from 0 to R*."""
    points = [
        {"x": x, "y": 0.5, "off": 0.1, "stage": stage, "generation": 3, "learning": ["a"], "returns": {"a": 5.0}}
        for stage, x in enumerate((0.2, 0.8))
    ]
    rows = [[0.0, best / 2, best]] * 3
    axis = [0.0, 0.5, 1.0]
    return {
        "x": axis,
        "y": axis,
        "optima": {"a": [1.0, 0.5]},
        "best": {"a": best},
        "landscapes": {"a": rows},
        "paths": {"<b>": points},
    }


def test_veils_begin_where_the_landscape_reaches_their_level() -> None:
    picture = str(sketch(flat(), ["a"], SCALE).panels[0].picture)
    edges = [
        min(float(pair.split(" ")[0]) for pair in data.strip("MZ").replace("Z", "").split("L"))
        for data in (part.split('"')[0] for part in picture.split('class="veil" fill-opacity="0.055" d="')[1:])
    ]
    width = 312 - 30
    assert edges == pytest.approx([30 + width * level for level in LEVELS[:-1]], abs=0.06)
    assert "<b>" not in picture


@pytest.mark.parametrize(
    "damage", [lambda p: p.pop("optima"), lambda p: p.update(x=["a"]), lambda p: p.update(paths=[])]
)
def test_a_damaged_file_is_said_in_words(damage: Callable[[dict[str, Any]], Any]) -> None:
    plane = flat()
    damage(plane)
    assert sketch(plane, ["a"], SCALE).words == DAMAGED


def test_plane_is_orthonormal_and_projects() -> None:
    rng = np.random.default_rng(0)
    points = list(rng.normal(size=(3, 50)))
    plane = Plane.through(points)
    assert plane
    np.testing.assert_allclose(plane.axes @ plane.axes.T, np.eye(2), atol=1e-12)
    for point in points:
        assert plane.distance(point) == pytest.approx(0, abs=1e-9)
    away = points[0] + rng.normal(size=50)
    nearest = plane.theta(*plane.project(away))
    assert plane.distance(away) == pytest.approx(np.linalg.norm(away - nearest))
    assert plane.axes @ (away - nearest) == pytest.approx([0, 0], abs=1e-9)
