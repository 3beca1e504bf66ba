"""Frames: every evaluation episode of the ledgers is a row, whatever reads it."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest

import evergait as eg
from evergait.cli import main
from evergait.store.ledger import Ledger, Record
from evergait.studies.results import Results
from evergait.training.frame import KINDS, make_frame

Row = tuple[object, ...]


def rows_of(phases: Path, names: list[str], condition: str, order: str, seed: int) -> list[Row]:
    """What the files say, read without evergait."""
    rows: list[Row] = []
    for stage, name in enumerate(names):
        _, *lines = (phases / name / "ledger.jsonl").read_text().splitlines()
        steps = 0
        for record in map(json.loads, lines):
            steps += sum(n for kind, n in record["steps"].items() if kind != "evaluation")
            for task, found in sorted(record["evaluations"].items()):
                for episode, (value, length) in enumerate(zip(found["returns"], found["lengths"], strict=True)):
                    place = (condition, order, seed, stage, record["generation"], steps, task, episode)
                    rows.append((*place, value, length))
    return rows


def test_a_run_in_pandas(trained: Path) -> None:
    table = pd.DataFrame(eg.load(trained).frame())
    assert list(table.columns) == list(KINDS)
    names = json.loads((trained / "run.json").read_text())["phases"]
    expected = rows_of(trained / "phases", names, "replay", "InvertedPendulum > Reacher", 0)
    assert sorted(table.itertuples(index=False, name=None)) == sorted(expected)
    last = table[(table.stage == 1) & (table.generation == 4)].groupby("task")["return"].mean()
    run = eg.load(trained)
    assert isinstance(run, eg.Run)
    assert last["Reacher-v5"] == pytest.approx(run.ledger.records[-1].mean("Reacher-v5"))


def test_a_study_in_pandas(trained_study: Results) -> None:
    path = trained_study.path
    table = pd.DataFrame(trained_study.frame())
    expected: list[Row] = []
    for cell in json.loads((path / "study.json").read_text())["cells"]:
        expected += rows_of(path / "phases", cell["phases"], cell["condition"], cell["order"], cell["seed"])
    assert sorted(table.itertuples(index=False, name=None)) == sorted(expected)
    assert set(table.condition) == {"single", "naive", "replay"}


def test_files(trained_study: Results, tmp_path: Path) -> None:
    out = {"--csv": tmp_path / "table.csv", "--parquet": tmp_path / "table.parquet"}
    flags = [str(word) for pair in out.items() for word in pair]
    assert main(["export", str(trained_study.path), *flags]) == 0
    frame = pd.DataFrame(trained_study.frame())
    pd.testing.assert_frame_equal(parquet.read_table(out["--parquet"]).to_pandas(), frame, check_dtype=False)
    with out["--csv"].open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["return"]) for row in rows] == frame["return"].tolist()
    assert [row["order"] for row in rows] == frame["order"].tolist()
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", "table.parquet"}
    assert main(["export", str(trained_study.path), "--seed", "1", "--csv", str(out["--csv"])]) == 0
    assert set(pd.read_csv(out["--csv"])["seed"]) == {1}


def test_a_return_that_is_no_number_has_no_value(tmp_path: Path) -> None:
    record = Record(0, {'a, "b"': [1.5, float("nan")]}, {'a, "b"': [3, 4]}, {"training": 7, "evaluation": 9})
    frame = make_frame([("c", "o", 2**64 - 1, [Ledger(0, ('a, "b"',), ('a, "b"',), records=(record,))])])
    assert np.isnan(frame["return"][1])
    frame.write_csv(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == list(KINDS)
    assert rows[1:] == [
        ["c", "o", str(2**64 - 1), "0", "0", "7", 'a, "b"', "0", "1.5", "3"],
        ["c", "o", str(2**64 - 1), "0", "0", "7", 'a, "b"', "1", "", "4"],
    ]
    frame.write_parquet(tmp_path / "t.parquet")
    assert parquet.read_table(tmp_path / "t.parquet")["seed"].to_pylist() == [2**64 - 1] * 2


def test_mistakes_are_told(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = eg.load(trained).frame()
    assert main(["export", str(trained), "--csv", str(tmp_path / "no" / "t.csv")]) == 2
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(eg.EvergaitError, match=r"parquet: needs pyarrow; .* 'evergait\[frame\]'"):
        frame.write_parquet(tmp_path / "t.parquet")
    both = ["--csv", str(tmp_path / "t.csv"), "--parquet", str(tmp_path / "t.parquet")]
    assert main(["export", str(trained), *both]) == 2
    assert not list(tmp_path.iterdir())
