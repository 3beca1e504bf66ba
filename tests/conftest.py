"""What many tests share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small import tiny_config, tiny_study

from evergait.commands.study import run_study
from evergait.studies.folder import load_results
from evergait.studies.results import Results
from evergait.training.run import train

os.environ["NO_COLOR"] = "1"
SWITCHES = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """The file of a tiny study that is not trained yet."""
    path = tmp_path / "tiny.toml"
    path.write_text(tiny_study())
    return path


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished tiny run; not to be changed."""
    out = tmp_path_factory.mktemp("trained") / "run"
    train(tiny_config(), out, threads=1)
    return out


@pytest.fixture(scope="session")
def trained_study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two seeds of the tiny study, without tables and figures; not to be changed."""
    path = tmp_path_factory.mktemp("study")
    (path / "tiny.toml").write_text(tiny_study())
    run_study(path / "tiny.toml", path / "out", seeds=2, threads=1, artifacts=False)
    return load_results(path / "out")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A real Chromium; tests that want it are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=SWITCHES)
        yield browser
        browser.close()
