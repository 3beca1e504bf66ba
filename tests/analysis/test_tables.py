"""Tables say what the ledgers say, to the last digit, and nothing in a user's names can break out of them."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evergait.analysis.roles import find_roles, reference_condition
from evergait.core.table import Table, escape_latex, escape_markdown
from evergait.figures.artifacts import all_tables, write_artifacts
from evergait.paper.claims import study_claims
from evergait.scores.reference import paper_extrema, paper_multi_task, paper_single_task
from evergait.store.ledger import Ledger, Record
from evergait.studies.results import Results

# The independent script: standard library only, straight from the files.


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def curves(study: Path, phase: str) -> tuple[dict[str, Any], dict[str, list[float]]]:
    lines = [json.loads(line) for line in (study / "phases" / phase / "ledger.jsonl").read_text().splitlines()]
    return lines[0], {
        task: [mean(line["evaluations"][task]["returns"]) for line in lines[1:]] for task in lines[0]["tasks"]
    }


def interquartile(values: list[float]) -> float:
    """By repeating every value four times, so that a quarter is a whole number of them."""
    ordered = sorted(v for v in values for _ in range(4))
    return mean(ordered[len(values) : -len(values)])


def recompute(study: Path) -> dict[tuple[str, str, int], dict[str, float]]:
    cells = json.loads((study / "study.json").read_text())["cells"]
    best = {}
    for cell in cells:
        if cell["condition"] == "single":
            head, curve = curves(study, cell["phases"][0])
            best[cell["seed"], head["learning"][0]] = max(curve[head["learning"][0]])
    found = {}
    for cell in cells:
        if cell["condition"] != "single":
            seed = cell["seed"]
            stages = [curves(study, phase) for phase in cell["phases"]]
            task = [head["learning"][0] for head, _ in stages]
            last = len(stages) - 1
            top = [max(stages[i][1][task[i]]) / best[seed, task[i]] for i in range(last + 1)]
            final = [stages[last][1][t][-1] / best[seed, t] for t in task]
            random = {t: mean(v) / best[seed, t] for t, v in stages[0][0]["random_returns"].items()}
            before = [stages[i - 1][1][task[i]][-1] / best[seed, task[i]] for i in range(1, last + 1)]
            found[cell["condition"], cell["order"], seed] = {
                "final R̂": mean(final),
                "avg BWT": mean([final[i] - top[i] for i in range(last)]),
                "avg FWT": mean([before[i - 1] - random[task[i]] for i in range(1, last + 1)]),
                "Int": mean([1 - top[i] for i in range(1, last + 1)]),
            }
    return found


def test_tables_equal_an_independent_script_to_the_last_digit(trained_study: Results) -> None:
    expected = recompute(trained_study.path)
    tables = {table.name: table for table in all_tables(trained_study)}
    rows = list(csv.DictReader(tables["runs"].to_csv().splitlines()))
    assert len(rows) == len(expected) == 8
    for row in rows:
        for name, value in expected[row["condition"], row["order"], int(row["seed"])].items():
            assert float(row[name]) == pytest.approx(value, rel=1e-12, abs=1e-12), name
            assert f"{float(row[name]):.12g}" == f"{value:.12g}"
    for row in csv.DictReader(tables["summary"].to_csv().splitlines()):
        for name in ("final R̂", "avg BWT", "avg FWT", "Int"):
            values = [run[name] for key, run in expected.items() if key[0] == row["condition"]]
            assert float(row[name]) == pytest.approx(interquartile(values), rel=1e-12)
            assert float(row[f"{name}, low"]) <= float(row[name]) <= float(row[f"{name}, high"])


def test_extrema_are_those_of_the_ledgers(trained_study: Results) -> None:
    cells = json.loads((trained_study.path / "study.json").read_text())["cells"]
    table = next(table for table in all_tables(trained_study) if table.name == "extrema-replay")
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
    write_artifacts(trained_study, tmp_path)
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


def ledger(stage: int, learning: tuple[str, ...], returns: dict[str, list[float]]) -> Ledger:
    n = len(next(iter(returns.values())))
    records = tuple(
        Record(10 * i, {t: [v[i]] for t, v in returns.items()}, {t: [1] for t in returns}, {}) for i in range(n)
    )
    return Ledger(stage, learning, tuple(returns), {t: [0.0] for t in returns}, records)


class FakeRun:
    """A run made of ledgers."""

    def __init__(self, config: object, ledgers: tuple[Ledger, ...]) -> None:
        self.config, self.ledgers, self.ledger, self.is_done = config, ledgers, ledgers[-1], True


def paper_results() -> Results:
    """The paper's own numbers as if we had measured them: ledgers whose extrema are its tables."""
    from evergait.studies.base import read_study
    from evergait.studies.cells import study_cells
    from evergait.studies.results import Entry

    published = {(r["condition"], r["order"], int(r["step"]), r["task"]): r for r in paper_extrema()}
    multi = {row["output_head"]: row for row in paper_multi_task()}
    entries = []
    for cell in study_cells(read_study("paper")):
        tasks = cell.config.stream
        ledgers = []
        for i, phase in enumerate(cell.phases):
            learning = tuple(task.name for task in phase.stage.tasks)
            returns = {t: [0.0, 0.0] for t in cell.config.tasks}
            for task in tasks[: i + 1] if len(learning) == 1 else tasks:
                if cell.condition == "single":
                    returns[task] = [0.0, paper_single_task()[task]]
                elif len(learning) > 1:
                    returns[task] = [0.0, float(multi[cell.config.policy.heads][task.removesuffix("-v5")])]
                else:
                    row = published[cell.condition, cell.order, i + 1, task.removesuffix("-v5")]
                    returns[task] = [float(row["max_return"]), float(row["min_return"])]
            ledgers.append(ledger(i, learning, returns))
        entries.append(Entry(cell.condition, cell.order, cell.seed, FakeRun(cell.config, tuple(ledgers))))  # type: ignore[arg-type]
    return Results("paper", Path(), tuple(entries))


