"""The page as a file: whole, offline, small, harmless, the same every time, and with words when there is nothing."""

import base64
import hashlib
import json
import re
import shutil
from contextlib import closing
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import tiny_study
from synthetic import EPISODES, forgetting, make_config, make_paper_study, make_study, write_foreign_phase, write_run

from evergait.analysis import plane
from evergait.analysis.plane import plane_data
from evergait.analysis.ranking import percent, standings
from evergait.analysis.transfer import interference_by_order, panel
from evergait.cli import main
from evergait.commands.report import write_report
from evergait.commands.study import run_study
from evergait.core.table import number
from evergait.core.versions import in_words, versions
from evergait.live.lab import alive
from evergait.paper.study import all_tables, analyse
from evergait.report import html, redo
from evergait.report.catalogue import MOST_BYTES, Catalogue
from evergait.report.gait import GaitRecorder, Moment, encode, recorder
from evergait.report.robot import Robot
from evergait.store.phases import PhaseStore
from evergait.studies.folder import load_results
from evergait.studies.results import Entry, Results
from evergait.training.run import Run

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028'\"&"


class Collector(HTMLParser):
    """All tags with their attributes, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.tags.append((f"/{tag}", {}))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script":
            self.scripts[-1] += data


def page_data(text: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(Collector(text).scripts[-2])
    return data


def test_page_asks_nothing_of_any_network(report: Path) -> None:
    text = report.read_text()
    page = Collector(text)
    for tag, attributes in page.tags:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            target = attributes.get(name) or ""
            link = tag == "a" and target == "https://github.com/evergait/evergait"  # followed only by who clicks it
            assert not target or link or target.startswith(("#", "data:")), f"<{tag} {name}={target!r}>"
    assert not re.search(r"@import|url\(\s*['\"]?(?!#)", text)
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|sendBeacon|importScripts)\b", "".join(page.scripts))
    policies = [a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(page.scripts[-1].encode()).digest()).decode()
    assert len(policies) == 1
    assert "default-src 'none'" in str(policies[0])
    assert f"script-src 'sha256-{digest}' 'wasm-unsafe-eval';" in str(policies[0])


def test_second_report_has_the_same_bytes_and_records_nothing(
    study: Results, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evergait.report.gait.GaitRecorder._simulate", lambda *_: pytest.fail("recorded again"))
    assert write_report(study, tmp_path / "again.html").read_bytes() == report.read_bytes()


def test_cached_gaits_are_plain_json_and_a_damaged_one_is_recorded_again(study: Results, report: Path) -> None:
    files = sorted((study.path / "gaits").iterdir())
    assert files
    assert {file.suffix for file in files} == {".json"}
    before = files[0].read_bytes()
    files[0].write_bytes(before[:40])
    assert write_report(study, report).read_text() == html.render_report(analyse(study), None, alive(study))
    assert files[0].read_bytes() == before


def test_sentences_have_the_measured_numbers(study: Results, report: Path) -> None:
    text = report.read_text()
    best, worst = standings(analyse(study))
    words = [
        f"{number(s.final.estimate)} (Hopper {number(s.rows[0].final_return)}, "
        f"InvertedPendulum {number(s.rows[1].final_return)})"
        for s in (best, worst)
    ]
    assert f"<h1>replay ended highest, with a mean score of {words[0]}; naive lowest, with {words[1]}</h1>" in text
    assert [percent(standing.kept) for standing in (best, worst)] == ["90\u00a0%", "8\u00a0%"]
    assert "kept 90\u00a0% of what it had learnt" in text
    assert "2 orders, 2 seeds" in text
    assert "Adds budget evaluations on earlier tasks to every generation (budget 2)" in text
    assert "The paper's claims" not in text
    data = page_data(text)
    assert data["tasks"] == ["Hopper", "InvertedPendulum"]
    assert len(data["panels"]) == 4


def test_interference_is_shown_order_by_order(study: Results, report: Path) -> None:
    text = report.read_text()
    analysis = analyse(study)
    charts = {chart.condition: chart.bars for chart in interference_by_order(analysis.streams)}
    for group in analysis.groups:
        if group.condition == "single":
            continue
        *before, last = [task.removesuffix("-v5") for task in group.entries[0].run.config.stream]
        label = f"{last} after {', '.join(before)}"
        assert label in text
        (bar,) = [bar for bar in charts[group.condition] if bar.label == label]
        expected = [1 - metrics.best_while_learning(len(before)) for metrics in group.metrics]
        assert bar.value == pytest.approx(np.mean(expected))


def test_every_finished_stage_can_be_watched_and_shared_gaits_are_stored_once(study: Results, report: Path) -> None:
    data = page_data(report.read_text())
    shelves = data["shelves"]
    labels = [moment["label"] for moment in shelves[0]["moments"]]
    assert labels == [
        "before training",
        "Hopper, generation 6 of 12",
        "after Hopper",
        "InvertedPendulum, generation 6 of 12",
        "after InvertedPendulum",
    ]
    used = [gait for shelf in shelves for moment in shelf["moments"] for gait in moment["gaits"].values()]
    assert set(used) == set(range(len(data["gaits"])))
    assert len(used) > len(set(used))
    assert all(gait["episode"] == EPISODES // 2 for gait in data["gaits"])
    # Each robot is first seen where most of it was lost: under naive, in the order that began with it.
    assert [shelves[data["starts"][task]]["condition"] for task in ("0", "1")] == ["naive", "naive"]
    assert [shelves[data["starts"][task]]["order"].split(" ")[0] for task in ("0", "1")] == data["tasks"]


def test_gaits_beyond_the_budget_are_left_out_and_it_is_said(study: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = analyse(study)
    for most_bytes, words in (
        (100, "9 gaits, 5 of them from the start or the end of a phase, are left out to keep this file small;"),
        (600, "6 gaits, 2 of them from the start or the end of a phase, are left out to keep this file small;"),
        (1000, "4 gaits from the middle of phases are left out to keep this file small;"),
    ):
        monkeypatch.setattr(html, "Catalogue", partial(Catalogue, most_bytes=most_bytes))
        text = html.render_report(analysis, study.path / "gaits")
        data = page_data(text)
        assert 0 < sum(len(gait["motion"]) + len(gait["score"]) for gait in data["gaits"]) <= most_bytes
        assert words in text
        # Who has no gait is not offered.
        offered = {task for shelf in data["shelves"] for moment in shelf["moments"] for task in moment["gaits"]}
        assert data["robots"].keys() == data["starts"].keys() == offered


@pytest.mark.parametrize(
    ("n_small", "seen", "words"),
    [
        (1, {"Hopper": "replay", "InvertedPendulum": "replay"}, "27 gaits, 11 of them from the start or the end"),
        (6, {"Hopper": "replay", "InvertedPendulum": "naive"}, "22 gaits, 6 of them from the start or the end"),
    ],
)
def test_each_robot_is_first_seen_where_its_loss_can_be_watched(
    study: Results, monkeypatch: pytest.MonkeyPatch, n_small: int, seen: dict[str, str], words: str
) -> None:
    """There is room for all ends of replay; of naive, which lost more, only for some small gaits of the pendulum."""

    def pictures(robot: Robot) -> dict[str, str]:
        n_frames = 50 if robot.task.name == "Hopper-v5" else 2
        still = np.ones((n_frames, len(robot.pose())), np.int64)
        return {"motion": encode(still), "score": encode(still[:, :1])}

    def record(self: GaitRecorder, run: Run, moment: Moment) -> dict[str, Any]:
        told = {"return": 300.0, "steps": 100, "seconds": 2.0, "ended": "truncated", "episode": 1}
        identity = f"{run.path}, {moment.stage}, {moment.generation}, {self.robot.task.name}"
        return {**pictures(self.robot), **told, "id": identity}

    sizes = []
    for name in ("Hopper-v5", "InvertedPendulum-v5"):
        with closing(recorder(name, None)) as one:
            sizes.append(sum(map(len, pictures(one.robot).values())))
    large, small = sizes
    assert large > 6 * small
    room = 2 * 3 * (large + small) + n_small * small  # two orders of replay with three ends each come first
    monkeypatch.setattr(GaitRecorder, "record", record)
    monkeypatch.setattr(html, "Catalogue", partial(Catalogue, most_bytes=room))
    replay_first = replace(study, entries=study.entries[::-1])
    text = html.render_report(analyse(replay_first, {"Hopper-v5": 310.0, "InvertedPendulum-v5": 950.0}))
    data = page_data(text)
    assert "naive" in {shelf["condition"] for shelf in data["shelves"]}
    starts = {data["tasks"][int(task)]: data["shelves"][number] for task, number in data["starts"].items()}
    assert {task: shelf["condition"] for task, shelf in starts.items()} == seen
    for task, shelf in starts.items():
        place = str(data["tasks"].index(task))
        shown = [moment["label"] for moment in shelf["moments"] if place in moment["gaits"]]
        assert shown[:2] == ["before training", f"after {task}"]
        assert len(shown) == 3
    assert words in text


def test_names_from_files_cannot_leave_their_place(tmp_path: Path) -> None:
    results = make_study(tmp_path, names=(EVIL, "--><!--"), title=EVIL)
    results = Results(results.title, results.path, results.entries, description=EVIL)
    text = write_report(results, tmp_path).read_text()
    page = Collector(text)
    assert len(page.scripts) == 3  # the workers', data, and the page's own
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert page_data(text)["panels"][0]["condition"] == EVIL
    assert "\u2028" not in page.scripts[-2]


def test_task_that_gymnasium_does_not_know_is_shown_without_a_gait(tmp_path: Path) -> None:
    name = write_foreign_phase(tmp_path, EVIL, [EVIL, "Other-v0"])
    config = make_config([EVIL, "Other-v0"])
    run = Run(tmp_path, config, (PhaseStore(tmp_path).folder(name),))
    results = Results("Foreign", tmp_path, (Entry("naive", EVIL, 0, run),))
    text = write_report(results, tmp_path).read_text()
    assert len(Collector(text).scripts) == 2
    assert "Gymnasium has no environment" in text


def test_nothing_finished_is_said_in_words(tmp_path: Path) -> None:
    text = write_report(Results("Empty", tmp_path, ()), tmp_path).read_text()
    assert "Nothing has been trained to the end of a phase yet" in text
    assert 'id="player"' not in text


@pytest.mark.parametrize(("n_stages", "words"), [(1, "Only one task has been learnt so far"), (2, "One seed:")])
def test_little_data_is_not_oversold(tmp_path: Path, n_stages: int, words: str) -> None:
    config = make_config(["InvertedPendulum-v5", "Reacher-v5"])
    write_run(tmp_path / "run", config, forgetting, n_stages)
    text = write_report(Results.of_run(tmp_path / "run"), tmp_path).read_text()
    assert words in text
    assert ("not finished: 1 of 2 phases" in text) == (n_stages == 1)
    assert "evergait train --config" in text


def test_one_task_alone_makes_a_report(tmp_path: Path) -> None:
    write_run(tmp_path / "run", make_config(["InvertedPendulum-v5"]))
    text = write_report(Results.of_run(tmp_path / "run"), tmp_path).read_text()
    assert "Watch it move" in text
    assert "backward transfer</label>" not in text


def test_the_machine_that_trained_and_the_one_that_wrote_are_named(trained: Path, study: Results) -> None:
    told = dict(redo.facts(Results.of_run(trained)))
    assert told["trained with"] == told["page written with"] == in_words(versions())
    assert f"numpy {np.__version__}" in told["trained with"]
    # The synthetic study's phases do not say what they were trained with.
    assert dict(redo.facts(study))["trained with"].startswith("not recorded")


def test_a_study_that_ships_is_named_only_if_it_has_these_very_runs() -> None:
    results = load_results(Path(__file__).parents[2] / "results" / "fast")
    assert redo.commands(results)[0].startswith("evergait study run fast --out ")
    entry = results.entries[0]
    other = replace(entry, run=replace(entry.run, config=replace(entry.run.config, sigma=0.1)))
    assert redo.commands(replace(results, entries=(*results.entries[1:], other)))[0].startswith("evergait report ")


def test_templates_scripts_and_styles_are_in_the_package() -> None:
    for name in (*html.STYLES, *html.SCRIPTS):
        assert (html.ASSETS / name).read_text()
    assert "</script" not in html.report_script().lower()


def test_a_study_by_steps_is_drawn_over_steps(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(
        tiny_study(replay=False).replace("generations = 4", "steps = 600").replace("every = 2", "every_steps = 200")
    )
    results = run_study(tmp_path / "tiny.toml", tmp_path / "out", seeds=2, threads=1)
    for drawn in map(panel, analyse(results).groups):
        assert drawn.unit == "million steps"
        assert drawn.n_seeds == 2  # generations differ between seeds, evaluations do not
        assert drawn.x[:4] == pytest.approx([0, 0.0002, 0.0004, 0.0006])
    text = write_report(results, tmp_path).read_text()
    assert "millions of environment steps" in text


def test_a_study_without_its_policies_has_all_but_gaits(measured: Results, tmp_path: Path) -> None:
    shutil.copytree(measured.path, tmp_path / "out")
    for policy in tmp_path.glob("out/phases/*/theta.safetensors"):
        policy.unlink()
    results = load_results(tmp_path / "out")
    assert [t.to_csv() for t in all_tables(analyse(results))] == [t.to_csv() for t in all_tables(analyse(measured))]
    text = write_report(results, tmp_path).read_text()
    assert "kept without their policies" in text
    assert plane_data(results) == "It takes policies, and some phases were kept without theirs."


# The page of the whole paper, as large as it can get, stays below its limit.


LIMIT = 15_000_000


@pytest.mark.prove
def test_the_paper_at_full_size_makes_a_page_below_15_mb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three seeds of 25 runs with 101 evaluations per phase, gaits up to their budget, and a landscape of noise."""
    noise = np.random.default_rng(1)

    def record(self: GaitRecorder, run: Run, moment: Moment) -> dict[str, Any]:
        n_channels = len(self.robot.skeleton.geoms) * 4
        motion = encode(noise.integers(-2000, 2000, (500, n_channels)))
        score = encode(noise.integers(0, 30, (500, 1)).cumsum(axis=0))
        told = {"return": 300.0, "steps": 1000, "seconds": 20.0, "ended": "truncated"}
        return {"motion": motion, "score": score, **told, "id": str(noise.integers(1 << 60)), "episode": 4}

    results = make_paper_study(tmp_path, n_seeds=3)
    assert len(results.entries) == 3 * 25
    monkeypatch.setattr(GaitRecorder, "record", record)
    monkeypatch.setattr(plane, "_landscape", lambda *_: noise.uniform(0, 400, (plane.N_GRID, plane.N_GRID)).tolist())
    assert isinstance(plane.plane_data(results), dict)
    path = write_report(results, tmp_path)
    data = page_data(path.read_text())
    n_bytes = sum(len(gait["motion"]) + len(gait["score"]) for gait in data["gaits"])
    size = path.stat().st_size
    print(f"{size / 1e6:.2f} MB, of which {n_bytes / 1e6:.2f} MB are {len(data['gaits'])} gaits; 25 charts")
    assert 0.95 * MOST_BYTES < n_bytes <= MOST_BYTES
    assert len(data["panels"]) == 25
    assert len(data["panels"][0]["x"]) == 3 * 101
    assert data["plane"]["values"]
    assert size + 3_000_000 < LIMIT, "films of robots without a plane may come on top"


def test_a_report_that_fails_leaves_no_folder(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "run")
    ledger = next((tmp_path / "run").rglob("ledger.jsonl"))
    ledger.write_bytes(ledger.read_bytes()[:-9])
    assert main(["report", str(tmp_path / "run"), "--output", str(tmp_path / "new" / "page.html")]) == 2
    assert not (tmp_path / "new").exists()
