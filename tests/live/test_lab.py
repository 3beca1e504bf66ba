"""`evergait lab`: one small file, from disk, that lives; pushed, dragged, trained; by pointer, keys and on a phone."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from synthetic import make_config, write_foreign_phase, write_run

from evergait.cli import main
from evergait.config import read_config
from evergait.live.lab import SAMPLE, lab_data
from evergait.live.page import render_lab
from evergait.paper.study import analyse
from evergait.report.catalogue import Catalogue
from evergait.store.phases import PhaseStore
from evergait.studies.folder import load_results
from evergait.studies.results import Entry, Results
from evergait.training.run import Run, train
from live.conftest import GENERATIONS
from report.test_browser import overhear, until

MOST_BYTES = 1_500_000
FOUR_TENTHS = """() => {
  for (let i = 0; i < 4; i++) lab.sides[0].stage.advance(0.1);
  return lab.sides[0].stage.now.position[1];
}"""


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page about the walker that ships."""
    path = tmp_path_factory.mktemp("lab") / "lab.html"
    assert main(["lab", str(path)]) == 0
    return path


@pytest.fixture
def opened(browser: Any, lab: Path) -> Iterator[Callable[..., Any]]:
    """Opens it; afterwards fails if it logged anything, raised, showed a dialogue or asked for anything else."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def open_page(width: int = 1400, height: int = 1000, view: str = "", lab: Path = lab, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        overhear(page, lab, complaints)
        page.goto(lab.as_uri() + view)
        until(page, "Boolean(globalThis.lab?.sides)")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def test_it_is_one_small_file(lab: Path) -> None:
    assert lab.stat().st_size <= MOST_BYTES


def test_what_does_not_fit_is_left_out_in_words() -> None:
    results = load_results(SAMPLE)
    whole, small = lab_data(results), lab_data(results, most_bytes=300_000)
    assert [len(run["memory"]) for run in whole["runs"]] == [1, 2]
    assert [len(run["memory"]) for run in small["runs"]] == [1, 0]
    assert not any("Left out" in words or "not offered" in words for words in whole["messages"])
    assert any(words.startswith("Distillation is not offered for 1 of the runs") for words in small["messages"])
    assert any(words.startswith("Left out") and "from the middle of phases" in words for words in small["messages"])
    assert sum(map(len, small["thetas"])) < 300_000


def test_a_robot_that_was_edited_is_told(tmp_path: Path) -> None:
    for file in (Path(__file__).parents[2] / "examples" / "robot").iterdir():
        shutil.copy(file, tmp_path)
    rules = tmp_path / "crawler.toml"
    run = write_run(tmp_path / "run", make_config([str(rules)]))
    assert lab_data(Results.of_run(run.path))["messages"] == []
    rules.write_text(rules.read_text().replace("forward = 1.0", "forward = 2.0"))
    results = Results.of_run(run.path)
    (message,) = lab_data(results)["messages"]
    assert "has been edited since it was trained" in message
    catalogue = Catalogue((str(rules),), None)  # of a report, where robots of any engine move
    catalogue.fill(analyse(results).groups)
    assert message in catalogue.messages


def test_every_policy_that_is_left_out_is_counted_once() -> None:
    """Three ends of phases and fifteen moments between; there is room for one."""
    small = lab_data(load_results(SAMPLE), most_bytes=50_000)
    assert len(small["thetas"]) == 1
    assert [words for words in small["messages"] if "Left out" in words] == [
        "Left out to keep this file small: 2 policies from the end of phases.",
        "Left out to keep this file small: 15 policies from the middle of phases.",
    ]


def test_what_was_lost_is_shown_beside_what_kept_it_and_not_beside_a_stream_that_has_not_come_so_far(
    opened: Callable[..., Any],
) -> None:
    def run(*ends: float) -> dict[str, Any]:
        return {
            "order": "A > B",
            "stream": ["A", "B"][: len(ends)],
            "curves": [{"returns": {"A": [end]}} for end in ends],
        }

    data = {"robots": [{"name": "A"}], "runs": [run(9, 1), run(10), run(9, 8)]}
    found = opened().evaluate("(data) => lab.constructor.mostLost(data)", data)
    assert (found["task"], found["lost"], found["kept"]) == ("A", 0, 2)


def test_two_robots_live_and_one_has_forgotten(opened: Callable[..., Any]) -> None:
    page = opened()
    naive, distilled = page.locator(".outcome").all_inner_texts()
    assert "return 12 when evaluated" in naive
    assert "return 30" in distilled
    until(page, "lab.sides[1].stage.distance() > 4")
    assert page.evaluate("lab.sides[0].stage.distance()") < 2  # it fell, again and again
    page.locator("#time").fill("1")
    until(page, "lab.sides[0].stage.distance() > 4")  # right after learning to walk, it walks
    assert "after Walker2d" in page.locator(".outcome").first.inner_text()
    page.get_by_role("button", name="Swimmer").click()
    assert page.evaluate("lab.sides[0].body") == "Swimmer-v5"


def test_a_robot_is_drawn_often_enough(opened: Callable[..., Any]) -> None:
    """Simulating and drawing a frame with two robots takes a small part of a sixtieth of a second."""
    page = opened()
    page.locator("#time").fill("1")
    cost = page.evaluate(
        """() => { const began = performance.now();
        for (let i = 0; i < 120; i++) for (const side of lab.sides) { side.stage.advance(1 / 60); side.paint(); }
        return (performance.now() - began) / 120; }"""
    )
    assert cost < 1000 / 60, f"{cost:.1f} ms"
    until(page, "document.querySelector('#pace').textContent.includes('frames/s')")


def test_a_hand_changes_the_path(opened: Callable[..., Any]) -> None:
    page = opened(view="?task=Swimmer-v5&time=2")
    page.locator("#run").click()  # nothing moves but by us
    page.evaluate("lab.sides.forEach((side) => { side.stage.number = 7; side.stage.reset(); side.paint(); })")
    box = page.locator(".side canvas").first.bounding_box()
    view = page.evaluate("lab.sides[0].stage.view")
    x, z = page.evaluate("lab.sides[0].stage.middle()")
    at = (
        box["x"] + view["width"] / 2 + (x - view["cx"]) * view["scale"],
        box["y"] + view["height"] / 2 - (z - view["cy"]) * view["scale"],
    )
    page.mouse.move(*at)
    page.mouse.down()
    page.mouse.move(at[0], at[1] - 80, steps=4)
    assert page.evaluate("Boolean(lab.sides[0].stage.held)")
    held = page.evaluate(FOUR_TENTHS)
    page.mouse.up()
    assert page.evaluate("lab.sides[0].stage.held") is None
    page.evaluate("lab.sides[0].stage.number = 7; lab.sides[0].stage.reset()")
    free = page.evaluate(FOUR_TENTHS)
    assert held > free + 0.02
    page.locator(".side canvas").first.focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("lab.sides[0].stage.shove.right") < 0


def test_the_world_changes_for_both(opened: Callable[..., Any]) -> None:
    page = opened()
    page.locator("[data-factor=gravity]").fill("0.2")
    page.locator("[data-factor=size]").fill("1.3")
    assert page.evaluate("lab.sides.map((side) => side.stage.world.gravity)") == [0.2, 0.2]
    page.locator("#calm").click()
    assert page.evaluate("lab.sides.map((side) => side.stage.world.size)") == [1, 1]


def test_a_storm_is_the_same_for_both(opened: Callable[..., Any]) -> None:
    page = opened()
    page.locator("#run").click()  # nothing moves but by us
    page.locator("#storm").check()
    page.evaluate("lab.gust = 0; lab.weather(0.01)")
    first, second = page.evaluate("lab.sides.map((side) => ({ ...side.stage.shove }))")
    assert first["right"] != 0
    assert first == second
    assert page.evaluate("lab.gust") > 0  # the next one comes later


@pytest.mark.prove
def test_a_swimmer_learns_in_the_tab(opened: Callable[..., Any]) -> None:
    """As well as ARS's mark for it; the page says how long it took."""
    page = opened(view="?task=Swimmer-v5&time=0")
    page.locator("#from").select_option(value="nothing")
    page.locator("#next").select_option(value="Swimmer-v5")
    page.locator("#generations").fill("40")
    page.locator("#train").click()
    best = "Math.max(...lab.data.runs.at(-1).curves.at(-1).returns['Swimmer-v5'])"
    until(page, f"lab.data.runs.length === 3 && lab.data.runs[2].curves.length && {best} >= 325")
    print(page.locator("#news").inner_text())


