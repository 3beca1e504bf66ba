"""The paper's numbers beside ours: fills in docs/reproduction.md and the README's table from the ledgers in results/.

python scripts/reproduction.py [--skip-verify]

Nothing is trained. The policy at the end of every phase is played again in plain Gymnasium, which takes a minute per
phase; with --skip-verify that part of the page stays as it is. The study's report goes to docs/reproduction.html.
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

from pages import DOCS, fill_in, markdown, rows, with_interval  # noqa: E402

from evergait.analysis.groups import Measure, Values  # noqa: E402
from evergait.analysis.study import Analysis  # noqa: E402
from evergait.analysis.tables import extrema_tables, runs_table, single_task_table  # noqa: E402
from evergait.analysis.transfer import panel  # noqa: E402
from evergait.cli import main as evergait  # noqa: E402
from evergait.config import Evaluation  # noqa: E402
from evergait.core.table import Table, Value  # noqa: E402
from evergait.figures.drawing import (  # noqa: E402
    SETTINGS,
    Picture,
    draw_panel,
    legend_below,
    panels,
)
from evergait.paper.claims import claims_table  # noqa: E402
from evergait.paper.numbers import (  # noqa: E402
    SINGLE_TASK,
    published,
    worst_share,
)
from evergait.paper.numbers import distance as distance_to  # noqa: E402
from evergait.paper.study import analyse, hat_scale  # noqa: E402
from evergait.scores.metrics import Metrics  # noqa: E402
from evergait.studies.base import read_study  # noqa: E402
from evergait.studies.cells import Tree, study_cells  # noqa: E402
from evergait.studies.folder import is_study, load_results, read_cells  # noqa: E402
from evergait.studies.results import phase_label  # noqa: E402
from evergait.tasks.base import short  # noqa: E402
from evergait.training.evaluate import Evaluator  # noqa: E402
from evergait.training.run import Run  # noqa: E402
from evergait.workers import LocalWorkers  # noqa: E402

STUDY = ROOT / "results" / "paper"
AUTHORS = ROOT / "results" / "authors"
READINGS = ROOT / "results" / "readings"
ORDER = "Hopper > Swimmer > Walker2d"
REPLAY = "replay-192"
DEFAULT_READING = "replay"
HEADLINE = "Best return while the task was learnt → median of the last ten evaluations of the stream (one seed)"
LATE, FRESH = 10, 50
"""Evaluations at the end that count together, for θ still moves; fresh episodes of the last θ."""
MEANING = {
    "shared": "nothing done against forgetting",
    "replay-192": "replay, 25 % more episodes",
    "distinct": "an output head per task",
}
CONDITIONS = tuple(MEANING)


def is_asked_for(condition: str, order: str) -> bool:
    """Whether a run belongs to the pilot."""
    return condition == "single" or (condition in CONDITIONS and order == ORDER)


def pilot() -> Analysis:
    """What results/paper has of the one order, and its single-task baselines."""
    found = load_results(STUDY)
    return analyse(replace(found, entries=tuple(e for e in found.entries if is_asked_for(e.condition, e.order))))


def state(analysis: Analysis) -> str:
    """What is trained and what is missing."""
    done = {phase.name for entry in analysis.results.entries for phase in entry.run.phases}
    nodes: dict[str, str] = {}
    for cell in read_cells(STUDY)[1]:
        if is_asked_for(cell.condition, cell.order):
            for i, name in enumerate(cell.phases):
                nodes.setdefault(name, phase_label(cell.condition, cell.order, cell.seed, i, len(cell.phases)))
    missing = [label for name, label in nodes.items() if name not in done]
    words = f"{len(nodes) - len(missing)} of {len(nodes)} phases are trained."
    words += f" Missing: {'; '.join(missing)}." if missing else ""
    return f"{words}{older(analysis)}"


def older(analysis: Analysis) -> str:
    """A sentence on results that today's parts would not give to the bit."""
    parts = "; ".join(analysis.results.outdated)
    words = f" They were trained with an older version of a part ({parts}): training them again gives other bits."
    return words if parts else ""


