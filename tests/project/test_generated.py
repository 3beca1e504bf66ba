"""Nothing that programs wrote into the pages was edited by hand, and results are what they say."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from statistics import fmean, median
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from faults import write_counts

from evergait.config import config_from_data, preset
from evergait.core.data import to_data
from evergait.methods import Method
from evergait.scores.scale import shipped
from evergait.store.phases import PhaseStore
from evergait.studies.base import read_study
from evergait.studies.cells import study_cells
from evergait.studies.folder import load_results, read_cells, stored

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts"
METHODS = {name for name, member in Method.members.items() if member.__module__.startswith("evergait.methods.")}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def load(name: str, folder: Path = SCRIPTS) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"script_{name}", folder / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def studies() -> dict[str, Any]:
    """Those of the page of methods, read once."""
    page = load("methods")
    return {name: page.load(name) for name in page.STUDIES}


@pytest.fixture(autouse=True)
def scripts_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", [str(SCRIPTS), *sys.path])
    yield
    for name in ("pages", "findings", "verdicts"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_generated_part_was_edited_by_hand(path: Path) -> None:
    pages, text = load("pages"), path.read_text()
    told = json.loads(pages.DIGESTS.read_text()).get("../README.md" if path.name == "README.md" else path.name, {})
    assert set(pages.parts(text)) == set(told)
    assert {name: pages.digest(text, name) for name in told} == told


def test_an_edited_part_is_noticed() -> None:
    pages = load("pages")
    text = "<!-- a part -->\n\n1 of 2\n\n<!-- end -->\n"
    assert pages.parts(text) == ["a part"]
    assert pages.digest(text, "a part") != pages.digest(text.replace("1 of", "2 of"), "a part")


def test_a_page_is_the_same_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evergait.training.phases.libm_fingerprint", lambda: "another processor")
    results = load_results(RESULTS / "return")
    assert "another processor" in " ".join(results.outdated)
    assert load("pages").older(results) == ""


def test_the_page_of_methods_says_what_the_ledgers_say() -> None:
    page, text = load("methods"), (ROOT / "docs" / "methods.md").read_text()
    for name, block in page.parts(studies()).items():
        assert page.filled(text, name, block) == text, name
    readme = (ROOT / "README.md").read_text()
    assert page.filled(readme, "keeping", page.keeping(studies()["methods"])) == readme


def test_every_method_has_a_page_with_formula_use_and_source() -> None:
    overview, pages = load("site").method_sections((ROOT / "docs/methods/index.md").read_text())
    assert set(pages) == METHODS
    for name, text in pages.items():
        assert f"[{name}]({name}.md)" in overview
        assert f"--method {name}" in text or f"--method replay+{name}" in text
        assert all(f"**{part}**" in text for part in ("Formula.", "When to use it.", "Source.")), name


def test_the_api_reference_tells_of_a_field_what_is_written_below_it() -> None:
    api = load("site").api()
    assert "| `sigma` | Standard deviation of the perturbations, σ. |" in api  # of Config
    told = [line for line in api.splitlines() if "Python modules of your own" in line]
    assert [line.split("`")[1] for line in told] == ["plugins"]  # and not of those above it, which have nothing


def test_curves_on_the_methods_pages_are_what_the_ledgers_say() -> None:
    site, analysis = load("site"), studies()["methods"]
    without = [name for name in METHODS if name not in analysis.results.conditions]
    assert without == ["interval"]  # its page says so
    assert site.method_curve(analysis, "interval") is None
    for name in sorted(METHODS - {*without}):
        picture = site.method_curve(analysis, name)
        bold = {str(line.get_label()): line for line in picture.figure.axes[-1].lines if line.get_label()[0] != "_"}
        assert set(bold) == {"Hopper", "Swimmer", "Walker2d"}
        for task, line in bold.items():
            runs = [entry for entry in analysis.finished(name) if entry.order == "Hopper > Swimmer > Walker2d"]
            ends = [analysis.metrics(entry).curve(f"{task}-v5", -1)[-1] for entry in runs]
            assert line.get_ydata()[-1] == pytest.approx(sum(ends) / len(ends)), f"{name} on {task}"
        assert load("pages").older(analysis.results) in picture.caption
    assert b"<svg" in picture.svg()


def test_the_table_of_fast_says_what_was_played() -> None:
    """Of the policies that are stored; a Swimmer, whose motion forgives rounding, plays its first episode again."""
    page = load("fast")
    for path, blocks in page.parts().items():
        text = (ROOT / "docs" / path).read_text()
        for name, block in blocks.items():
            assert load("pages").filled(text, name, block) == text, name
    played, entries = page.fresh_episodes(page.FOLDER), page.load_results(page.FOLDER).entries
    assert played.keys() == {entry.run.theta_sha256 for entry in entries}
    rows = played.values()
    assert all(len(row["returns"]) == page.EPISODES for row in rows)
    usual = {task: median(fmean(row["returns"]) for row in rows if row["task"] == task) for task in page.ARS}
    told = dict(shipped())["shipped references (the median of 20 seeds of the preset fast)"]
    assert usual == pytest.approx(told, abs=0.01)
    entry = next(entry for entry in entries if entry.run.config.stream == ("Swimmer-v5",))
    told = played[entry.run.theta_sha256]["returns"]
    with closing(page.LocalWorkers(1)) as workers:
        assert page.play(entry, workers, 1) == pytest.approx(told[:1], rel=0.01)


def test_the_page_of_methods_says_what_the_runs_of_a_gradient_method_say() -> None:
    page, pages, text = load("gradient"), load("pages"), (ROOT / "docs" / "methods.md").read_text()
    for name, block in page.parts().items():
        assert pages.filled(text, name, block) == text, name


def test_the_page_of_methods_says_how_long_other_learners_took() -> None:
    page, pages, text = load("rivals"), load("pages"), (ROOT / "docs" / "methods.md").read_text()
    for name, block in page.parts().items():
        assert pages.filled(text, name, block) == text, name


def test_the_reproduction_and_the_readme_say_what_the_ledgers_say() -> None:
    page, pages = load("reproduction"), load("pages")
    for path, blocks in page.parts().items():
        text = (ROOT / "docs" / path).read_text()
        for name, block in blocks.items():
            assert pages.filled(text, name, block) == text, name


def test_the_page_of_vector_environments_says_what_was_measured() -> None:
    page, pages = load("vector", ROOT / "benchmarks"), load("pages")
    measured, text = json.loads(page.MEASURED.read_text()), (ROOT / "docs" / "vector.md").read_text()
    for name, block in page.blocks(measured).items():
        assert pages.filled(text, name, block) == text, name
    measured["speed"]["rows"][0]["rates"]["evergait"][0] *= 2
    assert pages.filled(text, "speed", page.blocks(measured)["speed"]) != text


def test_nothing_beside_the_benchmarks_hides_the_standard_library() -> None:
    for folder in ("benchmarks", "scripts", "examples"):
        done = subprocess.run([sys.executable, "-c", "import cProfile"], cwd=ROOT / folder, check=False)
        assert done.returncode == 0


def test_the_comparison_with_mujoco_starts() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "physics.py", "--help"], capture_output=True, check=True
    )
    assert b"--states" in done.stdout


RESULTS = Path(__file__).parents[2] / "results"
DECLARED = {"paper": ("paper", "full"), "authors-third": ("authors", "third")}
"""Folder → study and scale, where they are not the folder's name and the study's own."""
STUDIES = sorted({path.parent.name for name in ("phases.zip", "study.json") for path in RESULTS.glob(f"*/{name}")})


@pytest.mark.parametrize("name", STUDIES)
def test_results_are_packed(name: str) -> None:
    """Thousands of small files would be most of the repository: `evergait study pack results/NAME`."""
    assert not {"phases", "study.json"} & {path.name for path in (RESULTS / name).iterdir()}


@pytest.mark.parametrize("name", STUDIES)
def test_finished_phases_are_whole_and_known_to_their_study(name: str) -> None:
    store = PhaseStore(RESULTS / name / "phases")
    found = {phase for phase in store.names() if store.folder(phase).is_done()}
    assert found
    for phase in found:
        store.folder(phase).verify(needs=("config.toml", "ledger.jsonl"))
        store.folder(phase).ledger()
    _, cells = read_cells(RESULTS / name)
    assert found <= {phase for cell in cells for phase in cell.phases}
    study, scale = DECLARED.get(name, (name, ""))
    n_seeds = len({cell.seed for cell in cells})
    declared = {
        cell.key: cell.config
        for cell in map(stored, study_cells(read_study(study).at_scale(scale).with_seeds(n_seeds)))
    }
    for cell in cells:
        assert to_data(config_from_data(cell.config, name)) == declared[cell.key]
    assert load_results(RESULTS / name).entries


def test_the_fast_preset_and_the_studies_keep_old_tasks_alike() -> None:
    cells = [cell for name in ("methods", "return") for cell in study_cells(read_study(name))]
    assert {cell.config.method for cell in cells if cell.condition == "distill"} == {preset("fast").method}


def test_a_method_is_compared_with_the_setting_that_ended_highest() -> None:
    strengths = studies()["strengths"]
    best = {name: strengths.config(tried).method for name, tried in load("methods").chosen(strengths).items()}
    assert set(best) >= {"distill", "ewc", "ewc-search", "anchor", "replay"}
    cells = [cell for study in ("methods", "return", "ablation") for cell in study_cells(read_study(study))]
    for cell in cells:
        name = cell.condition if cell.condition in best else cell.config.method.parts[0].name
        if name in best:
            assert cell.config.method.parts[0] == best[name], f"{cell.condition}: {best[name]}"


QUICK = {
    "hostile": ("reliability.test_hostile", "", "files and folders of a stranger, each under several commands"),
    "imports": ("reliability.test_hostile", "import", "only training imports them, and says so"),
    "formats": ("reliability.test_formats", "", "files of every version: loaded, shown, reported, resumed"),
    "surroundings": (
        "reliability.test_surroundings",
        "start_methods clocks name encoding moved",
        "start methods, clocks, names, encodings, moved folders",
    ),
    "escapes": ("reliability.test_surroundings", "inert escape", "printed as text"),
    "archives": ("store.test_archive", "", "the same bytes back, damage noticed, strangers' archives refused"),
    "pages": ("live.test_answers", "own_page touching line damaged folder", "what a page of trainings asks for"),
    "arrays": ("vector.test_environment", "mistakes diverges", "refused by name, and nothing has changed"),
    "retrained": ("commands.test_retrain", "", "`verify --train` and `reproduce`"),
    "lock": ("project.test_release", "lock", "`make setup` takes nothing else"),
}
"""Fault → module under tests, words of which a test's name has one, note."""


