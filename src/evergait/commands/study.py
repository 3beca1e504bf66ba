"""`evergait study`: whole grids of runs."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import rich.box
import rich.console
import rich.table
import tyro
from rich.text import Text

from evergait.analysis.study import measure_references
from evergait.commands.base import console, errors, first_flags, parse_flags
from evergait.commands.flags import WorkersKind
from evergait.commands.packing import StudyPack, StudyUnpack
from evergait.commands.show import print_study
from evergait.core.data import MOST_THREADS, within
from evergait.core.errors import EvergaitError
from evergait.core.files import locked, remove_leftovers
from evergait.core.signals import Stop, interruptible, stop_at_safe_points
from evergait.core.terminal import inert
from evergait.paper.study import analyse
from evergait.scores.scale import ScoreOptions
from evergait.store.phases import PhaseStore
from evergait.studies.base import read_study
from evergait.studies.cells import Tree, select_cells, study_cells
from evergait.studies.folder import load_results, make_study_folder, open_study
from evergait.studies.plan import make_plan
from evergait.studies.pool import Pool
from evergait.studies.progress import RUNNING, Progress, study_status
from evergait.studies.results import Results
from evergait.studies.scheduler import FAILURES, Care, Hands, Scheduler, ThisProcess
from evergait.tasks.process import set_limits
from evergait.training.logs import LogName, check_log
from evergait.training.progress import duration
from evergait.training.run import check_seconds, check_threads
from evergait.workers import Local, WorkersChoice


@dataclass(frozen=True)
class StudyRun:
    """Train every run of a study; the same command again goes on where it stopped."""

    study: tyro.conf.Positional[str]
    """Name of a study (paper, authors, strengths, methods, return, twenty, ablation, fast,
    orders, demo) or a TOML file of yours."""
    out: Path
    """Folder of the study."""
    scale: str = ""
    """One of the study's scales, such as mini or full."""
    seeds: int | None = None
    """Number of seeds, if not the study's own."""
    only: tuple[str, ...] = ()
    """Orders to train, such as H>S>W; all if not given."""
    conditions: tuple[str, ...] = ()
    """Conditions to train; all if not given. The baselines are the condition `single`."""
    jobs: int = 1
    """Phases to train at once, each in a process with its share of the threads."""
    threads: int | None = None
    """Threads; all processors if not given. The result does not depend on it."""
    kind: Annotated[WorkersKind, tyro.conf.arg(name="")] = field(default_factory=WorkersKind)
    workers: WorkersChoice = field(default_factory=Local)
    log: tuple[LogName, ...] = ()
    """Dashboards to feed, beside the ledgers: one log per phase, in OUT/logs."""
    checkpoint_seconds: float = 30.0
    """Time between checkpoints."""
    score: ScoreOptions = field(default_factory=ScoreOptions)

    def run(self) -> int:
        """Train and print what came of it."""
        references = self.score.references([task.name for task in read_study(self.study, trusted=True).tasks()])
        try:
            results = run_study(
                self.study,
                self.out,
                scale=self.scale,
                seeds=self.seeds,
                only=self.only,
                conditions=self.conditions,
                jobs=self.jobs,
                threads=self.threads,
                workers=self.workers,
                checkpoint_seconds=self.checkpoint_seconds,
                logs=self.log,
                references=references,
            )
        except Stop as stop:
            errors.print("Stopped at a safe point; run the same command again to go on.")
            return stop.exit_code
        print_study(analyse(results, references))
        console.print(f"Tables and figures are in {self.out}; `evergait report {self.out}` makes a page.", markup=False)
        return 0


@dataclass(frozen=True)
class StudyPlan:
    """Print phases, episodes, steps and expected time, from a short measurement, before anything runs."""

    study: tyro.conf.Positional[str]
    """Name of a study or a TOML file."""
    out: Path | None = None
    """Folder of the study; phases that are done there are not counted."""
    scale: str = ""
    """One of the study's scales."""
    seeds: int | None = None
    """Number of seeds, if not the study's own."""
    only: tuple[str, ...] = ()
    """Orders to train."""
    conditions: tuple[str, ...] = ()
    """Conditions to train; all if not given."""
    threads: int | None = None
    """Threads; all processors if not given."""

    def run(self) -> int:
        """Measure and print."""
        print_plan(
            self.study,
            self.out,
            scale=self.scale,
            seeds=self.seeds,
            only=self.only,
            conditions=self.conditions,
            threads=self.threads,
        )
        return 0


