"""Nothing that programs wrote into the pages was edited by hand, and what comes from ledgers is what they say."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evergait.methods import Method

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
    sys.modules.pop("pages", None)


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


def test_the_page_of_methods_says_what_the_ledgers_say() -> None:
    page, text = load("methods"), (ROOT / "docs" / "methods.md").read_text()
    for name, block in page.parts(studies()).items():
        assert page.filled(text, name, block) == text, name


def test_every_method_has_a_page_with_formula_use_and_source() -> None:
    overview, pages = load("site").method_sections((ROOT / "docs/methods/index.md").read_text())
    assert set(pages) == METHODS
    for name, text in pages.items():
        assert f"[{name}]({name}.md)" in overview
        assert f"--method {name}" in text or f"--method replay+{name}" in text
        assert all(f"**{part}**" in text for part in ("Formula.", "When to use it.", "Source.")), name


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
        assert all(older in picture.caption for older in analysis.results.outdated)
    assert b"<svg" in picture.svg()


def test_the_table_of_fast_says_what_was_played() -> None:
    """Of the policies that are stored; a Swimmer, whose motion forgives rounding, plays its first episode again."""
    page, text = load("fast"), (ROOT / "docs" / "methods.md").read_text()
    for name, block in page.parts().items():
        assert load("pages").filled(text, name, block) == text, name
    rows, entries = json.loads(page.PLAYED.read_text()), page.load_results(page.FOLDER).entries
    assert {row["theta"] for row in rows} == {entry.run.theta_sha256 for entry in entries}
    assert all(len(row["returns"]) == page.EPISODES for row in rows)
    entry = next(entry for entry in entries if entry.run.config.stream == ("Swimmer-v5",))
    told = next(row for row in rows if row["theta"] == entry.run.theta_sha256)
    with closing(page.LocalWorkers(1)) as workers:
        assert page.play(entry, workers, 1) == pytest.approx(told["returns"][:1], rel=0.01)


def test_the_page_of_methods_says_what_the_runs_of_a_gradient_method_say() -> None:
    page, pages, text = load("gradient"), load("pages"), (ROOT / "docs" / "methods.md").read_text()
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
