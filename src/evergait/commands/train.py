"""`evergait train`: train a stream, or go on with it."""

import ast
import dataclasses
import inspect
import sys
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from evergait.commands.base import console, errors, first_flags, parse_flags
from evergait.commands.flags import WorkersKind
from evergait.commands.show import print_run
from evergait.config import Config, preset, read_config, trust_file
from evergait.core.data import from_data
from evergait.core.errors import EvergaitError
from evergait.core.plugins import import_installed
from evergait.core.signals import Stop, interruptible, stop_at_safe_points
from evergait.es import Optimizer
from evergait.methods import Method
from evergait.scores.scale import ScoreOptions
from evergait.tasks.process import set_limits
from evergait.training.logs import LogName, check_log, make_log
from evergait.training.observer import Diagnostics, Observer, Position
from evergait.training.phases import plan_phases
from evergait.training.progress import Progress
from evergait.training.run import Run, check_seconds, check_threads, open_folder, train
from evergait.workers import Local, Traffic, WorkersChoice

EXAMPLES = """\
  evergait train --preset quick --stream Hopper-v5 Swimmer-v5 --out runs/first
  evergait train --preset fast --stream 'H>S>W' --threads 2 --out runs/fast
  evergait train --stream Hopper-v5 Hopper-v5@moon --method replay --method.budget 192 --out runs/moon
  evergait train --config runs/fast/config.toml --seed 1 --out runs/fast-1"""
"""What people begin with."""

WIDTH = 100


