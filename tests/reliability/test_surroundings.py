"""Clocks that jump, processes that fork, names that are no text, homes that do not exist: it works all the same."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import answer, library, tree, write_counts
from small import tiny_config

from evergait.cli import main
from evergait.config import Config
from evergait.core.files import read_json, write_json
from evergait.core.terminal import inert, inert_json
from evergait.training.run import Run, train

Ask = Callable[..., tuple[int, str]]
FORK = """
import multiprocessing, os, sys, warnings
from pathlib import Path
from small import tiny_config
from evergait.training.run import train

warnings.simplefilter("ignore")  # Python warns of forks in processes with threads; that is what is tried here


def work(out):
    train(tiny_config(), out, threads=2)


if __name__ == "__main__":
    method, out = sys.argv[1:]
    train(tiny_config(seed=5), out + "-first", threads=2)  # engines and their threads exist when the process forks
    process = multiprocessing.get_context(method).Process(target=work, args=(out,))
    process.start()
    process.join(60)
    sys.exit(process.exitcode if process.exitcode is not None else 99)
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_start_methods(method: str, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(FORK)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent / "support")}
    command = [sys.executable, str(tmp_path / "script.py"), method, str(tmp_path / "run")]
    assert subprocess.run(command, env=environment, check=False, timeout=90).returncode == 0
    assert tree(tmp_path / "run") == tree(trained)


