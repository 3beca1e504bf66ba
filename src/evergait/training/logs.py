"""Adapters to other people's dashboards, fed by the ledger, which stays the truth.

When a run resumes, evaluations that were logged before are not logged again: each adapter skips generations up to the
one that the phase goes on from.
"""

from collections.abc import Callable
from pathlib import Path

from evergait.config import Config
from evergait.core.data import to_data
from evergait.core.errors import EvergaitError
from evergait.methods import Stage
from evergait.store.ledger import Record
from evergait.training.state import Position

Write = Callable[[str, float, int], None]


class LogObserver:
    """Passes every evaluation on, at the generation, or with a budget of steps the step, counted over the stream."""

    def __init__(self, config: Config, write: Write, close: Callable[[], None]) -> None:
        self._budget, self._write, self.close = config.budget, write, close
        self._used = 0

    def phase_started(self, stage: Stage, at: Position) -> None:
        """Nothing to tell."""

    def generation_done(self, stage: Stage, at: Position) -> None:
        """An evaluation may follow."""
        self._used = at.used

    def evaluated(self, stage: Stage, record: Record) -> None:
        """Mean return per task, steps by kind, diverged episodes."""
        at = stage.index * self._budget + self._used
        for task in record.returns:
            self._write(f"return/{task}", record.mean(task), at)
        for kind, n_steps in record.steps.items():
            self._write(f"steps/{kind}", n_steps, at)
        self._write("diverged", record.diverged, at)


def _tensorboard(config: Config, out: Path) -> LogObserver:
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(str(out / "tensorboard"))
    return LogObserver(config, writer.add_scalar, writer.close)


def _wandb(config: Config, out: Path) -> LogObserver:
    import wandb

    run = wandb.init(project="evergait", dir=str(out), name=out.name, config=to_data(config))

    axis = "step" if config.steps else "generation"

    def write(name: str, value: float, at: int) -> None:
        run.log({name: value, axis: at})

    run.define_metric("*", step_metric=axis)
    return LogObserver(config, write, run.finish)


ADAPTERS: dict[str, Callable[[Config, Path], LogObserver]] = {"tensorboard": _tensorboard, "wandb": _wandb}


def make_log(name: str, config: Config, out: Path) -> LogObserver:
    """The adapter of that name, writing under a run's folder."""
    try:
        return ADAPTERS[name](config, out)
    except ImportError as error:
        raise EvergaitError(f"log: {name} is not installed; `pip install 'evergait[{name}]'` adds it") from error
