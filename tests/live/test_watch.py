"""The page of `evergait watch` in a real browser; names in a folder stay names."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from small import tiny_config
from synthetic import make_config, write_run

import evergait
from evergait.core.files import read_json, write_json
from evergait.live.lab import SAMPLE
from evergait.live.trainings import find_trainings
from evergait.methods import Multitask
from evergait.store.pack import unpack
from evergait.store.phases import PhaseFolder
from report.test_browser import until

WALKS = "/[1-9]/.test(document.querySelector('#phase .distance').textContent)"
"""A robot has come some way; without one there is no number."""


def test_a_strangers_report_cannot_ask_the_server(tmp_path: Path, folder: Path, browser: Any) -> None:
    """Scripts of a report are of no origin: they learn nothing of the trainings beside it."""
    shutil.copytree(folder, tmp_path / "study")
    spy = "fetch('events').then(a => document.title = 'read ' + a.status, e => document.title = 'refused')"
    (tmp_path / "study" / "report.html").write_text(f"<title>waiting</title><script>{spy}</script>")
    watching = evergait.watch(tmp_path)
    page = browser.new_context().new_page()
    page.goto(f"{watching.address}report?training={tmp_path / 'study'}")
    page.wait_for_function("document.title != 'waiting'")
    assert page.title() == "refused"
    page.context.close()
    watching.close()


def test_the_page_shows_it_and_hostile_names_do_nothing(tmp_path: Path, browser: Any) -> None:
    evil = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    study = tmp_path / "study"
    shutil.copytree(SAMPLE, study)
    unpack(study / "phases")
    described = read_json(study / "study.json")
    described["title"] = evil
    described["cells"][1]["condition"] = evil
    write_json(study / "study.json", described)
    page_of = evergait.watch(study)
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))  # type: ignore[func-returns-value]
    page.on(
        "request",
        lambda r: r.url.startswith(page_of.address) or r.url.startswith("data:") or complaints.append(r.url),  # type: ignore[func-returns-value]
    )
    try:
        page.goto(page_of.address)
        until(page, "document.querySelectorAll('button.chip').length === 4")
        assert page.locator("#name").inner_text() == evil
        assert "3 phases: 3 done" in page.locator("#summary").inner_text()
        until(page, "document.querySelector('#gait-note').textContent.startsWith('as it is')")
        page.locator("#gait").scroll_into_view_if_needed()  # it moves only in sight
        until(page, WALKS)
        page.locator("#words").fill("naive")
        until(page, "document.querySelectorAll('button.chip').length === 2")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    finally:
        context.close()
        page_of.close()
    assert complaints == []


def beginning_anew(study: Path) -> Callable[[int], None]:
    """The study's second phase has come to no checkpoint yet; tell how far it is."""
    phase = study / "phases" / find_trainings(study)[0].cells[0].phases[1]
    shutil.rmtree(phase)
    phase.mkdir()
    told = {"generations": 480, "status": "training"}
    return lambda generation: PhaseFolder(phase).write_progress({"generation": generation, **told})


def test_a_page_that_nobody_touches_rests_while_something_trains(tmp_path: Path, folder: Path, browser: Any) -> None:
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    reach = beginning_anew(study)
    reach(96)
    page_of = evergait.watch(study)
    page = browser.new_page()
    try:
        page.goto(page_of.address)
        until(page, "document.querySelector('#detail').textContent.startsWith('running, 96 of 480')")
        page.evaluate("watcher.reader.moved = -1e6; watcher.drawn = performance.now() + 1e6")  # long ago; just now
        reach(192)
        until(page, "watcher.waiting.length > 0")
        assert page.locator("#detail").inner_text().startswith("running, 96 of 480")
        page.mouse.move(100, 100)
        until(page, "document.querySelector('#detail').textContent.startsWith('running, 192 of 480')")
    finally:
        page.close()
        page_of.close()


def test_a_phase_that_waits_shows_nothing_of_another(tmp_path: Path, folder: Path, browser: Any) -> None:
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    shutil.rmtree(study / "phases" / find_trainings(study)[0].cells[1].phases[1])
    page_of = evergait.watch(study)
    page = browser.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    gait = "document.querySelector('#gait')"
    inked = f"{gait}.getContext('2d').getImageData(0, 0, {gait}.width, {gait}.height).data.some(Boolean)"
    try:
        page.goto(page_of.address)
        until(page, "document.querySelector('#gait-note')?.textContent.startsWith('as it is')")
        page.locator("#gait").scroll_into_view_if_needed()
        until(page, WALKS)
        assert page.evaluate(inked)
        page.locator("button.chip.queued").click()
        assert page.locator("#detail").inner_text().startswith("queued")
        assert page.locator("#gait-note").inner_text() == "No checkpoint yet."
        assert page.locator("#robots button").count() == 0
        assert page.locator("#phase .hud").inner_text().strip() == ""
        page.locator("#gait").click()
        page.locator("#gait").press("ArrowLeft")
        page.wait_for_timeout(200)  # some frames
        assert not page.evaluate(inked)
        page.locator("button.chip.done").first.click()
        until(page, "document.querySelector('#gait-note').textContent.startsWith('as it is')")
        until(page, WALKS)
    finally:
        page.close()
        page_of.close()
    assert complaints == []


