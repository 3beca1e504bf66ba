"""The paper's numbers beside ours: fills in docs/reproduction.md and the README's table from the ledgers in results/.

python scripts/reproduction.py [--skip-verify]

Nothing is trained. The policy at the end of every phase is played again in plain Gymnasium, which takes some seconds
per phase; with --skip-verify that part of the page stays as it is. The study's report goes to docs/reproduction.html.
"""

import argparse
import contextlib
import functools
import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import verdicts  # noqa: E402
from findings import CONDITIONS, LATE, ORDER, Reading, findings, uncut  # noqa: E402
from pages import DOCS, fill_in, markdown, older, rows  # noqa: E402
from verdicts import EPISODES, fresh  # noqa: E402

from evergait.analysis.study import Analysis  # noqa: E402
from evergait.analysis.tables import extrema_tables, runs_table, single_task_table  # noqa: E402
from evergait.analysis.transfer import panel  # noqa: E402
from evergait.cli import main as evergait  # noqa: E402
from evergait.core.table import Table, Value  # noqa: E402
from evergait.figures.drawing import (  # noqa: E402
    SETTINGS,
    Picture,
    draw_panel,
    legend_below,
    panels,
)
from evergait.paper.numbers import distance, published  # noqa: E402
from evergait.paper.study import analyse  # noqa: E402
from evergait.studies.base import read_study  # noqa: E402
from evergait.studies.cells import Tree, study_cells  # noqa: E402
from evergait.studies.folder import load_results, read_cells  # noqa: E402
from evergait.tasks.base import short  # noqa: E402

WORDS, SHOWN = "the paper's words", "the authors' code"
STUDIES = {WORDS: ROOT / "results" / "paper", SHOWN: ROOT / "results" / "authors"}
"""The two readings of the paper; docs/reading.md tells them apart. The report, curves and headline are the second's."""
MEANING = {
    "shared": "nothing done against forgetting",
    "replay-192": "replay of earlier tasks",
    "distinct": "an output head per task",
}
TIE = 0.02
"""A smaller difference of distance does not make a reading the nearer one; docs/reproduction.md said so first."""


def is_asked_for(condition: str, order: str) -> bool:
    """Whether a run belongs to the one order that both readings are compared on, or is a baseline of it."""
    return condition == "single" or order == ORDER


def analyses() -> dict[str, Analysis]:
    """What there is of that order and of single-task training, by reading."""
    found = {reading: load_results(folder) for reading, folder in STUDIES.items()}
    return {
        reading: analyse(
            replace(
                results,
                entries=tuple(e for e in results.entries if is_asked_for(e.condition, e.order) and e.run.is_done),
            )
        )
        for reading, results in found.items()
    }


def in_turn(tables: dict[str, str]) -> str:
    """Tables of both readings, one below the other."""
    return "\n\n".join(f"**{reading[0].upper()}{reading[1:]}**\n\n{text}" for reading, text in tables.items() if text)


def state(reading: str, analysis: Analysis) -> str:
    """What is trained and what is missing."""
    done = {phase.name for entry in load_results(STUDIES[reading]).entries for phase in entry.run.phases}
    cells = read_cells(STUDIES[reading])[1]
    of_order = {name for cell in cells if is_asked_for(cell.condition, cell.order) for name in cell.phases}
    study = Tree.build(study_cells(read_study(STUDIES[reading].name).at_scale("full"))).nodes
    words = f"{len(of_order & done)} of {len(of_order)} phases of this order and of single-task training are trained, "
    return f"{words}{len(done)} of {len(study)} of the whole study.{older(analysis.results)}"


