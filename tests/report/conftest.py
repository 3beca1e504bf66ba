"""What tests of the report share: a synthetic study, its page, and a browser."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small import tiny_study
from synthetic import make_study

from evergait.commands.reporting import write_report
from evergait.commands.studying import run_study
from evergait.studies.results import Results

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
    return write_report(measured, tmp_path_factory.mktemp("plane"))


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
