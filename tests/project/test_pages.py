"""What the pages tell people to type works; what they link to is there."""

import doctest
import importlib
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import evergait
from evergait.cli import parse
from evergait.methods import Method
from evergait.studies.base import read_study
from evergait.studies.space import read_search

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
GENERATED = {"api.md", "commands.md"}
"""Written by scripts/site.py."""
EXECUTED = ["first-steps.md", "zoo.md"]
PYTHON = ["python.md", "own/environment.md", "own/method.md"]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


def commands(page: str, *languages: str) -> list[str]:
    lines = [line for language in languages for block in blocks(page, language) for line in block.splitlines()]
    return [line for line in lines if line.startswith("evergait ")]


def navigation() -> set[str]:
    return set(re.findall(r'= "([\w/-]+\.md)"', (ROOT / "zensical.toml").read_text()))


def test_every_page_is_in_the_navigation() -> None:
    notebooks = {f"notebooks/{path.stem}.md" for path in (DOCS / "notebooks").glob("*.ipynb")}
    methods = {f"methods/{name}.md" for name, member in Method.members.items() if "evergait." in member.__module__}
    assert navigation() == {*PAGES, *GENERATED, *notebooks, *methods}


@pytest.mark.parametrize("page", PAGES)
def test_commands_have_real_flags(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for command in commands(page, "sh", "console"):
        words = shlex.split(command, comments=True)[1:]
        assert words == ["--version"] or parse(words), command


@pytest.mark.parametrize("page", EXECUTED)
def test_the_newcomers_commands_work(page: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    assert len(commands(page, "sh")) >= 4
    printed = ""
    for command in commands(page, "sh"):
        words = shlex.split(command, comments=True)
        words += ["--threads", "1"] if words[1] == "train" else []  # the same bits, and no waiting for busy processors
        words += ["--store", "store"] if page == "first-steps.md" else []  # its first phase is common to both runs
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        printed += done.stdout
    told = (
        re.findall(r"(?:returned|and|at) ([\d,]{2,})\b", (DOCS / page).read_text()) if page == "first-steps.md" else []
    )
    assert all(re.search(rf"\b{number}\b", printed) for number in told), told
    assert len(told) == (5 if page == "first-steps.md" else 0)


@pytest.mark.parametrize("page", PYTHON)
def test_python_works_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    assert len(blocks(page, "python")) >= 2
    for block in blocks(page, "python"):
        named = re.match(r"# (\w+\.py)\n", block)
        with (tmp_path / (named[1] if named else "page.py")).open("a") as file:
            file.write(block + "\n")
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_written_in_their_language(page: str) -> None:
    for block in blocks(page, "python"):
        compile(block, page, "exec")
    for block in blocks(page, "toml"):
        tomllib.loads(block)


def test_the_study_on_its_page_is_one(tmp_path: Path) -> None:
    study, search = blocks("own/study.md", "toml")
    (tmp_path / "budget.toml").write_text(study + search)
    found = read_study(tmp_path / "budget.toml")
    assert list(found.conditions) == ["naive", "small", "large"]
    assert [dimension.field for dimension in read_search(found).dimensions][:2] == ["sigma", "pairs"]


@cache
def anchors(path: Path) -> set[str]:
    """Headings as the site names them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in plain}


@pytest.mark.parametrize("page", [f"docs/{page}" for page in PAGES] + ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_and_anchors_lead_somewhere(page: str) -> None:
    path = ROOT / page
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        if file in GENERATED or file.removeprefix("../") in GENERATED:
            continue
        there = (path.parent / file) if file else path
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


# What the README tells people to type works, as it stands there.


README = "../README.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


def test_shell_commands_work(folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    assert len(commands(README, "sh")) >= 6
    for command in commands(README, "sh"):
        words = shlex.split(command, comments=True)
        words += ["--threads", "1"] if words[1] == "train" else []  # the same bits, and no waiting for busy processors
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert (folder / "swim.html").exists()
    assert (folder / "runs/first/report.html").exists()


def test_python_example_works(folder: Path) -> None:
    (example,) = blocks(README, "python")
    assert len(example.splitlines()) <= 16
    done = subprocess.run([sys.executable, "-c", example], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", commands(README, "console"))
def test_long_commands_have_real_flags(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert parse(shlex.split(command, comments=True)[1:])


def test_first_screen_has_the_two_commands_and_a_picture() -> None:
    first = (DOCS / README).read_text()[:1500]
    assert "make demo" in first
    assert "make test" in first
    (picture,) = re.findall(r"!\[[^]]*\]\(([^)]+)\)", first)
    assert (ROOT / picture).exists()


# Examples in docstrings are true.


MODULES = [m.name for m in pkgutil.walk_packages(evergait.__path__, "evergait.") if not m.name.endswith("__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