def curves(name: str, table: dict[str, tuple[Analysis, str, str]]) -> None:
    """The order's curves, a column per condition and a row of the table for each label: an analysis, axis, measure."""
    with mpl.rc_context(SETTINGS):
        figure, axes = panels(len(table), len(CONDITIONS), width=3.6, height=2.6)
        for i, (label, (analysis, axis, measure)) in enumerate(table.items()):
            row = axes[i * len(CONDITIONS) : (i + 1) * len(CONDITIONS)]
            groups = {group.condition: group for group in analysis.groups}
            for at, condition in zip(row, CONDITIONS, strict=True):
                at.set_title(f"{condition}: {label}" if len(table) > 1 else condition)
                draw_panel(at, panel(groups[condition]), measure)
                at.set_ylabel(axis)
            low, high = min(at.get_ylim()[0] for at in row), max(at.get_ylim()[1] for at in row)
            for at in row:
                at.set_ylim(low, high)
        legend_below(figure)
    (DOCS / f"{name}.png").write_bytes(dict(Picture(name, "", figure).files())[f"{name}.png"])


def kept(found: dict[str, Analysis]) -> Table:
    """What every task came to in its own phase, and what was left of it in the last one: the paper's, then ours."""
    table_rows: list[tuple[Value, ...]] = []
    for condition in CONDITIONS:
        paper, last = published(condition, ORDER), len(ORDER.split(" > ")) - 1
        runs = [(analysis, analysis.finished(condition)[0]) for analysis in found.values()]
        for stage in range(last + 1):
            task = runs[0][0].metrics(runs[0][1]).task(stage)
            ledgers = [entry.run.ledgers for _, entry in runs]
            best = [float(ledger[stage].curve(task).max()) for ledger in ledgers]
            late = [ledger[last].curve(task) for ledger in ledgers]
            spans = [paper[last, task], *((float(curve.min()), float(curve.max())) for curve in late)]
            ranges = [f"{low:.0f} to {high:.0f}" for low, high in spans]
            ends = [float(np.median(curve[-LATE:])) for curve in late] + [fresh(entry.run, task) for _, entry in runs]
            table_rows.append((condition, short(task), paper[stage, task][1], *best, *ranges, *ends))
    names = ("words", "code")
    columns = (
        *("condition", "task", "best, paper", *(f"best, {name}" for name in names)),
        *(f"last phase, {name}" for name in ("paper", *names)),
        *(f"median of the last {LATE}, {name}" for name in names),
        *(f"{EPISODES} fresh episodes, {name}" for name in names),
    )
    caption = "Best return while a task was learnt, and what was left of it in the last phase"
    return Table("kept", caption, columns, tuple(table_rows), 0)


def headline(analysis: Analysis) -> str:
    """What each condition reached and what it kept, for the README."""
    lines: list[tuple[Value, ...]] = []
    for condition, meaning in MEANING.items():
        for entry in analysis.finished(condition)[:1]:
            metrics = analysis.metrics(entry)
            tasks = [metrics.task(stage) for stage in range(metrics.n_stages)]
            best = [ledger.curve(task).max() for ledger, task in zip(metrics.ledgers, tasks, strict=True)]
            end = [fresh(entry.run, task) for task in tasks]
            lines.append((meaning, *(f"{b:.0f} → {e:.0f}" for b, e in zip(best, end, strict=True))))
    caption = f"Return, best evaluation while learnt → {EPISODES} fresh episodes at the end of the stream (one seed)"
    return markdown(Table("headline", caption, ("", *ORDER.split(" > ")), tuple(lines)))


