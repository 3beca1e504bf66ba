"""The paper's numbers beside ours: fills in docs/reproduction.md and the README's table from the ledgers in results/.

python benchmarks/reproduction.py [--skip-verify]

Nothing is trained. Every number that is quoted from a final policy is played again in plain Gymnasium, which takes a
minute per phase; with --skip-verify that part of the page stays as it is.
"""

import argparse
import contextlib
import io
import json
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from pages import DOCS, fill_in, markdown, rows, with_interval  # noqa: E402

from evergait.cli import main as evergait  # noqa: E402
from evergait.metrics import Metrics  # noqa: E402
from evergait.names import short  # noqa: E402
from evergait.reference import paper_extrema, paper_single_task  # noqa: E402
from evergait.studies.base import read_study  # noqa: E402
from evergait.studies.cells import study_cells  # noqa: E402
from evergait.studies.claims import claims_table  # noqa: E402
from evergait.studies.curve_figures import draw_curves  # noqa: E402
from evergait.studies.folder import load_results  # noqa: E402
from evergait.studies.gather import Measure, Values, gather, later_interference  # noqa: E402
from evergait.studies.results import Results  # noqa: E402
from evergait.studies.style import SETTINGS, Picture, legend_below, panels  # noqa: E402
from evergait.studies.table import Table  # noqa: E402
from evergait.studies.tables import extrema_tables, runs_table, single_task_table  # noqa: E402
from evergait.studies.tree import Tree  # noqa: E402

STUDY = ROOT / "results" / "paper"
READINGS = ROOT / "results" / "readings"
ORDER = "Hopper > Swimmer > Walker2d"
REPLAY = ("replay-192", ORDER)
DEFAULT_READING = "replay"
HEADLINE = "Best return while the task was learnt → return after the last task (one seed)"
MEANING = {
    "shared": "nothing done against forgetting",
    "replay-192": "replay, 25 % more episodes",
    "distinct": "an output head per task",
}
CONDITIONS = ("single", "shared", "replay-192", "distinct")


def pilot() -> Results:
    """What results/paper has of the one order."""
    all_of_it = load_results(STUDY)
    entries = [
        e for e in all_of_it.entries if e.condition in CONDITIONS and (e.order == ORDER or e.condition == "single")
    ]
    return Results(all_of_it.title, all_of_it.path, tuple(entries), all_of_it.description)


def state(results: Results) -> str:
    """What is trained and what is missing."""
    done = {phase.name for entry in results.entries for phase in entry.run.phases}
    cells = [
        c
        for c in study_cells(read_study("paper").at_scale("full"))
        if c.condition in CONDITIONS[1:] and c.order == ORDER
    ]
    nodes = Tree.build(cells).nodes
    missing = [node.label for name, node in nodes.items() if name not in done]
    words = f"{len(nodes) - len(missing)} of the {len(nodes)} phases of this order are trained."
    return words + (f" Missing: {'; '.join(missing)}." if missing else "")


def curves(results: Results) -> None:
    """The order's curves, a panel per condition."""
    with mpl.rc_context(SETTINGS):
        figure, axes = panels(1, 3, width=3.6, height=2.6)
        for panel, condition in zip(axes, CONDITIONS[1:], strict=True):
            entries = [entry for entry in results.entries if entry.condition == condition]
            panel.set_title(condition)
            panel.set_xlabel("generation")
            panel.set_ylabel("normalised return R̂")
            if entries:
                draw_curves(panel, results, entries)
        legend_below(figure, axes[0])
    drawn = dict(Picture("reproduction", "", figure).files())
    (DOCS / "reproduction.png").write_bytes(drawn["reproduction.png"])


def headline(results: Results) -> str:
    """What each condition reached and what it kept, for the README."""
    tasks, lines = ORDER.split(" > "), []
    for condition in CONDITIONS[1:]:
        for entry in results.entries:
            if entry.condition == condition and entry.run.is_done:
                metrics = results.metrics(entry)
                ledgers = metrics.ledgers
                curves = [ledger.curve(metrics.task(stage)) for stage, ledger in enumerate(ledgers)]
                ends = [float(ledgers[-1].curve(metrics.task(stage))[-1]) for stage in range(len(ledgers))]
                cells = [f"{curve.max():.0f} → {end:.0f}" for curve, end in zip(curves, ends, strict=True)]
                lines.append((MEANING[condition], *cells, metrics.average_backward_transfer()))
    return markdown(Table("headline", HEADLINE, ("", *tasks, "avg BWT"), tuple(lines)))