def curves(analysis: Analysis, name: str, kinds: dict[str, str]) -> None:
    """The order's curves, a column per condition and a row per kind."""
    groups = [group for name in CONDITIONS for group in analysis.groups if group.condition == name]
    with mpl.rc_context(SETTINGS):
        figure, axes = panels(len(kinds), len(groups), width=3.6, height=2.6)
        for i, (label, measure) in enumerate(kinds.items()):
            row = axes[i * len(groups) : (i + 1) * len(groups)]
            for at, group in zip(row, groups, strict=True):
                at.set_title(group.condition)
                draw_panel(at, panel(group), measure)
                at.set_ylabel(label)
            low, high = min(at.get_ylim()[0] for at in row), max(at.get_ylim()[1] for at in row)
            for at in row:
                at.set_ylim(low, high)
        legend_below(figure, axes[0])
    (DOCS / f"{name}.png").write_bytes(dict(Picture(name, "", figure).files())[f"{name}.png"])


def kept(analysis: Analysis) -> Table:
    """What every task came to in its own phase, and what was left of it in the last one."""
    table_rows: list[tuple[Value, ...]] = []
    for condition in CONDITIONS:
        for entry in analysis.finished(condition):
            metrics, paper = analysis.metrics(entry), published(condition, ORDER)
            last = metrics.n_stages - 1
            for stage in range(metrics.n_stages):
                task = metrics.task(stage)
                own, end = paper[stage, task], paper[last, task]
                learning, late = (metrics.ledgers[s].curve(task) for s in (stage, last))
                ranges = (f"{end[0]:.0f} to {end[1]:.0f}", f"{late.min():.0f} to {late.max():.0f}")
                numbers = (
                    own[1],
                    float(learning.max()),
                    *ranges,
                    float(np.median(late[-LATE:])),
                    fresh(entry.run, task),
                )
                table_rows.append((condition, short(task), *numbers))
    columns = (
        "condition",
        "task",
        "best, paper",
        "best, ours",
        "last phase, paper",
        "last phase, ours",
        f"median of the last {LATE}",
        f"{FRESH} fresh episodes",
    )
    return Table(
        "kept", "Best return while a task was learnt, and its range in the last phase", columns, tuple(table_rows), 0
    )


def fresh(run: Run, name: str) -> float:
    """Mean return of the last θ over episodes with seeds of their own."""
    state, workers = run.state(-1), LocalWorkers(1)
    task = next(task for task in run.policy.tasks if task.name == name)
    evaluator = Evaluator(run.policy, {task: "planar"}, workers, Evaluation(), seed=run.config.seed + 1)
    return float(workers.run("planar", evaluator.episodes(state.theta, task, state.statistics, FRESH)).returns.mean())


def headline(analysis: Analysis) -> str:
    """What each condition reached and what it kept, for the README."""
    lines: list[tuple[Value, ...]] = []
    for condition, meaning in MEANING.items():
        for entry in analysis.finished(condition)[:1]:
            metrics = analysis.metrics(entry)
            tasks = [metrics.task(stage) for stage in range(metrics.n_stages)]
            best = [ledger.curve(task).max() for ledger, task in zip(metrics.ledgers, tasks, strict=True)]
            end = [np.median(metrics.ledgers[-1].curve(task)[-LATE:]) for task in tasks]
            lines.append((meaning, *(f"{b:.0f} → {e:.0f}" for b, e in zip(best, end, strict=True))))
    table = markdown(Table("headline", HEADLINE, ("", *ORDER.split(" > ")), tuple(lines)))
    parts = "; ".join(analysis.results.outdated)
    words = f"Trained with an older version of a part ({parts}; [changelog](CHANGELOG.md))."
    return f"{table}\n\n{words}" if parts else table