def verified() -> str:
    """The last evaluation of every phase, played again by `evergait verify`: a row per study and condition."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for reading, folder in {**STUDIES, "the authors' code, a third": verdicts.FOLDER}.items():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            evergait(["verify", str(folder), "--json"])
        for row in json.loads(out.getvalue())["rows"]:
            found.setdefault((reading, row["phase"].split(", ")[0]), []).append(row)
    table_rows: list[tuple[Value, ...]] = []
    for names, means in found.items():
        gaps = [abs(row["recorded"] - row["gymnasium"]) for row in means]
        shares = [gap / row["allowed"] for gap, row in zip(gaps, means, strict=True)]
        table_rows.append((*names, len(means), sum(row["agrees"] for row in means), max(gaps), max(shares)))
    n_agree, n = (sum(row[i] for row in table_rows) for i in (3, 2))  # type: ignore[misc]
    columns = ("reading", "condition", "means", "agree", "largest difference", "as a share of what is allowed")
    caption = f"{n_agree} of {n} recorded means agree with plain Gymnasium"
    return markdown(Table("verified", caption, columns, tuple(table_rows)))


def cost() -> str:
    """What the complete study takes, from the steps of the phases that are trained."""
    speed = {row[0]: float(row[3].replace(",", "")) for row in rows("physics.md", "speed") if row[1] == "planar"}
    entries = load_results(STUDIES[SHOWN]).entries
    ledgers = {phase.name: phase.ledger() for entry in entries for phase in entry.run.phases}.values()
    seconds = [sum(ledger.total_steps().values()) / speed[ledger.learning[0]] for ledger in ledgers]
    n_phases = len(Tree.build(study_cells(read_study("authors").at_scale("full"))).nodes)
    hours = n_phases * float(np.mean(seconds)) / 3600
    return (
        f"The complete study has {n_phases} phases. By their environment steps and the planar engine's measured speed, "
        f"the {len(seconds)} trained ones would take {min(seconds) / 60:.0f} to {max(seconds) / 60:.0f} minutes each "
        f"on two idle cores, {np.mean(seconds) / 60:.0f} on average, and the complete study about {hours:.0f} hours. "
        f"With `--jobs 8` on 16 cores it would take {hours / 8:.1f} hours if 8 phases always ran side by side, and on "
        "1,000 cores some minutes by the model in [scaling.md](scaling.md). None of these times was measured."
    )


def nearer(found: dict[str, Analysis]) -> str:
    """The two readings, condition by condition, by their distance to the paper, and which one is nearer."""
    lines: list[tuple[str, float, float, float, float]] = []
    for condition in CONDITIONS:
        measure = functools.partial(distance, paper=published(condition, ORDER))
        words, code = (analysis.gather(condition, measure, [ORDER]).estimate for analysis in found.values())
        whole = found[SHOWN].gather(condition, lambda metrics, m=measure: m(uncut(metrics)), [ORDER]).estimate  # type: ignore[misc]
        lines.append((condition, words, code, code - words, whole))
    mean = tuple(float(np.mean([line[i] for line in lines])) for i in range(1, 5))
    columns = ("condition", *found, "change", f"{SHOWN}, evaluations that were not cut")
    table = markdown(Table("nearer", "Distance to the paper's numbers", columns, (*lines, ("mean", *mean)), 3))
    change = mean[2]
    verdict = "a tie" if abs(change) < TIE else f"{tuple(found)[change < 0]} is nearer"
    return f"{table}\n\nBy the rule: {verdict}."


def parts() -> dict[str, dict[str, str]]:
    """Every part that comes from ledgers alone, by page."""
    found = analyses()
    blocks = {
        "state": in_turn({reading: state(reading, analysis) for reading, analysis in found.items()}),
        "nearer": nearer(found),
        "findings": findings(Reading(found[WORDS]), Reading(found[SHOWN]), fresh),
        "tables": in_turn({r: markdown(single_task_table(a), *extrema_tables(a)) for r, a in found.items()}),
        "runs": in_turn({r: f"{markdown(runs_table(a))}\n\n{a.scale_words}" for r, a in found.items()}),
        "cost": cost(),
        **verdicts.parts(found[SHOWN]),
    }
    readme = {"headline": headline(found[SHOWN]), "claims": blocks["in short"]}
    return {"reproduction.md": blocks, "../README.md": readme}


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skip-verify", action="store_true", help="leave what takes policies and minutes as it is")
    options = parser.parse_args()
    verdicts.draw()
    found = analyses()
    curves("reproduction", {reading: (analysis, "R̂", "score") for reading, analysis in found.items()})
    for page, blocks in parts().items():
        fill_in(page, blocks)
    if not options.skip_verify:
        fill_in("reproduction.md", {"kept": markdown(kept(found)), "verified": verified()})
    with contextlib.chdir(ROOT):  # the page names the folder as it is named here
        evergait(["report", str(STUDIES[SHOWN].relative_to(ROOT)), "--output", str(DOCS / "reproduction.html")])


if __name__ == "__main__":
    main()