def field_docs(kind: type[Any]) -> Mapping[str, str]:
    """Field → the text below it in its class."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    found, field = {}, ""
    for statement in node.body if isinstance(node, ast.ClassDef) else ():
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            field = statement.target.id
        elif field and isinstance(value, ast.Constant) and isinstance(value.value, str):
            found[field], field = " ".join(value.value.split()), ""
    return found


def option(kind: type[Any], name: str) -> str:
    """One option: its flag, what it does, and its default."""
    flag = f"--{name.replace('_', '-')}"
    fields = {field.name: field for field in dataclasses.fields(kind)}
    default = fields[name].default
    shown = f" ({default})" if isinstance(default, int | float | str) and default != "" else ""
    text = textwrap.fill(f"{field_docs(kind)[name]}{shown}", WIDTH - 20)
    return textwrap.indent(f"{flag:18}{textwrap.indent(text, ' ' * 18).strip()}", "  ")


def short_help(title: str, options: Mapping[type[Any], tuple[str, ...]]) -> str:
    """Title, examples, and some options of some classes."""
    lines = [option(kind, name) for kind, names in options.items() for name in names]
    return "\n".join(
        (
            textwrap.fill(title, WIDTH),
            "",
            "examples:",
            EXAMPLES,
            "",
            "common options:",
            *lines,
            "",
            "`evergait train --help-all` lists every option; `evergait methods` and `evergait tasks` what there is.",
            "",
        )
    )


@dataclass(frozen=True)
class Choices:
    """What decides which further flags there are, and what they start from."""

    config: Path | None = None
    """TOML file with settings; flags override it."""
    preset: str = ""
    """Settings that ship with evergait: quick, fast, paper, authors."""
    method: Annotated[str, tyro.conf.arg(metavar="|".join(Method.members))] = ""
    """Continual-learning method; its options appear as --method.*. Several are joined by +, as in replay+distill, and
    then have their options under their names, as in --method.distill.steps."""
    optimizer: Annotated[str, tyro.conf.arg(metavar="|".join(Optimizer.members))] = ""
    """How a gradient becomes a step; its options appear as --optimizer.*."""

    def settings(self) -> Config:
        """What flags start from."""
        config = preset(self.preset) if self.preset else Config()
        if self.config:
            trust_file(self.config)
            config = read_config(self.config, config)
        named = {"method": self.method, "optimizer": self.optimizer}
        return from_data(Config, {part: {"name": name} for part, name in named.items() if name}, base=config)


@dataclass(frozen=True)
class Train:
    """Train one policy on a stream of tasks. The same command again resumes it, or says that it is done."""

    out: Path
    """Folder of the run."""
    settings: Annotated[Config, tyro.conf.arg(name="")]
    choices: Annotated[Choices, tyro.conf.arg(name="")] = field(default_factory=Choices)
    threads: int | None = None
    """Threads; all processors if not given. The result does not depend on it."""
    kind: Annotated[WorkersKind, tyro.conf.arg(name="")] = field(default_factory=WorkersKind)
    workers: WorkersChoice = field(default_factory=Local)
    store: Path | None = None
    """Folder of phases to share between runs; OUT/phases if not given."""
    log: tuple[LogName, ...] = field(default_factory=tuple)
    """Dashboards to feed, beside the ledger."""
    checkpoint_seconds: float = 30.0
    """Time between checkpoints."""
    score: ScoreOptions = field(default_factory=ScoreOptions)

    @staticmethod
    def from_arguments(arguments: Sequence[str], modules: Sequence[str] = ()) -> "Train":
        """From flags: first those that choose, then all, on top of what was chosen; the run names what it imported."""
        import_installed()
        if {"-h", "--help"} & set(arguments):
            sys.stdout.write(short_help(f"usage: evergait train --out OUT ... {Train.__doc__}", COMMON))
            sys.exit(0)
        arguments = ["--help" if argument == "--help-all" else argument for argument in arguments]
        choices, kind = first_flags(Choices, arguments), first_flags(WorkersKind, arguments)
        settings = choices.settings()
        settings = replace(settings, plugins=tuple(dict.fromkeys((*settings.plugins, *modules))))
        shown = replace(settings, generations=0) if settings.steps else settings  # so that any number of them is told
        default = Train(tyro.MISSING, shown, choices, kind=kind, workers=kind.choice())
        command: Train = parse_flags(Train, arguments, "train", default=default)
        return replace(command, settings=with_one_length(command.settings, settings))

    def run(self) -> int:
        """Train, with progress; return the exit code."""
        config = self.settings.with_plugins()
        self.workers.check()
        set_limits(self.workers.limits)
        config.trust()
        config.check()
        check_seconds(self.checkpoint_seconds)
        n_threads = check_threads(self.threads)
        references = self.score.references([task.name for task in config.stream_tasks])
        already = (self.out / "run.json").exists() and Run.load(self.out, self.store)
        planned = [phase.name for phase in plan_phases(config)]
        if already and already.config == config and [phase.name for phase in already.phases] == planned:
            console.print(f"{self.out} is done; nothing to train.")
            print_run(already, already.scored(references))
            already.tidy()
            return 0
        for name in self.log:
            check_log(name)
        open_folder(config, self.out, self.store or self.out / "phases")
        with ExitStack() as stack:
            stack.enter_context(stop_at_safe_points())  # a second signal must not cut the closing short
            with interruptible():
                workers = self.workers.start(n_threads)
            stack.callback(workers.close)
            observers: list[Observer] = [stack.enter_context(Progress(config, errors))]
            counter = GenerationCounter()
            observers.append(counter)
            for name in self.log:
                log = make_log(name, config, self.out, self.out.name)
                stack.callback(log.close)
                observers.append(log)
            try:
                run = train(
                    config,
                    self.out,
                    threads=n_threads,
                    store=self.store,
                    workers=workers,
                    observers=observers,
                    checkpoint_seconds=self.checkpoint_seconds,
                )
            except Stop as stop:
                errors.print("Stopped at a safe point; run the same command again to go on.")
                return stop.exit_code
            traffic = workers.traffic()
        print_run(run, run.scored(references))
        if traffic.n_requests:
            console.print(describe(traffic, counter.n_generations), style="dim", markup=False, highlight=False)
        return 0


COMMON: dict[type[Any], tuple[str, ...]] = {
    Choices: ("preset", "config", "method", "optimizer"),
    Config: ("stream", "generations", "pairs", "sigma", "seed", "engine"),
    Train: ("out", "threads", "log"),
}
"""What most people need."""


def with_one_length(asked: Config, before: Config) -> Config:
    """Generations that were asked for take the place of the steps that a preset or a file has."""
    if not before.steps:
        return asked
    if not asked.generations:
        return replace(asked, generations=before.generations)
    if asked.steps not in (0, before.steps):
        raise EvergaitError(f"generations: is {asked.generations} beside steps {asked.steps}; a phase has one length")
    is_same = asked.evaluation.every_steps == before.evaluation.every_steps
    return asked.in_generations() if is_same else replace(asked, steps=0)


class GenerationCounter(Observer):
    """Counts, for figures per generation."""

    def __init__(self) -> None:
        self.n_generations = 0

    def generation_done(self, at: Position, seen: Diagnostics) -> None:
        """One more."""
        self.n_generations += 1


def describe(traffic: Traffic, n_generations: int) -> str:
    """What workers sent, received and lost, in one line.

    >>> describe(Traffic(9, 40, 2, 1, 90_000, 12_000, 3, 2), 9)
    'workers: 3 on 2 nodes; per generation 10.0 kB sent, 1.3 kB received; 40 chunks, 2 of them redone'
    """
    sent, received = (n / 1000 / max(n_generations, 1) for n in (traffic.n_bytes_sent, traffic.n_bytes_received))
    return (
        f"workers: {traffic.n_workers} on {traffic.n_nodes} node{'s' if traffic.n_nodes > 1 else ''}; "
        f"per generation {sent:.1f} kB sent, {received:.1f} kB received; "
        f"{traffic.n_chunks} chunks, {traffic.n_redone} of them redone"
    )
