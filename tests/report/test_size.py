"""The page of the whole paper, as large as it can get, stays below its limit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic import make_paper_study

from evergait.analysis import plane
from evergait.commands.report import write_report
from evergait.report.catalogue import BUDGET
from evergait.report.encoding import encode
from evergait.report.gait import Moment, Recorder
from evergait.training.run import Run
from report.test_page import page_data

LIMIT = 15_000_000


@pytest.mark.prove
def test_the_paper_at_full_size_makes_a_page_below_15_mb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three seeds of 25 runs with 101 evaluations per phase, gaits up to their budget, and a landscape of noise."""
    noise = np.random.default_rng(1)

    def record(self: Recorder, run: Run, moment: Moment) -> dict[str, Any]:
        n_channels = len(self.robot.skeleton.geoms) * 4
        motion = encode(noise.integers(-2000, 2000, (500, n_channels)))
        score = encode(noise.integers(0, 30, (500, 1)).cumsum(axis=0))
        told = {"return": 300.0, "steps": 1000, "seconds": 20.0, "ended": "truncated"}
        return {"motion": motion, "score": score, **told, "id": str(noise.integers(1 << 60)), "episode": 4}

    results = make_paper_study(tmp_path, n_seeds=3)
    assert len(results.entries) == 3 * 25
    monkeypatch.setattr(Recorder, "record", record)
    monkeypatch.setattr(plane, "_landscape", lambda *_: noise.uniform(0, 400, (plane.N_GRID, plane.N_GRID)).tolist())
    assert isinstance(plane.plane_data(results), dict)
    path = write_report(results, tmp_path)
    data = page_data(path.read_text())
    n_bytes = sum(len(gait["motion"]) + len(gait["score"]) for gait in data["gaits"])
    size = path.stat().st_size
    print(f"{size / 1e6:.2f} MB, of which {n_bytes / 1e6:.2f} MB are {len(data['gaits'])} gaits; 25 charts")
    assert 0.95 * BUDGET < n_bytes <= BUDGET
    assert len(data["panels"]) == 25
    assert len(data["panels"][0]["x"]) == 3 * 101
    assert data["plane"]["values"]
    assert size + 3_000_000 < LIMIT, "films of robots without a plane may come on top"
