"""The report as a thing to forward: its address keeps the view, and its parts can be saved; its robots live."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from evergait.commands.report import write_report
from evergait.live.lab import SAMPLE
from evergait.studies.folder import load_results
from report.test_browser import Open, opened, until

__all__ = ["opened"]


@pytest.fixture(scope="session")
def walker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report about the walker that ships."""
    folder = tmp_path_factory.mktemp("walker") / "study"
    shutil.copytree(SAMPLE, folder)  # gaits are kept beside a study
    return write_report(load_results(folder), folder)


def saved(page: Any, click: Any) -> tuple[str, bytes]:
    with page.expect_download() as download:
        click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_tables_and_figures_are_saved(walker: Path, opened: Open) -> None:
    page = opened(walker)
    name, content = saved(page, page.get_by_role("button", name="as CSV").first.click)
    assert name.endswith(".csv")
    first = page.locator("table").first
    assert first.locator("thead th").last.inner_text() in content.decode().splitlines()[0]
    assert len(content.decode().splitlines()) == first.locator("tr").count()
    name, content = saved(page, page.get_by_role("button", name="as SVG").first.click)
    assert (name[-4:], content[:4]) == (".svg", b"<svg")
    assert b"var(" not in content
    name, content = saved(page, page.get_by_role("button", name="as PNG").first.click)
    assert (name[-4:], content[:8]) == (".png", b"\x89PNG\r\n\x1a\n")


def test_a_cell_is_never_a_formula(walker: Path, opened: Open) -> None:
    page = opened(walker)
    page.evaluate("document.querySelector('tbody th').textContent = '=HYPERLINK(\"x\")'")
    _, content = saved(page, page.get_by_role("button", name="as CSV").first.click)
    assert '"\'=HYPERLINK(""x"")"' in content.decode()


def test_a_comparison_is_filmed(walker: Path, opened: Open) -> None:
    page = opened(walker)
    name, content = saved(page, page.locator("#record").click)
    assert name.startswith("evergait.")
    assert len(content) > 10_000


def test_the_address_keeps_the_view(walker: Path, opened: Open) -> None:
    page = opened(walker)
    page.locator("#player-tasks").get_by_role("button", name="Swimmer").click()
    page.locator(".pick-condition").nth(1).select_option("distill")
    page.locator(".pick-moment").nth(1).select_option(label="after Walker2d")
    assert "task=Swimmer" in page.url
    again = page.context.new_page()
    again.goto(page.url)
    assert again.locator("#player-tasks [aria-pressed=true]").inner_text() == "Swimmer"
    assert again.locator(".pick-condition").nth(1).input_value() == "distill"
    assert again.locator(".pick-moment").nth(1).locator("option:checked").inner_text() == "after Walker2d"


def test_robots_of_a_report_live(walker: Path, opened: Open) -> None:
    page = opened(walker)
    page.locator("#player-tasks").get_by_role("button", name="Walker2d").click()
    page.locator("#alive").click()
    until(page, "globalThis.inside.stages.length === 2 && globalThis.inside.stages[0].distance() > 2")
    assert page.locator(".side canvas:visible").count() == 2
    page.locator("#alive").click()
    assert page.locator(".side canvas:visible").count() == 2
    assert page.evaluate("globalThis.inside.on") is False
