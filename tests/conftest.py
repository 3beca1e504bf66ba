"""What many tests share."""

import os
from pathlib import Path

import pytest
from small import tiny_config, tiny_study

from evergait.commands.studying import run_study
from evergait.studies.folder import load_results
from evergait.studies.results import Results
from evergait.training.run import train

os.environ["NO_COLOR"] = "1"


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished tiny run; not to be changed."""
    out = tmp_path_factory.mktemp("trained") / "run"
    train(tiny_config(), out, threads=1)
    return out


@pytest.fixture(scope="session")
def trained_study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two seeds of the tiny study; not to be changed."""
    path = tmp_path_factory.mktemp("study")
    (path / "tiny.toml").write_text(tiny_study())
    run_study(path / "tiny.toml", path / "out", seeds=2, threads=1)
    return load_results(path / "out")