def test_the_table_is_what_was_measured_and_nothing_is_lost() -> None:
    spec = importlib.util.spec_from_file_location("reliability", ROOT / "scripts" / "reliability.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    figures = json.loads((ROOT / "docs" / "reliability.json").read_text())
    page = (ROOT / "docs" / "reliability.md").read_text()
    assert f"<!-- measured -->\n\n{script.table(figures)}\n\n<!-- end -->" in page
    assert set(figures) <= set(script.FAULTS)
    assert sum(figure["lost"] for figure in figures.values()) == 0


@pytest.mark.prove
def test_quick_tests_are_counted(tmp_path: Path) -> None:
    """Tests that need no repetition, run once more, in numbers."""
    files = sorted({f"tests/{module.replace('.', '/')}.py" for module, _, _ in QUICK.values()})
    out = tmp_path / "results.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not prove", "-p", "no:cacheprovider", f"--junitxml={out}"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    passed = [case.attrib for case in ET.parse(out).iter("testcase") if not len(case)]  # noqa: S314 - our own
    for fault, (module, words, note) in QUICK.items():
        names = [case["name"] for case in passed if case["classname"] == f"tests.{module}"]
        n = sum(not words or any(word in name for word in words.split()) for name in names)
        assert n, fault
        write_counts(fault, n, 0, note)
