"""One tiny study, trained once for all tests that only look at it."""

from pathlib import Path

import pytest
from small import tiny_study

from evergait.commands.studying import run_study
from evergait.studies.folder import load_results
from evergait.studies.results import Results


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(tiny_study())
    return path


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two seeds of the tiny study."""
    path = tmp_path_factory.mktemp("study")
    (path / "tiny.toml").write_text(tiny_study())
    run_study(path / "tiny.toml", path / "out", seeds=2, threads=1)
    return load_results(path / "out")
