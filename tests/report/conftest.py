"""What tests of the report share: a synthetic study and its page."""

from pathlib import Path

import pytest
from small import tiny_study
from synthetic import make_study

from evergait.commands.report import write_report
from evergait.commands.study import run_study
from evergait.studies.results import Results

PLANE_REFERENCES = {"InvertedPendulum-v5": 30.0, "InvertedDoublePendulum-v5": 250.0}
"""Its few generations learn nothing, so that single-task phases give no R*."""


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two conditions, two orders, two seeds."""
    return make_study(tmp_path_factory.mktemp("study"), n_seeds=2)


@pytest.fixture(scope="session")
def report(study: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its page."""
    return write_report(study, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A tiny study that was really trained, with everything that `study run` writes."""
    path = tmp_path_factory.mktemp("measured")
    (path / "tiny.toml").write_text(tiny_study())
    return run_study(path / "tiny.toml", path / "out", threads=1)


@pytest.fixture(scope="session")
def plane_page(measured: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its page, which has a plane."""
    return write_report(measured, tmp_path_factory.mktemp("plane"), PLANE_REFERENCES)
