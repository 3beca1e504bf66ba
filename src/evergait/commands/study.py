"""`evergait study` and `evergait tune`: whole grids of runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from evergait.commands.base import console, errors, first_flags, parse_flags
from evergait.commands.packing import StudyPack, StudyUnpack
from evergait.commands.show import print_study
from evergait.commands.studying import print_plan, print_status, run_study, tune
from evergait.commands.workers import WorkersKind
from evergait.core.signals import Stop
from evergait.paper.study import analyse
from evergait.scores.references import ScoreOptions
from evergait.studies.base import read_study
from evergait.training.logs import LogName
from evergait.workers import Local, WorkersChoice


@dataclass(frozen=True)
class StudyRun:
    """Train every run of a study; the same command again goes on where it stopped."""

    study: tyro.conf.Positional[str]
    """Name of a study (paper, authors, readings, methods, strengths, tuning, return, demo) or a TOML file of yours."""
    out: Path
    """Folder of the study."""
    scale: str = ""
    """One of the study's scales, such as mini, half or full."""
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
        references = self.score.references([task.name for task in read_study(self.study).tasks()])
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
        choices = {
            "scale": self.scale,
            "seeds": self.seeds,
            "only": self.only,
            "conditions": self.conditions,
            "threads": self.threads,
        }
        print_plan(self.study, self.out, console=console, **choices)  # type: ignore[arg-type]
        return 0


@dataclass(frozen=True)
class StudyStatus:
    """Show every run of a study: done, running, failed or missing."""

    folder: tyro.conf.Positional[Path]
    """Folder of a study."""

    def run(self) -> int:
        """Print."""
        print_status(self.folder, console)
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


@dataclass(frozen=True)
class Tune:
    """Choose settings on one order with Optuna, as the study's [search] table says; resumable."""

    study: tyro.conf.Positional[Path]
    """TOML file of a study with a [search] table."""
    out: Path
    """Folder for the trials and best.toml."""
    scale: str = ""
    """One of the study's scales."""
    trials: int | None = None
    """Number of trials in all, if not the study's own."""
    threads: int | None = None
    """Threads; all processors if not given."""
    score: ScoreOptions = field(default_factory=ScoreOptions)

    def run(self) -> int:
        """Search and print where the best config is."""
        try:
            tune(
                self.study,
                self.out,
                scale=self.scale,
                trials=self.trials,
                threads=self.threads,
                references=self.score.references(),
                console=console,
            )
        except Stop as stop:
            errors.print("Stopped; run the same command again to go on.")
            return stop.exit_code
        return 0
