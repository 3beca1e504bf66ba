"""`evergait show`: what a run learnt, kept and forgot."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from evergait.commands.base import console, print_json, print_table
from evergait.commands.selection import Which, select_run
from evergait.scores.metrics import Metrics
from evergait.training.run import Run


@dataclass(frozen=True)
class Show:
    """Show what a run learnt, kept and forgot."""

    folder: tyro.conf.Positional[Path]
    """Folder of a run or a study."""
    which: Annotated[Which, tyro.conf.arg(name="")] = field(default_factory=Which)
    json: bool = False
    """Print JSON, for programs."""

    def run(self) -> int:
        """Print a run."""
        run = select_run(self.folder, self.which)
        if self.json:
            print_json(describe(run))
        else:
            print_run(run)
        return 0


def describe(run: Run) -> dict[str, Any]:
    """Everything that `show` knows, as plain data."""
    metrics = run.metrics
    stages = range(metrics.n_stages)
    return {
        "done": run.is_done,
        "stream": list(run.config.stream),
        "method": run.config.method.name,
        "seed": run.config.seed,
        "theta_sha256": run.theta_sha256 if run.phases[-1].has_policy else None,
        "phases": [phase.name for phase in run.phases],
        "outdated": list(run.outdated),
        "normaliser": {"source": metrics.normaliser.source, "values": dict(metrics.normaliser.best)},
        "stages": [
            {
                "task": metrics.task(i),
                "best_return": metrics.ledgers[i].best(metrics.task(i)),
                "returns": {task: metrics.ledgers[i].records[-1].mean(task) for task in metrics.ledgers[i].tasks},
                "normalised": {task: metrics.final(task, i) for task in metrics.ledgers[i].tasks},
                "interference": metrics.interference(i),
            }
            for i in stages
        ],
        "metrics": metrics.summary(),
        "steps": metrics.total_steps(),
    }


def print_run(run: Run) -> None:
    """The run as two tables and a sentence."""
    metrics = run.metrics
    tasks = list(metrics.ledgers[0].tasks)
    rows = []
    for i in range(metrics.n_stages):
        last = metrics.ledgers[i].records[-1]
        learning = metrics.ledgers[i].learning
        rows.append(["+".join(learning), *(f"{last.mean(t):,.0f} ({metrics.final(t, i):.2f})" for t in tasks)])
    print_table("Return (and share of R*) at the end of each phase", ["trained on", *tasks], rows)
    console.print(f"R* comes from {metrics.normaliser.source}.", style="dim", markup=False)
    console.print()
    print_table("Measures", ["measure", "value"], [(n.replace("_", " "), v) for n, v in metrics.summary().items()])
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
    for i in range(metrics.n_stages):
        task, best, end = metrics.task(i), metrics.best_while_learning(i), metrics.final(metrics.task(i))
        kept = f", kept {max(end / best, 0):.0%} of it" if i < metrics.n_stages - 1 and best > 0 else ""
        told.append(f"{task}: learnt to {best:.2f} of R*{kept}.")
    return told
