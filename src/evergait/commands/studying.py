"""What the command line calls: plain functions that check, work and print."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import rich.box
import rich.console
import rich.table
from rich.text import Text

from evergait.analysis.references import measure_references
from evergait.core.console import Screen
from evergait.core.errors import EvergaitError
from evergait.core.files import locked, remove_leftovers
from evergait.core.limits import MOST_THREADS, MOST_TRIALS, within
from evergait.core.signals import interruptible, stop_at_safe_points
from evergait.core.terminal import inert
from evergait.paper.study import analyse
from evergait.store.phases import PhaseStore
from evergait.studies.base import read_study
from evergait.studies.cells import select_cells, study_cells
from evergait.studies.folder import load_results, open_study
from evergait.studies.plan import make_plan
from evergait.studies.pool import Pool
from evergait.studies.progress import RUNNING, Progress
from evergait.studies.results import Results
from evergait.studies.scheduler import FAILURES, Care, Hands, Scheduler, ThisProcess
from evergait.studies.space import read_search
from evergait.studies.status import study_status
from evergait.studies.tree import Tree
from evergait.studies.tune import tune_search
from evergait.tasks.process import set_limits
from evergait.training.logs import LogName, check_log
from evergait.training.progress import duration
from evergait.training.run import check_seconds, check_threads
from evergait.workers import Local, WorkersChoice

LOCAL = Local()


def run_study(
    name_or_path: str | Path,
    out: str | Path,
    *,
    scale: str = "",
    seeds: int | None = None,
    only: Sequence[str] = (),
    conditions: Sequence[str] = (),
    jobs: int = 1,
    threads: int | None = None,
    workers: WorkersChoice = LOCAL,
    checkpoint_seconds: float = 30.0,
    logs: Sequence[LogName] = (),
    artifacts: bool = True,
    references: Mapping[str, float] | None = None,
) -> Results:
    """Train a study, or go on where an earlier call with the same study and folder stopped; then write its artifacts.

    Raises EvergaitError at the end if phases failed; all that did not need them is trained by then.
    """
    workers.check()
    set_limits(workers.limits)
    study = read_study(name_or_path, trusted=True).at_scale(scale)
    n_threads = check_threads(threads)
    within(jobs, 1, MOST_THREADS, "jobs")
    check_seconds(checkpoint_seconds)
    for name in logs:
        check_log(name)
    path = Path(out)
    study = study if seeds is None else study.with_seeds(seeds)
    only, conditions = tuple(only), tuple(conditions)
    select_cells(study_cells(study), only, conditions=conditions)  # refuses a wrong name before a folder is made
    cells = select_cells(open_study(study, path), only, study.head.seeds, conditions)
    tree = Tree.build(cells)
    with locked(path / "lock", wait=False) as ours:
        if not ours:
            raise EvergaitError(f"out: another process is training the study in {path}; wait for it or stop it")
        remove_leftovers(path, "study.toml", "study.json", FAILURES, RUNNING, "plane.json")
        for part in ("tables", "figures"):
            remove_leftovers(path / part, "*")  # refuses a link first
        with (
            stop_at_safe_points(),  # a second signal must not cut the closing short
            _hands(Care(path, checkpoint_seconds, tuple(logs)), jobs, n_threads, workers) as hands,
            closing(Progress(path)) as progress,
        ):
            scheduler = Scheduler(tree, path, hands, progress)
            scheduler.run()
        if scheduler.failures:
            raise EvergaitError(_failed(scheduler))
        with stop_at_safe_points():
            results = load_results(path)
            if artifacts:
                from evergait.figures.artifacts import write_artifacts  # here, for matplotlib is slow to import

                with interruptible():
                    measure_references(results, n_threads)
                write_artifacts(analyse(results, references), threads=n_threads)
    return results


def _failed(scheduler: Scheduler) -> str:
    """How many phases failed, and why the first of them did."""
    n_failed, n_blocked = len(scheduler.failures), len(scheduler.blocked)
    first = next(iter(scheduler.failures.values())).strip().splitlines()[-1]
    return (
        f"{n_failed} of {len(scheduler.tree.nodes)} phases failed and {n_blocked} that need them are blocked; the "
        f"first: {first} (all reasons: {scheduler.path / FAILURES}; the same command tries again)"
    )


@contextmanager
def _hands(care: Care, jobs: int, n_threads: int, workers: WorkersChoice) -> Iterator[Hands]:
    """What trains phases, until the end of the context."""
    with ExitStack() as stack:
        if jobs == 1:
            with interruptible():
                started = stack.enter_context(closing(workers.start(n_threads)))
            yield ThisProcess(care, started)
            return
        with interruptible():
            each = stack.enter_context(workers.shared(jobs, n_threads))
        yield stack.enter_context(closing(Pool(care, jobs, n_threads, each)))


def print_plan(
    name_or_path: str | Path,
    out: str | Path | None = None,
    *,
    scale: str = "",
    seeds: int | None = None,
    only: Sequence[str] = (),
    conditions: Sequence[str] = (),
    threads: int | None = None,
    console: rich.console.Console | None = None,
) -> None:
    """Phases, episodes, environment steps and expected time of what is left, before anything runs."""
    study = read_study(name_or_path).at_scale(scale)
    study = study if seeds is None else study.with_seeds(seeds)
    cells = select_cells(study_cells(study), tuple(only), conditions=tuple(conditions))
    n_threads = check_threads(threads)
    plan = make_plan(Tree.build(cells), PhaseStore(Path(out or ".") / "phases"), n_threads)
    console = console or Screen()
    budget = sum(plan.left.budget.values())
    steps = sum(plan.left.n_steps.values()) + budget
    console.print(f"{study.head.title}{f', scale {scale}' if scale else ''}", style="bold", markup=False)
    lines = {
        "runs": f"{len(cells)} (conditions × orders × seeds, and baselines)",
        "phases": f"{plan.n_phases} different ones of {sum(len(c.phases) for c in cells)}; {plan.n_done} are done",
        "episodes": f"{plan.left.n_episodes:,}" + (" and those that the budgets of steps pay for" if budget else ""),
        "environment steps": f"at most {steps:,}",
        "measured": ", ".join(f"{task.name} {s.steps_per_second:,.0f} steps/s" for task, s in plan.speed.items())
        or "nothing",
        "time": f"{duration(plan.least_seconds)} to {duration(plan.most_seconds)} on {n_threads} threads: episodes as "
        "short as at the start, or all to their end",
    }
    for name, value in lines.items():
        console.print(f"{name + ':':19}{value}", markup=False, highlight=False, soft_wrap=True)


STYLES = {"done": "green", "running": "cyan", "failed": "bold red", "stopped": "yellow", "missing": "dim"}


def print_status(path: str | Path, console: rich.console.Console | None = None) -> None:
    """Every cell of a study: done, running (with time left), failed (with the reason), missing."""
    console = console or Screen()
    statuses = study_status(Path(path))
    table = rich.table.Table(box=rich.box.SIMPLE)
    for column in ("condition", "order", "seed", "phases", "state", ""):
        table.add_column(column, overflow="fold")
    for status in statuses:
        cell = status.cell
        words = (cell.condition, cell.order, str(cell.seed), f"{status.n_done}/{len(cell.phases)}", status.state)
        cells = [Text(inert(word)) for word in (*words, status.detail)]
        table.add_row(*cells, style=STYLES[status.state])
    console.print(table)
    if parts := load_results(path).outdated:
        console.print(f"trained with {'; '.join(parts)}", style="yellow", markup=False, highlight=False)
    counts = {state: sum(status.state == state for status in statuses) for state in STYLES}
    console.print(", ".join(f"{n} {state}" for state, n in counts.items() if n), highlight=False)


def tune(
    path: str | Path,
    out: str | Path,
    *,
    scale: str = "",
    trials: int | None = None,
    threads: int | None = None,
    references: Mapping[str, float] | None = None,
    console: rich.console.Console | None = None,
) -> Path:
    """Search the space that a study declares, on one order; the best config is written as <out>/best.toml."""
    search = read_search(read_study(path).at_scale(scale))
    if trials is not None:
        within(trials, 1, MOST_TRIALS, "trials")
        search = replace(search, n_trials=trials)
    n_threads = check_threads(threads)
    _, value, measured = tune_search(search, Path(out), n_threads, references=references)
    best = Path(out) / "best.toml"
    console = console or Screen()
    words = f"best of {search.n_trials} trials: mean {measured.name} {value:.4f}, config in {best}. {measured.words}"
    console.print(words, markup=False, highlight=False, soft_wrap=True)
    return best
