"""`evergait train`: train a stream, or go on with it."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from evergait.commands.base import console, errors
from evergait.commands.show import print_run
from evergait.config import Config, preset, read_config
from evergait.data import from_data
from evergait.logs import make_log
from evergait.methods import Method
from evergait.optimizers import Optimizer
from evergait.progress import Progress
from evergait.run import Run, check_threads, open_folder, train
from evergait.signals import Stop
from evergait.train import Observer


@dataclass(frozen=True)
class Train:
    """Train one policy on a stream of tasks. The same command again resumes it, or says that it is done."""

    out: Path
    """Folder of the run."""
    settings: Annotated[Config, tyro.conf.arg(name="")]
    config: Path | None = None
    """TOML file with settings; flags override it."""
    preset: str = ""
    """Settings that ship with evergait: paper, quick."""
    chosen_method: Annotated[str, tyro.conf.arg(name="method", metavar="|".join(Method.members))] = "naive"
    """Continual-learning method; its options appear as --method.*."""
    chosen_optimizer: Annotated[str, tyro.conf.arg(name="optimizer", metavar="|".join(Optimizer.members))] = "plain"
    """How a gradient becomes a step; its options appear as --optimizer.*."""
    threads: int | None = None
    """Threads; all processors if not given. The result does not depend on it."""
    store: Path | None = None
    """Folder of phases to share between runs; OUT/phases if not given."""
    log: tuple[Literal["tensorboard", "wandb"], ...] = field(default_factory=tuple)
    """Dashboards to feed, beside the ledger."""
    checkpoint_seconds: float = 30.0
    """Time between checkpoints."""

    def run(self) -> int:
        """Train, with progress; return the exit code."""
        config = self.settings
        config.check()
        already = (self.out / "run.json").exists() and Run.load(self.out)
        if already and already.config == config and already.is_done:
            console.print(f"{self.out} is done; nothing to train.")
            print_run(already)
            return 0
        check_threads(self.threads)
        open_folder(config, self.out, self.store or self.out / "phases")
        with ExitStack() as stack:
            observers: list[Observer] = [stack.enter_context(Progress(config, errors))]
            for name in self.log:
                log = make_log(name, config, self.out)
                stack.callback(log.close)
                observers.append(log)
            try:
                run = train(
                    config,
                    self.out,
                    threads=self.threads,
                    store=self.store,
                    observers=observers,
                    checkpoint_seconds=self.checkpoint_seconds,
                )
            except Stop as stop:
                errors.print("Stopped at a safe point; run the same command again to go on.")
                return stop.exit_code
        print_run(run)
        return 0


def base_settings(arguments: list[str]) -> Config:
    """What flags start from: --preset or --config, and the method and optimizer that flags name."""
    config = Config()
    if name := flag(arguments, "--preset"):
        config = preset(name)
    if path := flag(arguments, "--config"):
        config = read_config(Path(path), config)
    parts = {}
    for part, family in (("method", Method), ("optimizer", Optimizer)):
        if name := flag(arguments, f"--{part}"):
            parts[part] = {"name": family.named(name, part).name}
    return from_data(Config, parts, base=config)


def flag(arguments: list[str], name: str) -> str:
    """The value of a flag, wherever it stands, or an empty text."""
    for i, argument in enumerate(arguments):
        if argument == name and i + 1 < len(arguments):
            return arguments[i + 1]
        if argument.startswith(f"{name}="):
            return argument.removeprefix(f"{name}=")
    return ""
