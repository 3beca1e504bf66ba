"""The shell offers what there is, after one command."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evergait.cli import COMMANDS, LISTS
from evergait.commands.completion import fish, install, printed


@pytest.fixture(scope="module")
def script() -> str:
    """What the command prints."""
    command = [sys.executable, "-m", "evergait", "completion", "bash"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def offered(script: str, *words: str) -> list[str]:
    """What bash would offer for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    code = (
        f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _evergait; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_flags_of_several_values_may_not_be_there_twice() -> None:
    pages = [[name, "--help-all" if name == "train" else "--help"] for name in COMMANDS]
    pages += [["study", name, "--help"] for name in ("run", "plan", "status", "pack", "unpack")]
    lists = set(re.findall(r"--([\w.-]+) \[[^\[\]]+ \[", "\n".join(printed(*pages))))
    assert lists == set(LISTS)


def test_commands_flags_and_values(script: str) -> None:
    assert offered(script, "evergait", "tr") == ["train"]
    assert "--version" in offered(script, "evergait", "--")
    assert {"--method", "--preset", "--stream", "--threads"} <= set(offered(script, "evergait", "train", "--"))
    assert offered(script, "evergait", "train", "--method", "rep") == ["replay"]
    assert offered(script, "evergait", "train", "--stream", "Hop") == ["Hopper-v5"]
    assert offered(script, "evergait", "train", "--preset", "q") == ["quick"]
    assert offered(script, "evergait", "study", "s") == ["status"]
    parts = re.search(r"\{([\w,]+)\}", printed(["study", "--help"])[0])
    assert parts
    assert offered(script, "evergait", "study", "") == parts[1].split(",")
    assert "--policies" in offered(script, "evergait", "study", "pack", "--p")
    assert "--conditions" in offered(script, "evergait", "study", "run", "--c")
    assert offered(script, "evergait", "show", "") == []  # then the shell offers files
    assert offered(script, "evergait", "eval", "--task", "Ant") == ["Ant-v5"]


def test_installed_once_it_is_there_in_a_new_shell(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    (tmp_path / ".bashrc").write_text("export MINE=kept")
    for _ in range(2):
        install("bash", script)
    lines = (tmp_path / ".bashrc").read_text().splitlines()
    assert lines[0] == "export MINE=kept"
    assert len(lines) == 2
    done = subprocess.run(
        ["bash", "-i", "-c", "complete -p evergait; echo $MINE"],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["complete", "-o", "default", "-F", "_evergait", "evergait", "kept"]


def test_fish_and_zsh(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = fish({"train": ["--method"], "study": []}, {"--method": ["naive", "replay"], "study": ["run"]})
    assert "-l method -x -a 'naive replay'" in text
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ZDOTDIR", raising=False)
    install("zsh", script)
    assert "bashcompinit" in (tmp_path / ".zshrc").read_text()
    monkeypatch.setenv("ZDOTDIR", str(tmp_path / "dots"))
    (tmp_path / "dots").mkdir()
    install("zsh", script)
    assert "bashcompinit" in (tmp_path / "dots" / ".zshrc").read_text()
    if zsh := shutil.which("zsh"):
        code = "whence -w _evergait"
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        done = subprocess.run([zsh, "-i", "-c", code], env=environment, capture_output=True, text=True, check=False)
        assert "_evergait: function" in done.stdout
