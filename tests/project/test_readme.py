"""What the README tells people to type works, as it stands there."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from evergait.cli import parse

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands(language: str) -> list[str]:
    return [line for block in blocks(language) for line in block.splitlines() if line.startswith("evergait ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


def test_shell_commands_work(folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    assert len(commands("sh")) >= 6
    for command in commands("sh"):
        words = shlex.split(command, comments=True)
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert (folder / "swim.html").exists()
    assert (folder / "runs/first/report.html").exists()


def test_python_example_works(folder: Path) -> None:
    (example,) = blocks("python")
    assert len(example.splitlines()) <= 16
    done = subprocess.run([sys.executable, "-c", example], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", commands("console"))
def test_long_commands_have_real_flags(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert parse(shlex.split(command, comments=True)[1:])


def test_first_screen_has_the_two_commands_and_a_picture() -> None:
    first = README[:1500]
    assert "make demo" in first
    assert "make test" in first
    (picture,) = re.findall(r"!\[[^]]*\]\(([^)]+)\)", first)
    assert (ROOT / picture).exists()