@pytest.mark.parametrize("pause", ["", "1"], ids=["wall clock", "steady clock too"])
def test_clocks_that_jump(trained: Path, tmp_path: Path, pause: str) -> None:
    (tmp_path / "c.toml").write_text(tiny_config().to_toml())
    arguments = ("train", "--config", tmp_path / "c.toml", "--out", tmp_path / "run")
    environment = {"LD_PRELOAD": str(library("clock")), **({"EVERGAIT_PAUSE": pause} if pause else {})}
    read = [sys.executable, "-c", "import time; print(abs(time.time() - time.time()) > 3600)"]
    done = subprocess.run(read, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"  # the fault is there
    code, output = answer(*arguments, env=environment)
    assert code == 0, output
    assert tree(tmp_path / "run") == tree(trained)


NAMES = {
    "not UTF-8": b"r\xffn\xfe",
    "spaces": b" a run ",
    "quotes": b'it\'s "mine"; $(touch sentinel) `touch sentinel`',
    "new line": b"one\ntwo",
    "markup": b"[red]<b>&amp;[bold]",
    "letters": "läufer 走る θ".encode(),
    "a dash": b"-v",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_folders(ask: Ask, name: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / os.fsdecode(NAMES[name])
    home.mkdir()
    monkeypatch.chdir(home)
    (home / "c.toml").write_text(tiny_config().to_toml())
    run = home / "run"
    commands = [
        ("train", "--config", home / "c.toml", "--out", run, "--store", home / "store"),
        ("train", "--config", home / "c.toml", "--out", run, "--store", home / "store"),
        ("show", run),
        ("show", run, "--json"),
        ("eval", run, "--episodes", 1),
        ("export", run, "--output", home / "policy.safetensors"),
        ("report", run),
    ]
    for command in commands:
        code, output = ask(*command, *(() if "--store" in command else ("--store", home / "store")))
        assert code == 0, output
    assert Run.load(run, home / "store").theta_sha256 == Run.load(trained).theta_sha256
    assert (run / "report.html").stat().st_size > 10_000
    assert (home / "policy.safetensors").exists()
    code, output = ask("show", home / "missing")
    assert code == 2
    assert "is not a run's folder" in output
    assert not (home / "sentinel").exists()


def test_a_name_that_is_no_text_on_a_real_terminal(tmp_path: Path) -> None:
    code, output = answer("show", tmp_path / os.fsdecode(b"r\xffn"))
    assert code == 2
    assert "r\\udcffn: is not a run's folder" in output


HOMES = {"none": None, "read-only": "/proc"}
AT_HOME = """
import sys
from evergait.cli import main

study, out = sys.argv[1:]
for command in (["study", "run", study, "--out", out, "--threads", "1"], ["report", out], ["doctor", out]):
    assert main(command) == 0, command
"""


@pytest.mark.prove
@pytest.mark.parametrize("home", HOMES)
def test_homes(home: str, study: Path, tmp_path: Path) -> None:
    drop = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR")
    environment = {name: value for name, value in os.environ.items() if name not in drop}
    if value := HOMES[home]:
        environment["HOME"] = value
    command = [sys.executable, "-c", AT_HOME, str(study), str(tmp_path / "study")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "study" / "report.html").exists()
    assert list((tmp_path / "study" / "figures").glob("*.png"))


def test_an_encoding_without_our_letters(trained: Path) -> None:
    code, output = answer("show", trained, env={"PYTHONIOENCODING": "ascii"})
    assert code == 0
    assert "\\u03b8" in output  # θ


def test_a_run_can_be_moved(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "elsewhere")
    assert Run.load(tmp_path / "elsewhere").metrics.summary() == Run.load(trained).metrics.summary()
    train(tiny_config(), tmp_path / "elsewhere", threads=1)
    assert tree(tmp_path / "elsewhere") == tree(trained)


REDIRECTIONS = {
    "closed": "2>&-",
    "all closed": "<&- >&- 2>&-",
    "full": "2>/dev/full",
    "all full": ">/dev/full 2>/dev/full",
    "reader gone": "2> >(exit)",
    "readers gone": "> >(exit) 2>&1",
}


def trains(folder: Path, small: tuple[Config, Path], redirection: str) -> None:
    """A run whose streams are as the redirection says has the bits of any other."""
    config, path = small
    command = f"'{sys.executable}' -m evergait train --config '{path}' --out '{folder}' --checkpoint-seconds 0"
    subprocess.run(["bash", "-c", f"{command} {redirection}"], check=False, timeout=120)
    assert Run.load(folder).is_done
    assert Run.load(folder).theta_sha256 == train(config, folder.parent / "whole", threads=1).theta_sha256


@pytest.mark.parametrize("kind", ["all closed", "reader gone"])
def test_streams_that_lead_nowhere_do_not_stop_training(kind: str, tmp_path: Path, small: tuple[Config, Path]) -> None:
    trains(tmp_path / "run", small, REDIRECTIONS[kind])


@pytest.mark.prove
def test_no_stream_stops_training(tmp_path: Path, small: tuple[Config, Path]) -> None:
    for i in range(4):
        for kind, redirection in REDIRECTIONS.items():
            trains(tmp_path / f"{kind}{i}", small, redirection)
    note = f"{', '.join(REDIRECTIONS)}: trained to the end with the same bits"
    write_counts("streams", 4 * len(REDIRECTIONS), 0, note)


def test_under_nohup_a_closed_terminal_does_not_stop_training(tmp_path: Path) -> None:
    config = tiny_config(generations=40, horizon=20)
    (tmp_path / "c.toml").write_text(config.to_toml())
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "evergait",
        "train",
        "--config",
        tmp_path / "c.toml",
        "--out",
        tmp_path / "run",
        "--threads",
        "1",
    ]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ) as process:
        assert process.stderr
        assert "starts" in process.stderr.readline()
        os.kill(process.pid, signal.SIGHUP)
        process.communicate(timeout=120)
    assert process.returncode == 0
    assert Run.load(tmp_path / "run").is_done


HOSTILE = "\x1b[2J\x9b31m\u202eevil\x07 :bomb: [red]x[/red] [/]"


def test_words_are_inert() -> None:
    assert inert("plain — Ünïcode θ\n\tтак") == "plain — Ünïcode θ\n\tтак"
    assert not set(inert(HOSTILE)) & set("\x1b\x9b\x07\u202e")
    assert inert_json('"é \U000e0001 \x9b"') == '"é \\udb40\\udc01 \\u009b"'


@pytest.mark.parametrize("command", ["status", "show"])
def test_escape_sequences_from_files_do_not_reach_the_terminal(
    command: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.load(trained)
    cell = {"condition": HOSTILE, "seed": 0, "phases": [], "config": {"stream": list(run.config.stream)}}
    (tmp_path / "st").mkdir()
    write_json(tmp_path / "st" / "study.json", {"title": HOSTILE, "description": "", "cells": [cell]})
    write_json(tmp_path / "st" / "run.json", {**read_json(trained / "run.json"), "store": HOSTILE})
    main(["study", "status", str(tmp_path / "st")] if command == "status" else ["show", str(tmp_path / HOSTILE)])
    printed = capsys.readouterr()
    shown = "".join((printed.out + printed.err).split())  # a narrow table folds it
    assert not set(shown) & set("\x1b\x9b\x07\u202e")
    assert "evil" in shown
    assert command == "status" or (":bomb:" in shown and "[red]x[/red]" in shown)
