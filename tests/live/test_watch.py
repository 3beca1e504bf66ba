"""`evergait watch`: what it tells, who it answers, how fast, and that names in a folder stay names."""

import fcntl
import http.client
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

import evergait
from evergait.core.errors import EvergaitError
from evergait.core.files import read_json, write_json
from evergait.live.answers import Answers, read_curve
from evergait.live.lab import SAMPLE
from evergait.live.server import Server
from evergait.live.trainings import find_trainings
from evergait.store.pack import unpack
from evergait.store.phases import PhaseFolder, PhaseStore
from evergait.studies.progress import study_status
from report.test_browser import until

WALKS = "/[1-9]/.test(document.querySelector('#phase .distance').textContent)"
"""A robot has come some way; without one there is no number."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study."""
    path = tmp_path_factory.mktemp("watched") / "study"
    shutil.copytree(SAMPLE, path)
    unpack(path / "phases")
    return path


@pytest.fixture
def watching(folder: Path) -> Iterator[Any]:
    page = evergait.watch(folder)
    yield page
    page.close()


def ask(address: str, path: str = "", method: str = "GET", **headers: str) -> tuple[int, bytes]:
    """One request, with headers that a browser would not let a page set."""
    split = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", split.port, timeout=20)
    connection.putrequest(method, path or split.path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_only_its_own_page_is_answered(watching: Any) -> None:
    address = watching.address
    path = urlsplit(address).path
    host = urlsplit(address).netloc
    assert ask(address)[0] == 200
    assert ask(address, "/")[0] == 403
    assert ask(address, f"/{'x' * 32}/")[0] == 403
    assert ask(address, Host="evil.example")[0] == 403, "a name rebound to this machine"
    assert ask(address, f"{path}curves", Origin="http://evil.example")[0] == 403
    assert ask(address, f"{path}curves", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(address, Host=host, Origin=f"http://{host}")[0] == 200
    assert ask(address, method="POST")[0] == 501
    assert ask(address, f"{path}../../etc/passwd")[0] == 404
    assert ask(address, f"{path}report?training=/etc")[0] == 400
    assert urlsplit(address).hostname == "127.0.0.1"
    assert ask(address, f"{path}curves", Origin="null")[0] == 403, "as a page in a sandbox asks"


def test_curves_and_policies(watching: Any, folder: Path) -> None:
    path = urlsplit(watching.address).path
    answers = Answers(folder)
    (training,) = answers.everything()["trainings"]
    assert {state["state"] for state in training["phases"].values()} == {"done"}
    assert answers.changes() == []
    names = training["cells"][0]["phases"]
    where = f"training={quote(str(folder), safe='')}"
    _, content = ask(watching.address, f"{path}curves?{where}&names={','.join(names)},unknown")
    curves = json.loads(content)
    assert sorted(curves) == sorted(names)
    first = curves[names[0]]
    ledger = PhaseStore(folder / "phases").folder(names[0]).ledger()
    assert first["generations"] == ledger.generations
    assert first["returns"]["Walker2d-v5"] == pytest.approx(ledger.curve("Walker2d-v5"), abs=1e-3)
    policy = json.loads(ask(watching.address, f"{path}policy?{where}&name={names[1]}")[1])
    assert [robot["name"] for robot in policy["robots"]] == ["Hopper-v5", "Swimmer-v5", "Walker2d-v5"]
    assert "no phase" in json.loads(ask(watching.address, f"{path}policy?{where}&name=zz")[1])["error"]


def test_states_without_touching_anything(tmp_path: Path, folder: Path) -> None:
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    cells = find_trainings(study)[0].cells
    walker, swimmer, distilled = cells[0].phases[0], cells[0].phases[1], cells[1].phases[1]
    for name, progress in ((swimmer, {"generation": 96, "generations": 480, "status": "training"}), (distilled, None)):
        shutil.rmtree(study / "phases" / name)
        if progress:
            (study / "phases" / name).mkdir()
            PhaseFolder(study / "phases" / name).write_progress(progress)
    before = {path: path.stat().st_mtime_ns for path in study.rglob("*")}
    answers = Answers(study)
    states = answers.everything()["trainings"][0]["phases"]
    assert states[walker]["state"] == "done"
    assert states[distilled]["state"] == "queued"
    assert (states[swimmer]["state"], states[swimmer]["done"]) == ("running", 0.2)  # its file has just changed
    with PhaseStore(study / "phases").folder(swimmer).path.joinpath("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody else holds it, not even while we look
        assert Answers(study).everything()["trainings"][0]["phases"][swimmer]["state"] == "running"
    (study / "phases" / swimmer / "lock").unlink()
    assert {path: path.stat().st_mtime_ns for path in study.rglob("*") if path.name != swimmer} == {
        path: time for path, time in before.items() if path.name != swimmer
    }


def test_a_killed_study_is_stopped_for_the_page_as_for_study_status(tmp_path: Path, folder: Path) -> None:
    """A kill leaves running.json behind, and a lock that nobody holds."""
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    name = find_trainings(study)[0].cells[0].phases[1]
    shutil.rmtree(study / "phases" / name)
    (study / "phases" / name).mkdir()
    PhaseFolder(study / "phases" / name).write_progress({"generation": 96, "generations": 480, "status": "training"})
    write_json(study / "running.json", {name: {"at": "100 of 480 generations", "seconds_left": 60.0}})

    def seen() -> tuple[tuple[str, str], tuple[str, str]]:
        page = Answers(study).everything()["trainings"][0]["phases"][name]
        status = next(status for status in study_status(study) if name in status.cell.phases)
        return (page["state"], page["detail"]), (status.state, status.detail)

    with (study / "phases" / name / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert seen() == (("running", "100 of 480 generations"), ("running", "100 of 480 generations, 1 min left"))
    assert seen() == (
        ("stopped", "96 of 480 generations at the last checkpoint"),
        ("stopped", "at generation 96 of 480"),
    )


def test_a_line_that_is_being_written_is_left_for_later(tmp_path: Path, folder: Path) -> None:
    name = find_trainings(folder)[0].cells[0].phases[0]
    phase = tmp_path / name
    shutil.copytree(folder / "phases" / name, phase)
    whole = (phase / "ledger.jsonl").read_bytes()
    (phase / "ledger.jsonl").write_bytes(whole[:-200])
    found, everything = read_curve(PhaseFolder(phase)), read_curve(PhaseFolder(folder / "phases" / name))
    assert found
    assert everything
    assert len(found["generations"]) == len(everything["generations"]) - 1
    (phase / "ledger.jsonl").write_bytes(b"\xff\n{}\n")
    assert read_curve(PhaseFolder(phase)) is None


def test_a_damaged_study_does_not_hide_the_others(tmp_path: Path, folder: Path) -> None:
    shutil.copytree(folder, tmp_path / "fine")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "study.json").write_text("{")
    damaged, fine = Answers(tmp_path).everything()["trainings"]
    assert "is not valid JSON" in damaged["title"]
    assert len(fine["phases"]) == 3


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


def test_what_is_no_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(EvergaitError, match="is not a folder"):
        Server(tmp_path / "nothing")
    assert Answers(tmp_path).everything()["trainings"] == []


def test_folders_that_nobody_made_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the kernel, which may not be read or go while one looks, and too many of them."""
    assert find_trainings(Path("/proc/self")) == []
    assert find_trainings(Path("/proc/1")) == []
    (tmp_path / "self").symlink_to(tmp_path)
    for name in "abc":
        (tmp_path / name).mkdir()
    monkeypatch.setattr("evergait.live.trainings.MOST_FOLDERS", 4)
    assert find_trainings(tmp_path) == []
    (tmp_path / "d").mkdir()
    with pytest.raises(EvergaitError, match="more than 4 folders in it; name one"):
        find_trainings(tmp_path)


def many(path: Path, n_phases: int) -> Path:
    """A study with so many finished phases."""
    shutil.copytree(SAMPLE, path)
    unpack(path / "phases")
    described = read_json(path / "study.json")
    cell = described["cells"][0]
    names = [f"{i:024x}" for i in range(n_phases)]
    for name in names:
        shutil.copytree(path / "phases" / cell["phases"][0], path / "phases" / name)
    described["cells"] = [{**cell, "seed": i, "phases": names[2 * i : 2 * i + 2]} for i in range(n_phases // 2)]
    write_json(path / "study.json", described)
    return path


def test_500_phases_in_a_second(tmp_path: Path) -> None:
    """Of processor time: other work of this machine is not the page's."""
    folder = many(tmp_path / "many", 500)
    with_page = evergait.watch(folder)
    path = urlsplit(with_page.address).path
    try:
        began = time.process_time()
        split = urlsplit(with_page.address)
        connection = http.client.HTTPConnection("127.0.0.1", split.port, timeout=20)
        connection.request("GET", f"{path}events")
        events = connection.getresponse()
        assert events.fp.readline() == b"event: everything\n"
        everything = json.loads(events.fp.readline().removeprefix(b"data: "))
        seconds = time.process_time() - began
        connection.close()
    finally:
        with_page.close()
    assert len(everything["trainings"][0]["phases"]) == 500
    assert seconds < 1.0, f"{seconds:.2f} s"


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


def test_a_page_that_nobody_touches_rests_while_something_trains(tmp_path: Path, folder: Path, browser: Any) -> None:
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    phase = study / "phases" / find_trainings(study)[0].cells[0].phases[1]
    shutil.rmtree(phase)
    phase.mkdir()

    def reach(generation: int) -> None:
        PhaseFolder(phase).write_progress({"generation": generation, "generations": 480, "status": "training"})

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


def test_a_report_that_comes_or_goes_is_told(tmp_path: Path, folder: Path) -> None:
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    report = study / "report.html"
    report.unlink(missing_ok=True)
    answers = Answers(study)
    for change, there in ((report.touch, True), (report.unlink, False)):
        assert not answers.refresh()
        change()
        assert answers.refresh()
        assert answers.everything()["trainings"][0]["report"] is there


def test_the_page_links_a_new_report_and_keeps_what_it_shows(
    tmp_path: Path, folder: Path, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evergait.live.server.LEAST_SECONDS", 0.2)
    monkeypatch.setattr("evergait.live.server.SEARCH_SECONDS", 0.2)
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    (study / "report.html").unlink(missing_ok=True)
    phase = study / "phases" / find_trainings(study)[0].cells[0].phases[1]
    shutil.rmtree(phase)
    phase.mkdir()

    def reach(generation: int) -> None:
        PhaseFolder(phase).write_progress({"generation": generation, "generations": 480, "status": "training"})

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