def verified() -> str:
    """The last evaluation of every phase, played again by `evergait verify`."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        evergait(["verify", str(STUDY), "--json"])
    rows = json.loads(out.getvalue())["rows"]
    agree = sum(row["agrees"] for row in rows)
    lines = tuple((r["phase"], r["task"], r["recorded"], r["gymnasium"], r["largest difference"]) for r in rows)
    columns = ("phase", "task", "recorded mean", "plain Gymnasium", "largest difference of an episode")
    table = Table("verified", f"{agree} of {len(rows)} recorded means agree with plain Gymnasium", columns, lines)
    return markdown(table)


def cost(results: Results) -> str:
    """What the complete study takes, from the steps of the phases that are trained."""
    speed = {row[0]: float(row[3].replace(",", "")) for row in rows("physics.md", "speed") if row[1] == "planar"}
    ledgers = {phase.name: phase.ledger() for entry in results.entries for phase in entry.run.phases}.values()
    seconds = [sum(ledger.total_steps().values()) / speed[ledger.learning[0]] for ledger in ledgers]
    n_phases = len(Tree.build(study_cells(read_study("paper").at_scale("full"))).nodes)
    hours = n_phases * float(np.mean(seconds)) / 3600
    return (
        f"The complete study has {n_phases} phases. The {len(seconds)} trained ones take on average "
        f"{np.mean(seconds) / 60:.0f} minutes each at the speed of two quiet cores, so all of them take about "
        f"{hours:.0f} hours on 2 cores and, as phases run side by side, about {hours / 8:.1f} hours on 16; on 1,000 "
        "some minutes, by the model in [scaling.md](scaling.md), which is extrapolated."
    )


def distance(metrics: Metrics) -> float:
    """How far a run is from the paper's replay on this order: mean |ours - paper| / the paper's R*, over the best
    evaluation of every task learnt so far in every phase, and the worst of every task learnt before it.
    """
    published = {(int(r["step"]), r["task"]): r for r in paper_extrema() if (r["condition"], r["order"]) == REPLAY}
    found = []
    for stage, ledger in enumerate(metrics.ledgers):
        for learnt in range(stage + 1):
            task = metrics.task(learnt)
            paper, curve = published[stage + 1, short(task)], ledger.curve(task) / paper_single_task()[task]
            found.append(abs(curve.max() - float(paper["max_return"]) / paper_single_task()[task]))
            if learnt < stage:
                found.append(abs(curve.min() - float(paper["min_return"]) / paper_single_task()[task]))
    return float(np.mean(found))


def best_return(stage: int) -> Measure:
    """The best evaluation of a stage's own task, as a return."""
    return lambda metrics: float(metrics.ledgers[stage].curve(metrics.task(stage)).max())


def verdict(change: Values) -> str:
    """Whether a reading is nearer to the paper than the default is, on the same seeds."""
    low, high = change.interval or (float("-inf"), float("inf"))
    return "nearer" if high < 0 else "farther" if low > 0 else "no clear difference"


def readings() -> str:
    """One reading at a time: final R̂, BWT and Int over seeds, what each task came to, and how far from the paper."""
    if not (READINGS / "study.json").exists():
        return "Not trained yet: `evergait study run readings --out results/readings`."
    results = load_results(READINGS)
    columns: dict[str, tuple[Measure, int]] = {
        "final R̂": (Metrics.average_performance, 2),
        "avg BWT": (Metrics.average_backward_transfer, 2),
        "Int": (later_interference, 2),
        **{f"best {task}": (best_return(stage), 0) for stage, task in enumerate(ORDER.split(" > "))},
        "distance": (distance, 3),
    }
    table_rows = []
    for condition in results.conditions:
        values = {name: gather(results, condition, measure) for name, (measure, _) in columns.items()}
        if not values["distance"].seeds:
            continue
        cells = [with_interval(values[name], digits) for name, (_, digits) in columns.items()]
        change = values["distance"] - gather(results, DEFAULT_READING, distance)
        is_compared = condition not in (DEFAULT_READING, "naive")
        last = verdict(change) if is_compared else "the default" if condition == DEFAULT_READING else "–"
        table_rows.append((condition, *cells, last, len(values["distance"].seeds)))
    names = ("reading", *columns, "than the default", "seeds")
    caption = "Interquartile mean over seeds with bootstrap 95 % interval"
    return markdown(Table("readings", caption, names, tuple(table_rows)), single_task_table(results))


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skip-verify", action="store_true")
    options = parser.parse_args()
    results = pilot()
    curves(results)
    blocks = {
        "state": state(results),
        "tables": markdown(single_task_table(results), *extrema_tables(results)),
        "runs": markdown(runs_table(results)),
        "claims": markdown(claims_table(results)),
        "cost": cost(results),
        "readings": readings(),
    }
    if not options.skip_verify:
        blocks["verified"] = verified()
    fill_in("reproduction.md", blocks)
    fill_in("../README.md", {"headline": headline(results)})


if __name__ == "__main__":
    main()
