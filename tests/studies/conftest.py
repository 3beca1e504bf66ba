"""One tiny study, trained once for all tests that only look at it."""

from pathlib import Path

import pytest

from evergait.studies.commands import run_study
from evergait.studies.folder import load_results
from evergait.studies.results import Results

TINY = """\
title = "Tiny"
tasks = ["InvertedPendulum-v5", "InvertedDoublePendulum-v5"]
orders = "all"

[base]
pairs = 3
generations = 4
horizon = 20
evaluation = { every = 2, episodes = 2, random_policies = 2, snapshots = 1 }

[conditions.naive]
method = "naive"

[conditions.replay]
method = { name = "replay", budget = 2 }
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two seeds of the tiny study."""
    path = tmp_path_factory.mktemp("study")
    (path / "tiny.toml").write_text(TINY)
    run_study(path / "tiny.toml", path / "out", seeds=2, threads=1)
    return load_results(path / "out")
