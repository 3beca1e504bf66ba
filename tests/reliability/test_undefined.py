"""A return that is no number is no value: not in a measure, not in R*, not in JSON, not in a choice."""

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from faults import write_counts

from evergait.commands.verify import compare
from evergait.core.errors import EvergaitError
from evergait.core.files import read_json, sha256, write_json
from evergait.store.ledger import Ledger, Record, header_line, parse_ledger, record_line
from evergait.training.run import Run

NAN = math.nan


def undefine(run: Path, out: Path, stage: int, which: slice) -> Path:
    """A copy of a run in which some evaluations of a stage's own task have no value."""
    shutil.copytree(run, out)
    phase = Run.load(out).phases[stage]
    ledger = phase.ledger()
    task, chosen = ledger.learning[0], ledger.records[which]
    records = [
        replace(r, returns={**r.returns, task: [NAN, *r.returns[task][1:]]}) if r in chosen else r
        for r in ledger.records
    ]
    (phase.path / "ledger.jsonl").write_bytes(b"".join([header_line(ledger), *map(record_line, records)]))
    progress = read_json(phase.path / "progress.json")
    progress["sha256"]["ledger.jsonl"] = sha256((phase.path / "ledger.jsonl").read_bytes())
    write_json(phase.path / "progress.json", progress)
    return out


WHICH = {"first": slice(0, 1), "last": slice(-1, None), "all": slice(None)}


def strict(text: str) -> object:
    """JSON as everyone else reads it."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


Ask = Callable[..., tuple[int, str]]


def survives(which: str, stage: int, trained: Path, folder: Path, ask: Ask) -> int:
    """No command takes it for a value; how many were asked."""
    out = undefine(trained, folder / "run", stage, WHICH[which])
    run = Run.load(out)
    task = run.ledgers[stage].learning[0]
    code, text = ask("show", out, "--json")
    assert code == 0
    shown = strict(text)
    assert isinstance(shown, dict)
    best = shown["stages"][stage]["best_return"]
    values = run.ledgers[stage].curve(task)
    assert best is None if which == "all" else best == np.nanmax(values)
    if which != "first":
        assert shown["stages"][stage]["returns"][task] is None
    assert ask("show", out)[0] == 0
    code, text = ask("verify", out, "--episodes", 1, "--json")
    strict(text[text.index("{") : text.rindex("}") + 1])
    assert ask("report", out, "--output", folder / "page.html")[0] == 0
    return 4


@pytest.mark.parametrize(("which", "stage"), [("first", 0), ("last", 1), ("all", 0)])
def test_no_command_takes_it_for_a_value(which: str, stage: int, trained: Path, tmp_path: Path, ask: Ask) -> None:
    survives(which, stage, trained, tmp_path, ask)


def test_a_ledger_keeps_what_is_undefined_and_counts_it() -> None:
    ledger = Ledger(0, ("a",), ("a",), {"a": [1.0, NAN]})
    record = Record(0, {"a": [1.0, NAN, math.inf]}, {"a": [1, 1, 1]}, {})
    content = header_line(ledger) + record_line(record)
    assert b'"returns":[1.0,null,null]' in content
    assert b'"undefined":2' in content
    read = parse_ledger(content, Path("l"))
    assert np.isnan(read.records[0].returns["a"]).tolist() == [False, True, True]
    assert np.isnan(read.random_returns["a"]).tolist() == [False, True]
    for wrong in (content.replace(b'"undefined":2', b'"undefined":1'), content.replace(b',"undefined":2', b"")):
        with pytest.raises(EvergaitError, match="the count of undefined returns"):
            parse_ledger(wrong, Path("l"))


def test_an_undefined_episode_verifies_nothing() -> None:
    row = compare(np.array([1.0, NAN]), np.array([1.0, 7.0]), False, 0.01)
    assert (row["agrees"], row["equal episodes"], row["undefined episodes"]) == (True, "1/1", 1)
    assert not compare(np.array([1.0, 2.0]), np.array([1.0, NAN]), False, 0.01)["agrees"]
    assert not compare(np.array([1.0, 2.0]), np.array([1.0, NAN]), True, 0.01)["agrees"]


@pytest.mark.prove
def test_no_undefined_evaluation_counts(trained: Path, tmp_path: Path, ask: Ask) -> None:
    cases = [(which, stage) for which in WHICH for stage in (0, 1)]
    n_asked = sum(survives(*case, trained, tmp_path / f"{i}", ask) for i, case in enumerate(cases))
    write_counts("undefined", n_asked, 0, f"{len(cases)} runs with null in a ledger, under show, verify and report")