def verified() -> str:
    """The last evaluation of every phase, played again by `evergait verify`."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        evergait(["verify", str(STUDY), "--json"])
    found = json.loads(out.getvalue())["rows"]
    names = ("phase", "task", "recorded", "gymnasium", "allowed", "largest difference")
    columns = (*names[:2], "recorded mean", "plain Gymnasium", "allowed difference", "largest difference of an episode")
    caption = f"{sum(row['agrees'] for row in found)} of {len(found)} recorded means agree with plain Gymnasium"
    return markdown(Table("verified", caption, columns, tuple(tuple(row[name] for name in names) for row in found)))


def cost(analysis: Analysis) -> str:
    """What the complete study takes, from the steps of the phases that are trained."""
    speed = {row[0]: float(row[3].replace(",", "")) for row in rows("physics.md", "speed") if row[1] == "planar"}
    ledgers = {phase.name: phase.ledger() for entry in analysis.results.entries for phase in entry.run.phases}.values()
    seconds = [sum(ledger.total_steps().values()) / speed[ledger.learning[0]] for ledger in ledgers]
    n_phases = len(Tree.build(study_cells(read_study("paper").at_scale("full"))).nodes)
    hours = n_phases * float(np.mean(seconds)) / 3600
    return (
        f"The complete study has {n_phases} phases. By their environment steps and the planar engine's measured speed, "
        f"the {len(seconds)} trained ones would take {min(seconds) / 60:.0f} to {max(seconds) / 60:.0f} minutes each "
        f"on two idle cores, {np.mean(seconds) / 60:.0f} on average, and the complete study about {hours:.0f} hours. "
        f"With `--jobs 8` on 16 cores it would take {hours / 8:.1f} hours if 8 phases always ran side by side, and on "
        "1,000 cores some minutes by the model in [scaling.md](scaling.md). None of these times was measured."
    )


def distance(metrics: Metrics) -> float:
    """How far a run is from the paper's replay."""
    return distance_to(metrics, published(REPLAY, ORDER))


def nearer() -> str:
    """The two readings at full scale, condition by condition, by their distance to the paper."""
    entries = load_results(AUTHORS).entries if is_study(AUTHORS) else ()
    trained = {e.condition for e in entries if e.order == ORDER and len(e.run.phases) == len(e.run.config.stages())}
    if not trained >= set(CONDITIONS):
        command = "evergait study run authors --scale full --only 'H>S>W' --out results/authors"
        return f"The authors' reading is not trained to the end of this order yet: `{command}`."
    found: dict[str, list[float]] = {}
    for folder in (STUDY, AUTHORS):
        analysis = analyse(load_results(folder))
        for condition in CONDITIONS:
            paper = published(condition, ORDER)
            values = analysis.gather(condition, functools.partial(distance_to, paper=paper), [ORDER])
            found.setdefault(condition, []).append(values.estimate)
    lines = [(name, *pair, pair[1] - pair[0]) for name, pair in found.items()]
    mean = tuple(np.mean([line[1:] for line in lines], axis=0).tolist())  # type: ignore[arg-type]
    columns = ("condition", "the paper's words", "the authors' code", "change")
    return markdown(Table("nearer", "Distance to the paper's numbers", columns, (*lines, ("mean", *mean)), 3))  # type: ignore[arg-type]


def keeps(metrics: Metrics) -> float:
    """The worst share in the last phase, averaged over the tasks before it."""
    last = metrics.n_stages - 1
    return float(np.mean([worst_share(metrics, learnt, last) for learnt in range(last)]))


def by_the_paper(measure: Measure) -> Measure:
    """A measure by the paper's R*: at this scale our own is at times that of a Swimmer that has not learnt to swim."""
    best = SINGLE_TASK
    return lambda metrics: measure(Metrics(metrics.ledgers, hat_scale("the paper", best, tuple(best))))