def test_training_here_keeps_every_generation(opened: Callable[..., Any]) -> None:
    page = opened(view="?task=Swimmer-v5&time=1")
    assert page.locator("#method option").all_inner_texts() == ["naive", "replay", "distill"]
    page.locator("#generations").fill("2")
    page.locator("#train").click()
    until(page, "lab.data.runs.length === 3 && !training.wanted && lab.data.runs[2].moments.at(-1).end")
    assert "Generation 2 of 2" in page.locator("#news").inner_text()
    assert len(page.locator("#here").inner_text()) == 64
    assert "trained here" in page.locator(".outcome").first.inner_text()
    page.locator("#time").fill("1")
    assert "after Walker2d" in page.locator(".outcome").first.inner_text()


def test_it_stands_still_for_those_who_want_calm(opened: Callable[..., Any]) -> None:
    page = opened(reduced_motion="reduce")
    assert page.locator("#run").inner_text() == "Run"
    before = page.evaluate("lab.sides[0].stage.now.steps")
    page.wait_for_timeout(300)
    assert page.evaluate("lab.sides[0].stage.now.steps") == before
    page.keyboard.press(" ")
    until(page, f"lab.sides[0].stage.now.steps !== {before}")


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits(opened: Callable[..., Any], width: int, scheme: str) -> None:
    page = opened(width=width, height=800, color_scheme=scheme, has_touch=width < 500)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    controls = page.locator("button:visible, select:visible, input[type=number]:visible")
    assert min(box["height"] for one in controls.all() if (box := one.bounding_box())) >= 24


HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>",
    "\u202eright to left\u2066 \u2028 :rocket: \U0001f680 {{ 7 * 7 }} ${alert(3)} %3Cscript%3E",
    "'\" onmouseover=alert(4) x='|--><!--&lt;b&gt;",
)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lab about a study whose title, description, conditions, orders and one task are somebody's attempts."""
    folder = tmp_path_factory.mktemp("hostile")
    shutil.copytree(SAMPLE, folder / "study")
    results = load_results(folder / "study")
    entries = [replace(entry, condition=HOSTILE[i], order=HOSTILE[2 - i]) for i, entry in enumerate(results.entries)]
    name = write_foreign_phase(folder / "foreign", HOSTILE[0], [HOSTILE[0], "Other-v0"])
    run = Run(folder, make_config([HOSTILE[0], "Other-v0"]), (PhaseStore(folder / "foreign").folder(name),))
    entries.append(Entry(HOSTILE[2], HOSTILE[0], 0, run))
    data = lab_data(replace(results, entries=tuple(entries)))
    page = render_lab(data, title=HOSTILE[0], description=HOSTILE[1], messages=[*data["messages"], HOSTILE[2]])
    (folder / "lab.html").write_text(page)
    return folder / "lab.html"


def test_hostile_strings_are_inert(hostile: Path, opened: Callable[..., Any]) -> None:
    """Wherever they come: in the page, in its menus, in its address, in what is trained and filmed here."""
    page = opened(lab=hostile)
    assert page.title() == HOSTILE[0]
    assert page.locator("header .title").inner_text() == HOSTILE[0]
    limits = page.locator(".limits li").all_text_contents()
    assert HOSTILE[2] in limits
    assert any("alert(1)" in text for text in limits)  # the task that nobody knows
    assert page.locator("script, img, b, [onerror], [onmouseover]").count() == 3  # our own scripts
    offered = page.locator(".pick-run").first.locator("option").all_text_contents()
    assert offered == [f"{HOSTILE[i]} \u00b7 {HOSTILE[2 - i]}" for i in (0, 1)]
    page.locator(".pick-run").first.select_option(index=1)
    page.locator(".pick-when").first.select_option(label="after Walker2d")
    again = opened(lab=hostile, view=page.url.removeprefix(hostile.as_uri()))
    assert again.evaluate("lab.sides[0].run.condition") == HOSTILE[1]
    assert again.locator(".pick-when option:checked").first.inner_text() == "after Walker2d"
    evil = quote(HOSTILE[0])
    page = opened(lab=hostile, view=f"?task={evil}&time=1e999&left=__proto__|&right={evil}#{evil}")
    assert page.evaluate("lab.time") == 2
    page.locator("#generations").fill("1")
    page.locator("#train").click()
    until(page, "lab.data.runs.length === 3 && !training.wanted && lab.data.runs[2].moments.at(-1).end")
    page.evaluate("globalThis.filmSeconds = 0.2")
    with page.expect_download() as download:
        page.locator("#film-gif").click()
    assert download.value.suggested_filename == "evergait.gif"
    assert page.locator("script, img, b, [onerror], [onmouseover]").count() == 3


