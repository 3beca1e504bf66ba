"""Nothing that programs wrote into the pages was edited by hand, and what comes from ledgers is what they say."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"script_{name}", SCRIPTS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    for name, block in page.parts({name: page.load(name) for name in page.STUDIES}).items():
        assert page.filled(text, name, block) == text, name


def test_the_reproduction_and_the_readme_say_what_the_ledgers_say() -> None:
    page, pages = load("reproduction"), load("pages")
    for path, blocks in page.parts().items():
        text = (ROOT / "docs" / path).read_text()
        for name, block in blocks.items():
            assert pages.filled(text, name, block) == text, name


def test_nothing_beside_the_benchmarks_hides_the_standard_library() -> None:
    for folder in ("benchmarks", "scripts", "examples"):
        done = subprocess.run([sys.executable, "-c", "import cProfile"], cwd=ROOT / folder, check=False)
        assert done.returncode == 0
