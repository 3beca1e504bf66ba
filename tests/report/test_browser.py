"""The page in a real Chromium: the player plays, scrubs and compares; toggles work; nothing is logged or fetched."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from synthetic import make_config, make_study, write_run

from evergait.commands.play import play
from evergait.commands.report import write_report
from evergait.studies.results import Results
from report.test_page import EVIL

Open = Callable[..., Any]


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Opens a file; afterwards fails if it logged anything, raised, showed a dialogue or asked for another file."""
    complaints: list[str] = []
    contexts = []

    def open_page(path: Path, width: int = 1280, height: int = 900, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        overhear(page, path, complaints)
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def overhear(page: Any, path: Path, complaints: list[str]) -> None:
    """Note what a page logs, raises, shows as a dialogue, or asks for beside its own file."""

    def asked(url: str) -> None:
        if url.split("?")[0] != path.as_uri() and url[:5] not in ("data:", "blob:"):
            complaints.append(url)

    def dismiss(dialog: Any) -> None:
        complaints.append(f"dialogue: {dialog.message}")
        dialog.dismiss()

    page.on("console", lambda message: complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("dialog", dismiss)
    page.on("request", lambda request: asked(request.url))


def until(page: Any, condition: str) -> None:
    """Wait in Python: the page's own policy forbids the eval that waiting in the page would need."""
    for _ in range(1200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never came true: {condition}")


def recorded(page: Any) -> Any:
    """The player of what was recorded, which is closed where robots live in its place."""
    until(page, "Boolean(globalThis.lab?.sides) && !document.querySelector('#recorded').open")
    page.locator("#recorded > summary").click()
    return page.locator("#player")


def pixels(page: Any, side: int) -> str:
    return str(page.evaluate(f"document.querySelectorAll('#player .side canvas')[{side}].toDataURL()"))


def test_player_plays_scrubs_and_compares(report: Path, opened: Open) -> None:
    page = opened(report, reduced_motion="reduce")
    recorded(page)
    assert page.locator("#play").get_attribute("aria-label") == "Play"  # calm was asked for: nothing moves by itself
    page.locator("#player-tasks").get_by_role("button", name="Hopper").click()
    first = pixels(page, 0)
    page.locator("#play").click()
    until(page, "Number(document.querySelector('#scrub').value) > 0")
    page.locator("#play").click()
    assert pixels(page, 0) != first
    page.locator("#scrub").evaluate("node => { node.value = node.max; node.dispatchEvent(new Event('input')); }")
    assert page.locator("#clock").inner_text().split(" of ")[0] == page.locator("#clock").inner_text().split(" of ")[1]
    assert pixels(page, 0) != pixels(page, 1)
    assert "fell" in page.locator("#player .side .fell:visible").first.inner_text()
    moments = page.locator(".pick-moment").first
    assert moments.locator("option:checked").inner_text() == "after Hopper"
    last = pixels(page, 0)
    moments.select_option(label="before training")
    assert pixels(page, 0) != last
    page.locator("#player-tasks").get_by_role("button", name="InvertedPendulum").click()
    assert "InvertedPendulum, naive" in str(page.locator("#player .side canvas").first.get_attribute("aria-label"))


def test_player_moves_by_itself_in_sight_unless_calm_is_wanted(report: Path, opened: Open) -> None:
    page = opened(report, reduced_motion="no-preference")
    recorded(page).locator(".stages").scroll_into_view_if_needed()
    until(page, "Number(document.querySelector('#scrub').value) > 0")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    until(page, "document.querySelector('#play').getAttribute('aria-label') === 'Play'")


def test_keyboard_and_touch_drive_the_player(report: Path, opened: Open) -> None:
    page = opened(report, 390, 844, reduced_motion="reduce", has_touch=True)
    recorded(page).focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert float(page.locator("#scrub").input_value()) == pytest.approx(0.08, abs=0.002)
    page.keyboard.press("ArrowLeft")
    assert float(page.locator("#scrub").input_value()) == pytest.approx(0.04, abs=0.002)
    page.keyboard.press("End")
    page.keyboard.press("Home")
    assert float(page.locator("#scrub").input_value()) == 0
    page.keyboard.press("Space")
    assert page.locator("#play").get_attribute("aria-label") == "Pause"
    page.locator("#player .side canvas").first.tap()
    assert page.locator("#play").get_attribute("aria-label") == "Play"


def test_charts_hover_toggle_zoom_and_change_measure(report: Path, opened: Open) -> None:
    page = opened(report, reduced_motion="reduce")
    chart = page.locator(".chart").first
    assert page.locator(".chart").count() == 4
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 90)
    assert "generation" in page.locator(".tip:visible").inner_text()
    assert chart.locator(".line").count() == 2
    page.locator("#curves-legend button").first.click()
    assert chart.locator(".line").count() == 1
    page.locator("#curves-legend button").first.click()
    page.get_by_label("backward transfer").check()
    assert chart.locator(".line").count() == 1
    page.get_by_label("score", exact=True).check()
    ticks = chart.locator("text").all_text_contents()
    page.mouse.move(box["x"] + 80, box["y"] + 90)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 90, steps=4)
    page.mouse.up()
    assert chart.locator("text").all_text_contents() != ticks
    page.locator("#reset-zoom").click()
    assert chart.locator("text").all_text_contents() == ticks
    chart.focus()
    page.keyboard.press("Home")
    assert "generation 0" in page.locator(".tip:visible").inner_text()
    page.locator("#curves-order").select_option(index=1)
    assert page.locator("#curves-panels figure:visible").count() == 2


def test_plane_is_read_by_pointer_and_keys(plane_page: Path, opened: Open) -> None:
    shown = opened(plane_page, reduced_motion="reduce")
    assert shown.locator("#plane svg.plane[role=img]").count() == 2
    picture = shown.locator("#plane svg.plane[role=img]").first
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    shown.mouse.move(box["x"] + 0.12 * box["width"], box["y"] + 0.05 * box["height"])
    assert "measured here" in shown.locator("#plane .tip:visible").inner_text()
    picture.focus()
    shown.keyboard.press("ArrowRight")
    words = shown.locator("#plane .tip:visible").inner_text()
    assert "naive, before training" in words
    assert "off the plane" in words
    still = opened(plane_page, java_script_enabled=False)
    assert still.locator("#plane .veil").count() > 0


def test_page_without_scripts_still_answers(report: Path, opened: Open) -> None:
    page = opened(report, java_script_enabled=False)
    assert page.locator("h1").inner_text().startswith("replay ended highest")
    assert page.locator("noscript svg.strobe").count() == 2
    assert page.locator(".side canvas:visible").count() == 0


def test_evil_names_run_nothing(browser: Any, opened: Open, tmp_path: Path) -> None:
    path = write_report(make_study(tmp_path, names=(EVIL, "replay"), title=EVIL), tmp_path)
    page = opened(path, reduced_motion="reduce")
    page.wait_for_timeout(100)
    assert EVIL.replace("\u2028", "") in page.locator("#answer h3").last.inner_text().replace("\u2028", "")
    assert page.title().startswith("</script>")


def test_single_gait_page_plays(study: Results, opened: Open, tmp_path: Path) -> None:
    path = play(study.entries[0].run, "Hopper-v5", stage=1, output=tmp_path / "gait.html")
    page = opened(path, reduced_motion="reduce")
    assert page.locator(".side").count() == 1
    page.locator("#play").click()
    until(page, "document.querySelector('#play').getAttribute('aria-label') === 'Pause'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 1280])
def test_page_fits_and_has_contrast(report: Path, opened: Open, tmp_path: Path, scheme: str, width: int) -> None:
    page = opened(report, width, 850, color_scheme=scheme, reduced_motion="reduce")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    for name in ("--ink", "--muted", "--accent", "--bad"):
        assert contrast(page, name, "--paper") >= 4.5
        assert contrast(page, name, "--stage") >= 4.5
    for task in range(7):
        assert contrast(page, f"--task-{task}", "--paper") >= 3
        assert contrast(page, f"--task-{task}", "--stage") >= 3
    page.screenshot(path=tmp_path / f"{scheme}-{width}.png", full_page=True)
    page.locator("#theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") != scheme


def contrast(page: Any, one: str, other: str) -> float:
    """WCAG 2's contrast ratio of two colours of the style sheet."""

    def luminance(name: str) -> float:
        text = page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('{name}').trim()")
        parts = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def costs(task: str, stage: int, share: float, stream: Sequence[str]) -> float:
    """Returns that are never positive; a variant of a task has no shipped reference."""
    return -1600.0 + 1400.0 * share if task == stream[0] else -1500.0


def small_costs(task: str, stage: int, share: float, stream: Sequence[str]) -> float:
    """The same, with decimals on the axis."""
    return costs(task, stage, share, stream) / 500 - 6


OVERLAPS = """() => [...document.querySelectorAll('.chart, .row.axis')].flatMap((chart) => {
  const boxes = [...chart.querySelectorAll('text, .track > span')].filter((node) => node.textContent.trim())
    .map((node) => [node.textContent, node.getBoundingClientRect()]);
  return boxes.flatMap(([one, a], i) => boxes.slice(i + 1)
    .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2)
    .map(([other]) => `${one} | ${other}`));
})"""


OUTSIDE = """() => [...document.querySelectorAll('.chart, .axis .track')].flatMap((chart) => {
  const whole = chart.getBoundingClientRect();
  return [...chart.querySelectorAll('text, span')].map((node) => [node.textContent, node.getBoundingClientRect()])
    .filter(([, box]) => box.left < whole.left || box.right > whole.right).map(([text]) => text);
})"""


@pytest.mark.parametrize("returns", [costs, small_costs])
@pytest.mark.parametrize("width", [1400, 390])
def test_no_labels_collide_and_a_single_runs_chart_fills_the_page(
    opened: Open, tmp_path: Path, width: int, returns: Callable[[str, int, float, Sequence[str]], float]
) -> None:
    write_run(tmp_path / "run", make_config(["InvertedPendulum-v5@gravity=0.5"]), returns)
    page = opened(write_report(Results.of_run(tmp_path / "run"), tmp_path), width, 900, reduced_motion="reduce")
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(OUTSIDE) == []
    chart, section = page.locator(".chart").bounding_box(), page.locator("#curves").bounding_box()
    assert chart["width"] > 0.95 * section["width"] or chart["width"] > 0.9 * (width - 60)
    labels = page.locator(".chart .tick").all_text_contents()
    assert any(label.startswith("\u2212") for label in labels)
    assert page.locator(".chart .line").get_attribute("d").count("L") >= 5  # the curve is in sight
    assert "of R*" not in page.locator("main").inner_text()
    assert page.locator("h1").inner_text().startswith("naive ended with a return of \u2212")


SPILT = """() => [...document.querySelectorAll('table.heat th')]
  .filter((node) => node.scrollWidth > node.clientWidth + 1)
  .map((node) => node.textContent)"""


@pytest.mark.parametrize("width", [1280, 390])
def test_a_long_stream_fits_and_its_labels_stay_in_their_cells(opened: Open, tmp_path: Path, width: int) -> None:
    stream = ("InvertedPendulum-v5", *(f"InvertedPendulum-v5@gravity=0.{i}783" for i in range(3, 9)))
    study = make_study(tmp_path, tasks=stream)
    page = opened(write_report(study, tmp_path), width, 900, reduced_motion="reduce")
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(SPILT) == []


@pytest.mark.parametrize("width", [1400, 390])
def test_conditions_are_ranked_explained_and_filterable(report: Path, opened: Open, width: int) -> None:
    page = opened(report, width, 900, reduced_motion="reduce")
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(OUTSIDE) == []
    titles = [" ".join(text.split()) for text in page.locator(".condition h3").all_inner_texts()]
    assert titles == ["1 replay", "2 naive"]
    assert "Adds budget evaluations on earlier tasks" in page.locator(".condition").first.inner_text()
    page.locator("#filter-conditions button", has_text="naive").click()
    assert page.locator("article.condition:visible").count() == 1
    assert page.locator("#curves-panels figure:visible").count() == 2
    page.locator("#filter-all").click()
    assert page.locator("#curves-panels figure:visible").count() == 4
    page.get_by_label("return", exact=True).check()
    assert any(float(tick.replace("\u2212", "-")) > 50 for tick in page.locator(".chart .tick").all_text_contents())