def test_what_was_not_answered_is_asked_for_again(folder: Path, browser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a laptop has slept: finished phases have no news that would have them asked for."""
    monkeypatch.setattr("evergait.live.server.LEAST_SECONDS", 0.2)
    monkeypatch.setattr("evergait.live.server.QUIET_SECONDS", 0.2)
    page_of = evergait.watch(folder)
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path.rpartition("/")[2]))
    page.route("**/curves?*", lambda route: route.abort())
    page.route("**/policy?*", lambda route: route.abort())
    try:
        page.goto(page_of.address)
        until(page, "document.querySelector('#gait-note')?.textContent.startsWith('There was no answer')")
        assert "curves" in asked
        page.unroute_all()
        until(page, "document.querySelector('#gait-note').textContent.startsWith('as it is')")
        until(page, "watcher.curves.size === 3")
        before = len(asked)
        page.wait_for_timeout(1000)
        assert asked[before:] == [], "what was answered is not asked for again"
    finally:
        page.close()
        page_of.close()


def test_the_page_links_a_new_report_and_keeps_what_it_shows(
    tmp_path: Path, folder: Path, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evergait.live.server.LEAST_SECONDS", 0.2)
    monkeypatch.setattr("evergait.live.server.SEARCH_SECONDS", 0.2)
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    (study / "report.html").unlink(missing_ok=True)
    reach = beginning_anew(study)
    reach(96)
    page_of = evergait.watch(study)
    page = browser.new_page()
    try:
        page.goto(page_of.address)
        until(page, "document.querySelector('#detail').textContent.startsWith('running, 96 of 480')")
        assert page.evaluate("document.querySelector('#report').hidden")
        page.evaluate("watcher.reader.moved = -1e6; watcher.drawn = performance.now() + 1e6")  # it rests
        reach(192)
        until(page, "watcher.waiting.length > 0")
        (study / "report.html").touch()
        until(page, "!document.querySelector('#report').hidden")
        assert page.evaluate("watcher.waiting.length") == 0, "what came before would undo what came now"
        assert page.locator("#detail").inner_text().startswith("running, 192 of 480")
        assert page.evaluate("watcher.training.cells.includes(watcher.shown.cell)"), "its line stays the wide one"
    finally:
        page.close()
        page_of.close()


WORDS = """() => {
  const words = [], write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
    if (this.canvas.id === "curves") words.push(text);
    return write.call(this, text, ...at);
  };
  watcher.curves.forEach((curve) => Object.keys(curve.returns).forEach((task) => { curve.returns[task] = [0, 0.31]; }));
  watcher.draw();
  return words;
}"""
PACE = """() => {
  const running = (rate, unit) => ({ state: "running", rate, unit, done: 0 });
  watcher.training.phases = { a: running(1000, "steps"), b: running(2, "generations"), c: running(500, "steps") };
  watcher.count();
  return document.querySelector("#summary").textContent;
}"""
HIDDEN = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
  return watcher.source.readyState === EventSource.CLOSED;
}"""


def test_trainings_of_every_kind_come_and_go(tmp_path: Path, browser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAST_SECONDS", "SEARCH_SECONDS"):
        monkeypatch.setattr(f"evergait.live.server.{name}", 0.1)
    config = make_config(["InvertedPendulum-v5", "InvertedDoublePendulum-v5"])
    write_run(tmp_path / "a", config)
    write_run(tmp_path / "b", replace(config, method=Multitask()))
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "run.json").write_text("{")
    page_of = evergait.watch(tmp_path)
    page = browser.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    text = "document.querySelector('{}').textContent"
    try:
        page.goto(page_of.address)
        until(page, "document.querySelectorAll('#trainings button').length === 3 && watcher.curves.size === 2")
        assert page.locator("#phase-title").inner_text().startswith("InvertedPendulum: naive")
        page.locator("#trainings button").nth(1).click()
        assert page.locator("#phase-title").inner_text().startswith("all tasks: multitask")
        assert page.locator("#cells .chip").all_inner_texts() == ["all tasks"]
        until(page, "watcher.curves.size === 3")
        assert page.evaluate(WORDS) == ["learns all tasks", "0.00", "0.31"]
        assert "1500 steps and 2.0 generations per second" in page.evaluate(PACE)
        page.locator("#trainings button").nth(2).click()
        assert "is not valid JSON" in page.locator("#name").inner_text()
        assert not page.locator("#phase").is_visible(), "it would be another training's"
        page.locator("#trainings button").nth(0).click()
        shutil.rmtree(tmp_path / "a" / "phases")
        until(page, f"{text.format('#summary')} === '2 phases: 2 queued'")
        until(page, "watcher.curves.size === 1")
        assert page.evaluate(HIDDEN, True), "nobody sees it"
        for path in tmp_path.iterdir():
            shutil.rmtree(path)
        page.route("**/events", lambda route: route.fulfill(status=400, body="{}"))
        assert not page.evaluate(HIDDEN, False)
        until(page, f"{text.format('#link')}.startsWith('not connected')")
        page.unroute_all()
        until(page, f"{text.format('#link')} === 'live' && !watcher.training")
        assert page.locator("#name").inner_text() == "Nothing is being trained here yet"
        assert page.locator("#summary").inner_text().startswith("Runs and studies show here")
        assert not page.locator("#curves").is_visible()
    finally:
        page.close()
        page_of.close()
    assert complaints == []