def test_wrong_input_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["lab", str(tmp_path / "lab.txt")]) == 2
    assert "ends in .html" in capsys.readouterr().err
    assert main(["lab", str(tmp_path / "lab.html"), "--folder", str(tmp_path)]) == 2
    assert not list(tmp_path.iterdir())


CARELESS = """() => {
  document.querySelector("#training").requestSubmit();
  document.querySelector("#next").dispatchEvent(new Event("change"));
  training.train();
  return [document.querySelector("#train").disabled, lab.data.runs.length];
}"""
DIVERGING = """() => {
  const { crew } = training, ask = crew.ask.bind(crew), tell = training.tell.bind(training);
  crew.ask = (request) => ask(request).then((answer) => {
    if (request.what === "episodes") answer.returns.fill(NaN, 0, request.ask.sigma ? undefined : 1);
    return answer;
  });
  training.tell = (trainer, done, ...rest) => { globalThis.done = done; tell(trainer, done, ...rest); };
}"""


def test_the_page_writes_what_trains_the_same_and_compares_with_that_alone(
    conditions: Path, tmp_path: Path, opened: Callable[..., Any]
) -> None:
    assert main(["lab", str(tmp_path / "lab.html"), "--folder", str(conditions)]) == 0
    page = opened(lab=tmp_path / "lab.html")
    number = page.evaluate("lab.data.runs.findIndex((run) => run.condition === 'plain')")
    commands = page.locator("#by-command")

    def prepare(start: str, task: str, generations: int) -> None:
        page.locator(".pick-run").first.select_option(value=str(number))
        page.locator("#from").select_option(value=start)
        page.locator("#next").select_option(value=task)
        page.locator("#generations").fill(str(generations))

    def news() -> str:
        until(page, "!training.busy")
        return str(page.locator("#news").inner_text())

    prepare("nothing", "Swimmer-v5", 10)
    assert page.evaluate(CARELESS) == [True, 5], "one training at a time"
    assert "Generation 10 of 10" in news()
    assert page.locator("#verdict").inner_text() == "equal, after 10 generations", "others have other settings"
    prepare("nothing", "Swimmer-v5", 2000)
    page.locator("#train").click()
    until(page, "/Generation [1-9]/.test(document.querySelector('#news').textContent)")
    page.locator("#stop").click()
    reached = news().split()[1]
    assert commands.is_visible()
    (tmp_path / "lab.toml").write_text(page.locator("#toml").text_content())
    config = read_config(tmp_path / "lab.toml")
    assert str(config.generations) == reached
    assert train(config, tmp_path / "run", threads=1).theta_sha256 == page.locator("#here").inner_text()
    for generations in (GENERATIONS, 2):
        prepare("0", "InvertedPendulum-v5", generations)
        page.locator("#train").click()
        assert f"Generation {generations} of {generations}: return " in news()
        assert commands.is_visible() == (generations == GENERATIONS), "there, both phases are equally long"
        page.evaluate(DIVERGING)
    assert "return undefined" in news()
    assert page.evaluate("[done.mean, lab.data.runs.at(-1).curves[1].returns['InvertedPendulum-v5']]") == [
        None,
        [None] * 3,
    ]
