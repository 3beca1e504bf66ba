"""Standard streams that are closed, full or lose their reader stop no training; foreign words command no terminal."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from faults import write_counts
from small import tiny_config

from evergait.cli import main
from evergait.config import Config
from evergait.core.files import read_json, write_json
from evergait.core.terminal import inert, inert_json
from evergait.training.run import Run, train

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
    config = tiny_config(generations=40)
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
