"""`evergait show`: what a run or a study learnt, kept and forgot."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from evergait.analysis.ranking import Row, Standing, learnt_and_end, percent, standings
from evergait.analysis.study import Analysis
from evergait.analysis.tables import MEASURES
from evergait.commands.base import console, print_json, print_table
from evergait.commands.flags import Which, select_run
from evergait.core.table import number
from evergait.paper.claims import study_claims
from evergait.paper.study import analyse
from evergait.scores.metrics import Metrics
from evergait.scores.scale import ScoreOptions
from evergait.studies.folder import is_study, load_results
from evergait.tasks.base import short
from evergait.training.run import Run


@dataclass(frozen=True)
class Show:
    """Show what a run or a study learnt, kept and forgot."""

    folder: tyro.conf.Positional[Path]
    """Folder of a run or a study."""
    which: Annotated[Which, tyro.conf.arg(name="")] = field(default_factory=Which)
    json: bool = False
    """Print JSON, for programs."""
    score: ScoreOptions = field(default_factory=ScoreOptions)

    def run(self) -> int:
        """Print it; a run of a study is measured by the study's R*."""
        references = self.score.references()
        if is_study(self.folder) and self.which == Which():
            analysis = analyse(load_results(self.folder), references)
            print_json(describe_study(analysis)) if self.json else print_study(analysis)
            return 0
        run = select_run(self.folder, self.which)
        metrics = run.scored(references)
        if is_study(self.folder):
            analysis = analyse(load_results(self.folder), references)
            (entry,) = self.which.entries(analysis.results)
            metrics = analysis.metrics(entry)
        print_json(describe(run, metrics)) if self.json else print_run(run, metrics)
        return 0


def describe(run: Run, metrics: Metrics) -> dict[str, Any]:
    """Everything that `show` knows of a run, as plain data."""
    return {
        "done": run.is_done,
        "stream": list(run.config.stream),
        "method": run.config.method.name,
        "seed": run.config.seed,
        "theta_sha256": run.theta_sha256 if run.phases[-1].has_policy else None,
        "phases": [phase.name for phase in run.phases],
        "outdated": list(run.outdated),
        "scale": describe_scale(metrics),
        "stages": [
            {
                "task": metrics.task(i),
                "best_return": metrics.ledgers[i].best(metrics.task(i)),
                "returns": {task: float(metrics.returns(task, i)[-1]) for task in metrics.ledgers[i].tasks},
                "scores": {task: _score(metrics, task, i) for task in metrics.ledgers[i].tasks},
                "interference": _defined(metrics.interference(i)),
            }
            for i in range(metrics.n_stages)
        ],
        "metrics": metrics.summary(),
        "steps": metrics.total_steps(),
    }


def describe_scale(metrics: Metrics) -> dict[str, Any]:
    """What a score means here."""
    scale = metrics.scale
    return {"name": scale.name, "zero": dict(scale.zero), "one": dict(scale.one), "source": scale.source}


def _score(metrics: Metrics, task: str, stage: int) -> float | None:
    return _defined(metrics.final(task, stage)) if metrics.scale.is_share else None


def _defined(value: float) -> float | None:
    return value if np.isfinite(value) else None


def print_run(run: Run, metrics: Metrics) -> None:
    """The run as two tables and a sentence per task."""
    learnt = [task for ledger in metrics.ledgers for task in ledger.learning]
    tasks, name = list(dict.fromkeys([*learnt, *metrics.ledgers[0].tasks])), metrics.scale.name
    rows = []
    for i in range(metrics.n_stages):
        cells = []
        for task in tasks:
            score = _score(metrics, task, i)
            cells.append(number(metrics.returns(task, i)[-1]) + (f" ({number(score)})" if score is not None else ""))
        rows.append(["+".join(map(short, metrics.ledgers[i].learning)), *cells])
    beside = f" (and {name})" if metrics.scale.is_share else ""
    print_table(f"Return{beside} at the end of each phase", ["trained on", *map(short, tasks)], rows)
    console.print(metrics.scale.words, style="dim", markup=False)
    for ledger in metrics.ledgers:
        if n_diverged := ledger.n_diverged:
            words = f"{'+'.join(map(short, ledger.learning))}: {n_diverged:,} episodes of training diverged"
            console.print(f"{words}; a smaller sigma or learning rate may help.", style="yellow", markup=False)
    console.print()
    title = f"Measures, as {name}s" if metrics.scale.is_share else "Measures, as returns"
    print_table(title, ["measure", "value"], [(n.replace("_", " "), v) for n, v in metrics.summary().items()])
    console.print()
    for sentence in sentences(metrics):
        console.print(sentence, markup=False)
    steps = ", ".join(f"{n:,} {kind}" for kind, n in metrics.total_steps().items() if n)
    theta = f"θ: {run.theta_sha256[:16]}…" if run.phases[-1].has_policy else "θ was not kept."
    console.print(f"Environment steps: {steps}. {theta}", style="dim", markup=False)
    if run.outdated:
        console.print(f"Trained with {'; '.join(run.outdated)}: training it again gives other bits.", markup=False)
    if not run.is_done:
        console.print("The run is not finished; the same `train` command goes on with it.", markup=False)