STROKES = """
globalThis.strokes = [];
const stroke = CanvasRenderingContext2D.prototype.stroke;
CanvasRenderingContext2D.prototype.stroke = function (...path) {
  if (this.canvas.id === "curves" && this.lineWidth > 1) strokes.push([this.strokeStyle, this.getLineDash().join(" ")]);
  return stroke.apply(this, path);
};
"""
KEY = """
const pen = document.createElement("canvas").getContext("2d");
[...document.querySelectorAll("#key .key-item")].map((item) => {
  const { stroke, strokeDasharray } = getComputedStyle(item.querySelector("path"));
  pen.strokeStyle = stroke;
  return [pen.strokeStyle, (strokeDasharray.match(/\\d+/g) ?? []).join(" ")];
});
"""


def test_conditions_are_told_apart_by_more_than_colour(tmp_path: Path, folder: Path, browser: Any) -> None:
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    described = read_json(study / "study.json")
    described["cells"] = [{**described["cells"][0], "condition": f"condition {i}"} for i in range(11)]
    write_json(study / "study.json", described)
    page_of = evergait.watch(study)
    page = browser.new_page()
    page.add_init_script(STROKES)
    try:
        page.goto(page_of.address)
        until(page, "document.querySelectorAll('#key .key-item').length === 11 && watcher.curves.size > 0")
        key = [tuple(style) for style in page.evaluate(KEY)]
        drawn = [tuple(style) for style in page.evaluate("strokes.slice(-11)")]
    finally:
        page.close()
        page_of.close()
    assert len(set(key)) == 11
    assert len({dash for _, dash in key[:8]}) == 8, "without any colour"
    assert drawn == key


COLOURED = """(() => {
  const isBlue = (pixels) =>
    pixels.some((value, i) => i % 4 === 2 && pixels[i + 1] > 200 && value - pixels[i - 2] > 60);
  const canvases = [...document.querySelectorAll('#diagnostics canvas')].filter((canvas) => canvas.width);
  return canvases.length > 0 && canvases.every((canvas) =>
    isBlue(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data));
})()"""


def test_one_evaluation_is_a_point(tmp_path: Path, browser: Any) -> None:
    once = evergait.Evaluation(every=2, episodes=1, random_policies=1)
    evergait.train(tiny_config(generations=2, evaluation=once), out=tmp_path / "run", threads=1)
    page_of, page = evergait.watch(tmp_path), browser.new_page()
    try:
        page.goto(page_of.address)
        until(page, COLOURED)
        assert page.evaluate(COLOURED)
    finally:
        page.close()
        page_of.close()


@pytest.mark.filterwarnings("ignore")  # Jupyter's own, of its own future
def test_a_notebook_shows_the_page_in_place(tmp_path: Path, folder: Path, browser: Any) -> None:
    """A cell that ends in `evergait.watch(...)` shows the page, which follows the folder inside another origin."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    cells = [nbformat.v4.new_code_cell(f"import evergait\nevergait.watch({str(folder)!r}, height=700)")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}})
    with client.setup_kernel():
        client.execute_cell(notebook.cells[0], 0)
        shown = notebook.cells[0].outputs[0]["data"]
        assert shown["text/plain"].startswith(f"watching {folder} at http://127.0.0.1:")
        assert "height: 700px" in shown["text/html"]
        (tmp_path / "notebook.html").write_text(f"<!doctype html><title>Notebook</title>{shown['text/html']}")
        context = browser.new_context(viewport={"width": 900, "height": 900})
        page = context.new_page()
        page.goto((tmp_path / "notebook.html").as_uri())
        inside = page.frame_locator("iframe")
        inside.locator("button.chip").nth(3).wait_for()
        assert "3 phases: 3 done" in inside.locator("#summary").inner_text()
        assert inside.locator("#link").inner_text() == "live"
        context.close()
