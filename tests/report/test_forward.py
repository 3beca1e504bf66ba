"""The report as a thing to forward: its address keeps the view, and its parts can be saved; its robots live."""

import io
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageColor, ImageSequence

from evergait.commands.report import write_report
from evergait.live.lab import SAMPLE
from evergait.studies.folder import load_results
from report.test_browser import Open, opened, recorded, until

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
    _, content = saved(page, page.locator(".scroll:has(table.heat) + button").first.click)
    heads, *rows = content.decode().splitlines()
    shown = page.locator("table.heat").first.locator("tbody td").all_inner_texts()
    assert heads.split(",")[1:3] == ["Walker2d", '"Walker2d'], heads  # a score and "Walker2d, return"
    assert [cell for row in rows for cell in row.replace('"', "").split(",")[1:]] == [
        part.replace(",", "").replace("\u2212", "-") for text in shown for part in text.split()
    ]
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


def film_frames(content: bytes) -> list[Image.Image]:
    with Image.open(io.BytesIO(content)) as film:
        return [frame.convert("RGB") for frame in ImageSequence.Iterator(film)]


@pytest.mark.parametrize("live", [True, False])
def test_a_comparison_is_filmed(walker: Path, opened: Open, live: bool) -> None:
    """As a video and as a GIF: two robots that live, or two gaits that were recorded."""
    page = opened(walker)
    if not live:
        recorded(page)
    page.evaluate("globalThis.filmSeconds = 3")  # on a busy machine one second may bring no frame
    video, animation = ("#film", "#film-gif") if live else ("#record", "#record-gif")
    name, content = saved(page, page.locator(video).click)
    assert (name, content[:4]) == ("evergait.webm", b"\x1a\x45\xdf\xa3")
    assert b"\x1f\x43\xb6\x75" in content, "a cluster of frames"
    name, content = saved(page, page.locator(animation).click)
    frames = film_frames(content)
    assert (name, frames[0].width) == ("evergait.gif", 640)
    assert len(frames) > 3
    changed = [ImageChops.difference(frames[0], frames[-1]).crop(box).getbbox() for box in halves(frames[0])]
    assert all(changed) if live else any(changed)  # what was recorded lies still once it has fallen
    stage = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--stage').trim()")
    assert all(frame.getpixel((0, frame.height // 5)) == ImageColor.getrgb(stage) for frame in frames)


def halves(image: Image.Image) -> tuple[tuple[int, int, int, int], ...]:
    middle = image.width // 2
    return (0, 0, middle, image.height), (middle, 0, image.width, image.height)


def test_the_address_keeps_the_view(walker: Path, opened: Open) -> None:
    page = opened(walker, reduced_motion="reduce")
    recorded(page)
    page.locator("#player-tasks").get_by_role("button", name="Swimmer").click()
    page.locator("#player .pick-condition").nth(1).select_option("distill")
    page.locator("#player .pick-moment").nth(1).select_option(label="after Walker2d")
    page.locator("#tasks").get_by_role("button", name="Hopper").click()
    page.locator("#lab .pick-when").first.select_option(label="after Walker2d")
    again = page.context.new_page()
    again.goto(page.url)
    until(again, "Boolean(globalThis.lab?.sides)")
    assert again.locator("#player-tasks [aria-pressed=true]").inner_text() == "Swimmer"
    assert again.locator("#player .pick-condition").nth(1).input_value() == "distill"
    assert again.locator("#player .pick-moment").nth(1).locator("option:checked").inner_text() == "after Walker2d"
    assert again.locator("#tasks [aria-pressed=true]").inner_text() == "Hopper"
    chosen = again.locator("#lab .pick-when option:checked").all_inner_texts()
    assert chosen == ["after Walker2d", "on the time line"]


def test_robots_of_a_report_live_in_place_of_what_was_recorded(walker: Path, opened: Open) -> None:
    page = opened(walker)
    until(page, "Boolean(globalThis.lab?.sides) && !document.querySelector('#recorded').open")
    assert page.locator("#tasks [aria-pressed=true]").inner_text() == "Walker2d"  # what was lost most
    naive, distilled = page.locator("#lab .outcome").all_inner_texts()
    assert "return 12 when evaluated" in naive
    assert "return 30" in distilled
    page.locator("#lab .stages").scroll_into_view_if_needed()
    until(page, "lab.sides[1].stage.distance() > 2")
    page.locator("#lab .pick-when").first.select_option(label="after Walker2d")
    until(page, "lab.sides[0].stage.distance() > 2")
    page.locator("details:has(#training) > summary").click()
    assert page.locator("#method option").all_inner_texts() == ["naive", "replay", "distill"]
    page.locator("#method").select_option("distill")
    page.locator("#generations").fill("1")
    page.locator("#train").click()
    until(page, "document.querySelector('#news').textContent.startsWith('Generation 1 of 1')")


def test_a_report_trains_on(walker: Path, opened: Open) -> None:
    page = opened(walker)
    page.get_by_text("Train it on, here").click()
    page.locator("#generations").fill("1")
    page.locator("#train").click()
    until(page, "lab.data.runs.length === 3 && !training.wanted && lab.data.runs[2].moments.at(-1).end")
    assert len(page.locator("#here").inner_text()) == 64