@dataclass(frozen=True)
class StudyStatus:
    """Show every run of a study: done, running, failed or missing."""

    folder: tyro.conf.Positional[Path]
    """Folder of a study."""

    def run(self) -> int:
        """Print."""
        print_status(self.folder)
        return 0


@dataclass(frozen=True)
class Study:
    """Train, plan or look at a whole study."""

    action: Any

    @staticmethod
    def from_arguments(arguments: Sequence[str], modules: Sequence[str] = ()) -> "Study":
        """From flags: first those that choose workers, then all."""
        command: Study = parse_flags(study_command(first_flags(WorkersKind, arguments)), arguments, "study")
        return command

    def run(self) -> int:
        """Do it."""
        code: int = self.action.run()
        return code


def study_command(kind: WorkersKind) -> type[Study]:
    """The command with the options of the workers that flags name."""
    default = StudyRun(study=tyro.MISSING, out=tyro.MISSING, kind=kind, workers=kind.choice())
    actions: Any = Annotated[StudyRun, tyro.conf.subcommand("run", prefix_name=False, default=default)]
    actions |= Annotated[StudyPlan, tyro.conf.subcommand("plan", prefix_name=False)]
    actions |= Annotated[StudyStatus, tyro.conf.subcommand("status", prefix_name=False)]
    actions |= Annotated[StudyPack, tyro.conf.subcommand("pack", prefix_name=False)]
    actions |= Annotated[StudyUnpack, tyro.conf.subcommand("unpack", prefix_name=False)]

    @dataclass(frozen=True)
    class Chosen(Study):
        __doc__ = Study.__doc__
        action: Annotated[actions, tyro.conf.arg(name="")]

    return Chosen


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
    make_study_folder(study, path)
    with locked(path / "lock", wait=False) as ours:
        if not ours:
            raise EvergaitError(f"out: another process is training the study in {path}; wait for it or stop it")
        cells = select_cells(open_study(study, path), only, study.outline.seeds, conditions)
        tree = Tree.build(cells)
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
    console: rich.console.Console = console,
) -> None:
    """Phases, episodes, environment steps and expected time of what is left, before anything runs."""
    study = read_study(name_or_path).at_scale(scale)
    study = study if seeds is None else study.with_seeds(seeds)
    cells = select_cells(study_cells(study), tuple(only), conditions=tuple(conditions))
    n_threads = check_threads(threads)
    plan = make_plan(Tree.build(cells), PhaseStore(Path(out or ".") / "phases"), n_threads)
    given = sum(plan.left.given.values())
    steps = sum(plan.left.n_steps.values()) + given
    console.print(f"{study.outline.title}{f', scale {scale}' if scale else ''}", style="bold", markup=False)
    lines = {
        "runs": f"{len(cells)} (conditions × orders × seeds, and baselines)",
        "phases": f"{plan.n_phases} different ones of {sum(len(c.phases) for c in cells)}; {plan.n_done} are done",
        "episodes": f"{plan.left.n_episodes:,}" + (" and those that fixed numbers of steps pay for" if given else ""),
        "environment steps": f"at most {steps:,}",
        "measured": ", ".join(f"{task.name} {s.steps_per_second:,.0f} steps/s" for task, s in plan.speed.items())
        or "nothing",
        "time": f"{duration(plan.least_seconds)} to {duration(plan.most_seconds)} on {n_threads} threads: episodes as "
        "short as at the start, or all to their end",
    }
    for name, value in lines.items():
        console.print(f"{name + ':':19}{value}", markup=False, highlight=False, soft_wrap=True)


STYLES = {"done": "green", "running": "cyan", "failed": "bold red", "stopped": "yellow", "missing": "dim"}


def print_status(path: str | Path, console: rich.console.Console = console) -> None:
    """Every cell of a study: done, running (with time left), failed (with the reason), missing."""
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
