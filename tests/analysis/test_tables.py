"""Tables say what the ledgers say, to the last digit, and nothing in a user's names can break out of them."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from evergait.core.table import Table, escape_latex, escape_markdown
from evergait.figures.artifacts import write_artifacts
from evergait.paper.study import all_tables, analyse
from evergait.studies.results import Results

# The independent script: standard library only, straight from the files.


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def curves(study: Path, phase: str) -> tuple[dict[str, Any], dict[str, list[float]]]:
    lines = [json.loads(line) for line in (study / "phases" / phase / "ledger.jsonl").read_text().splitlines()]
    return lines[0], {
        task: [mean(line["evaluations"][task]["returns"]) for line in lines[1:]] for task in lines[0]["tasks"]
    }


def recompute(study: Path) -> dict[tuple[str, str, int], dict[str, float]]:
    """By the final policies of single-task phases over 50 episodes, which `study run` has played."""
    cells = json.loads((study / "study.json").read_text())["cells"]
    played = json.loads((study / "references.json").read_text())["returns"]
    best: dict[str, float] = {}
    randoms: dict[str, list[float]] = {}
    for cell in cells:
        head, _ = curves(study, cell["phases"][0])
        for task, values in head["random_returns"].items():
            randoms.setdefault(task, []).extend(values)
        if cell["condition"] == "single":
            task = head["learning"][0]
            best[task] = max(best.get(task, -1e9), played[cell["phases"][0]])
    zero = {task: mean(values) for task, values in randoms.items()}
    found = {}
    for cell in cells:
        if cell["condition"] != "single":
            stages = [curves(study, phase) for phase in cell["phases"]]
            task = [head["learning"][0] for head, _ in stages]
            last = len(stages) - 1

            def score(task: str, value: float) -> float:
                return (value - zero[task]) / (best[task] - zero[task])

            top = [score(task[i], max(stages[i][1][task[i]])) for i in range(last + 1)]
            own = [score(task[i], stages[i][1][task[i]][-1]) for i in range(last + 1)]
            final = [score(t, stages[last][1][t][-1]) for t in task]
            random = {t: score(t, mean(v)) for t, v in stages[0][0]["random_returns"].items()}
            before = [score(task[i], stages[i - 1][1][task[i]][-1]) for i in range(1, last + 1)]
            found[cell["condition"], cell["order"], cell["seed"]] = {
                "final score": mean(final),
                "avg BWT, from best": mean([final[i] - top[i] for i in range(last)]),
                "avg BWT, from end of phase": mean([final[i] - own[i] for i in range(last)]),
                "avg FWT": mean([before[i - 1] - random[task[i]] for i in range(1, last + 1)]),
                "Int": mean([1 - top[i] for i in range(1, last + 1)]),
            }
    return found


def test_tables_equal_an_independent_script_to_the_last_digit(trained_study: Results) -> None:
    expected = recompute(trained_study.path)
    tables = {table.name: table for table in all_tables(analyse(trained_study))}
    rows = list(csv.DictReader(tables["runs"].to_csv().splitlines()))
    assert len(rows) == len(expected) == 8
    for row in rows:
        for name, value in expected[row["condition"], row["order"], int(row["seed"])].items():
            assert float(row[name]) == pytest.approx(value, rel=1e-12, abs=1e-12), name
            assert f"{float(row[name]):.12g}" == f"{value:.12g}"
    for row in csv.DictReader(tables["summary"].to_csv().splitlines()):
        for name in expected[next(iter(expected))]:
            values = [run[name] for key, run in expected.items() if key[0] == row["condition"]]
            assert float(row[name]) == pytest.approx(mean(values), rel=1e-12)
            assert not row[f"{name}, low"]  # two seeds are too few


def test_extrema_are_those_of_the_ledgers(trained_study: Results) -> None:
    cells = json.loads((trained_study.path / "study.json").read_text())["cells"]
    table = next(table for table in all_tables(analyse(trained_study)) if table.name == "extrema-replay")
    rows = list(csv.DictReader(table.to_csv().splitlines()))
    assert len(rows) == 2 * 3
    for row in rows:
        wanted = [c for c in cells if (c["condition"], c["order"]) == ("replay", row["order"])]
        found = [curves(trained_study.path, c["phases"][int(row["step"]) - 1])[1][f"{row['task']}-v5"] for c in wanted]
        assert float(row["max, ours"]) == pytest.approx(mean([max(curve) for curve in found]), rel=1e-12)
        assert float(row["min, ours"]) == pytest.approx(mean([min(curve) for curve in found]), rel=1e-12)


def test_artifacts_are_the_same_bytes_again_and_simulate_once(trained_study: Results, tmp_path: Path) -> None:
    folders = [trained_study.path / part for part in ("tables", "figures")]
    first = {file.name: file.read_bytes() for folder in folders for file in folder.iterdir()}
    assert {"summary.csv", "summary.md", "summary.tex", "plane.png", "plane.pdf", "curves-naive.png"} <= set(first)
    before = (trained_study.path / "plane.json").stat().st_mtime_ns
    write_artifacts(analyse(trained_study), tmp_path)
    again = {file.name: file.read_bytes() for part in ("tables", "figures") for file in (tmp_path / part).iterdir()}
    assert again == first
    assert (trained_study.path / "plane.json").stat().st_mtime_ns == before


HOSTILE = ["=1+1|x", "a & b_c 50% $x$ \\input{y} <script>", "@cmd", "-2", "néw\nline", "{}~^#"]


def test_names_cannot_break_out() -> None:
    table = Table("t", HOSTILE[1], ("name", "value"), tuple((name, 1.5) for name in HOSTILE))
    cells = [row[0] for row in csv.reader(table.to_csv().splitlines(keepends=True))][1:]
    assert not any(cell[0] in "=+-@" for cell in cells)
    lines = [line for line in table.to_markdown().splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(HOSTILE)
    assert all(line.replace(r"\|", "").count("|") == 3 for line in lines)
    assert "<" not in table.to_markdown()
    assert r"a \& b\_c 50\% \$x\$ \textbackslash{}input\{y\} \textless{}script\textgreater{}" in table.to_latex()
    assert escape_latex("R̂ → x") == r"$\hat{R}$ $\rightarrow$ x"
    assert escape_markdown("a\\b") == "a\\\\b"