def best_return(stage: int) -> Measure:
    """The best evaluation of a stage's own task, as a return."""
    return lambda metrics: float(metrics.ledgers[stage].curve(metrics.task(stage)).max())


def verdict(change: Values) -> str:
    """Whether a reading is nearer to the paper than the default is, seed by seed."""
    n_nearer, n = int((change.values < 0).sum()), change.values.size
    return f"nearer on {n_nearer} of {n}"


def readings() -> str:
    """One reading at a time: final R̂, BWT and Int over seeds, what each task came to, and how far from the paper."""
    if not is_study(READINGS):
        return "Not trained yet: `evergait study run readings --out results/readings`."
    analysis = analyse(load_results(READINGS))
    columns: dict[str, tuple[Measure, int]] = {
        "final R̂": (by_the_paper(Metrics.average_performance), 2),
        "avg BWT": (by_the_paper(Metrics.average_backward_transfer), 2),
        "Int": (by_the_paper(Metrics.later_interference), 2),
        **{f"best {task}": (best_return(stage), 0) for stage, task in enumerate(ORDER.split(" > "))},
        "kept": (keeps, 2),
        "distance": (distance, 2),
    }
    table_rows: list[tuple[Value, ...]] = []
    for condition in analysis.results.conditions:
        if not analysis.finished(condition):
            continue
        cells = [with_interval(analysis.gather(condition, measure), digits) for measure, digits in columns.values()]
        change = analysis.gather(condition, distance) - analysis.gather(DEFAULT_READING, distance)
        is_compared = condition not in (DEFAULT_READING, "naive")
        against = (with_interval(change, 2), verdict(change)) if is_compared else ("–", "–")
        table_rows.append((condition, *cells, *against))
    paper = published(REPLAY, ORDER)
    tasks = [f"{task}-v5" for task in ORDER.split(" > ")]
    best = [paper[stage, task][1] for stage, task in enumerate(tasks)]
    shares = [paper[2, task][0] / best[stage] for stage, task in enumerate(tasks[:2])]
    table_rows.append(
        ("the paper's replay", *["–"] * 3, *(f"{b:.0f}" for b in best), f"{np.mean(shares):.2f}", *["–"] * 3)
    )
    names = ("reading", *columns, "change of distance", "seeds")
    n_seeds = len(analysis.gather(DEFAULT_READING, distance).seeds)
    caption = f"Mean over {n_seeds} seeds and, in brackets, its 95 % interval (Student's t)"
    return markdown(Table("readings", caption, names, tuple(table_rows)), single_task_table(analysis))


def parts() -> dict[str, dict[str, str]]:
    """Every part that comes from ledgers alone, by page."""
    analysis = pilot()
    blocks = {
        "state": state(analysis),
        "tables": markdown(single_task_table(analysis), *extrema_tables(analysis)),
        "runs": f"{markdown(runs_table(analysis))}\n\n{analysis.scale_words}",
        "claims": markdown(claims_table(analysis)),
        "cost": cost(analysis),
        "readings": readings(),
        "nearer": nearer(),
    }
    return {"reproduction.md": blocks, "../README.md": {"headline": headline(analysis)}}


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skip-verify", action="store_true", help="leave what takes policies and minutes as it is")
    options = parser.parse_args()
    analysis = pilot()
    curves(analysis, "reproduction", {"R̂": "score"})
    curves(analysis, "reproduction-transfer", {"BWT": "backward", "FWT": "forward"})
    for page, blocks in parts().items():
        fill_in(page, blocks)
    if not options.skip_verify:
        fill_in("reproduction.md", {"kept": markdown(kept(analysis)), "verified": verified()})
    with contextlib.chdir(ROOT):  # the page names the folder as it is named here
        evergait(["report", str(STUDY.relative_to(ROOT)), "--output", str(DOCS / "reproduction.html")])


if __name__ == "__main__":
    main()