def sentences(metrics: Metrics) -> list[str]:
    """What happened to each task, in words."""
    told = []
    for task, point in learnt_and_end(metrics).items():
        row = Row(task, (point,), metrics.scale.is_share)
        learnt = f"learnt to a return of {number(row.learnt_return)}"
        score = f" ({metrics.scale.name} {number(row.learnt)})" if row.is_share else ""
        left = f", {number(row.end_return)} at the end" if row.was_followed else ""
        kept = f": kept {percent(row.kept)} of it" if row.kept is not None else ""
        told.append(f"{task}: {learnt}{score}{left}{kept}.")
    return told


def describe_study(analysis: Analysis) -> dict[str, Any]:
    """A study as plain data: conditions, best first, with the numbers that its page and tables have."""
    scale = analysis.scale
    return {
        "title": analysis.results.title,
        "scale": {"name": scale.name, "is_share": scale.is_share, "words": analysis.scale_words},
        "conditions": [_describe_standing(analysis, standing) for standing in standings(analysis)],
        "claims": [
            {"number": claim.number, "sentence": claim.sentence, "verdict": claim.verdict}
            for claim in study_claims(analysis)
        ],
    }


def _describe_standing(analysis: Analysis, standing: Standing) -> dict[str, Any]:
    several = any(len(entry.run.ledgers) > 1 for entry in analysis.finished(standing.condition))
    measures = {}
    for name, measure in MEASURES.items() if several else ():
        values = analysis.gather(standing.condition, measure)
        measures[name] = {"estimate": _defined(values.estimate), "interval": values.interval}
    return {
        "condition": standing.condition,
        "explanation": standing.explanation,
        "final": _defined(standing.final.estimate),
        "interval": standing.final.interval,
        "kept": standing.kept,
        "measures": measures,
        "tasks": {
            row.task: {
                "final": _defined(row.final) if row.is_share else None,
                "final_return": row.final_return,
                "learnt": _defined(row.learnt) if row.is_share else None,
                "learnt_return": row.learnt_return,
                "kept": row.kept,
            }
            for row in standing.rows
        },
        "orders": standing.n_orders,
        "seeds": standing.n_seeds,
        "notes": list(standing.notes),
    }


def print_study(analysis: Analysis) -> None:
    """Conditions, best first: what each knows at the end, as score and as returns, and what it kept."""
    ranked, name = standings(analysis), analysis.scale.name
    tasks = list(dict.fromkeys(row.task for standing in ranked for row in standing.rows))
    rows, returns = [], []
    for place, standing in enumerate(ranked, 1):
        found = {row.task: row for row in standing.rows}
        returns.append([standing.condition, *(number(found[t].final_return) if t in found else "" for t in tasks)])
        between = standing.final.interval
        final = number(standing.final.estimate)
        final += f" ± {number((between[1] - between[0]) / 2)}" if between else ""
        kept = percent(standing.kept) if standing.kept is not None else ""
        rows.append([str(place), standing.condition, final, kept, str(standing.n_orders), str(standing.n_seeds)])
    columns = ["", "condition", f"final {name}", "kept", "orders", "seeds"]
    print_table(f"{analysis.results.title}: at the end", columns, rows)
    console.print()
    print_table("Returns at the end", ["condition", *map(short, tasks)], returns)
    console.print(f"{analysis.scale_words} After ±: half of the 95 % interval over seeds.", style="dim", markup=False)
    if analysis.results.outdated:
        words = "; ".join(analysis.results.outdated)
        console.print(f"Trained with {words}: training it again gives other bits.", markup=False)
    for claim in study_claims(analysis):
        if claim.is_measured:
            console.print(f"Claim {claim.number}. {claim.sentence}: {claim.verdict}.", markup=False)