def test_every_published_number_is_beside_ours() -> None:
    results = paper_results()
    tables = {table.name: table for table in all_tables(results)}
    n_compared = 0
    for name in ("single-task", "multi-task", "extrema-shared", "extrema-replay-192", "extrema-distinct"):
        for row in tables[name].rows:
            n_compared += 1
            differences = [v for c, v in zip(tables[name].columns, row, strict=True) if "difference" in c]
            assert differences
            assert all(value == 0 for value in differences), (name, row)
    assert n_compared == 3 + 6 + 3 * 36
    assert [row[0] for row in tables["extrema-budgets"].rows[::6]] == ["replay-12", "replay-192", "replay-288"]
    roles = find_roles(results)
    assert roles.middle_replay == "replay-192"
    assert roles.multitask == ("multitask-shared", "multitask-separate")
    twice = (*results.entries, *(replace(e, condition="other") for e in results.entries if e.condition == "replay-12"))
    assert find_roles(replace(results, entries=twice)).replay == roles.replay  # no budget of its own


def test_claims_need_seeds_and_conditions(trained_study: Results) -> None:
    verdicts = [claim.verdict for claim in study_claims(trained_study)]
    assert verdicts[:3] == ["undecided", "undecided", "not measured"]
    assert "2 seeds" in study_claims(trained_study)[0].text
    one = paper_results()
    three = replace(one, entries=tuple(replace(e, seed=s) for s in range(3) for e in one.entries))
    claims = study_claims(three)
    assert [claim.verdict for claim in claims][:5].count("undecided") == 0
    assert claims[0].verdict == "holds"
    assert claims[0].interval is not None
    assert {claim.verdict for claim in study_claims(one)} == {"undecided"}
    assert reference_condition(one.entries[-1].run.config) == ""
