"""Adapters to other people's dashboards, fed by the ledger's records, which stay the truth.

When training goes on after a stop, evaluations that were sent before are not sent again, also where a kill made it
repeat some: `<folder>/<name>/logged.json` says what the last one was.
"""

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evergait.config import Config
from evergait.core.data import to_data
from evergait.core.errors import EvergaitError
from evergait.core.files import read_json, write_json
from evergait.store.ledger import Record
from evergait.training.observer import Observer, Position

LogName = Literal["tensorboard", "wandb"]


@dataclass
class Dashboard(Observer):
    """Passes every evaluation on, at the generation or, where steps decide the length, the step within the stream."""

    mark: Path
    """Says what was sent."""
    write: Callable[[str, float, int], None]
    flush: Callable[[], None]
    close: Callable[[], None]

    def evaluated(self, at: Position, record: Record) -> None:
        """Mean return per task, steps by kind, diverged episodes, and how the search went since the one before."""
        here = [at.stage.index, at.generation]
        sent = read_json(self.mark) if self.mark.exists() else {}
        if sent.get("last", [-1, 0]) >= here:
            return
        for task in record.returns:
            self.write(f"return/{task}", record.mean(task), at.in_stream)
        for kind, n_steps in record.steps.items():
            self.write(f"steps/{kind}", n_steps, at.in_stream)
        for name, value in record.diagnostics.items():
            self.write(f"search/{name}", value, at.in_stream)
        self.write("diverged", record.diverged, at.in_stream)
        self.flush()
        write_json(self.mark, {**sent, "last": here})


def _tensorboard(config: Config, folder: Path, title: str) -> Dashboard:
    from tensorboardX import SummaryWriter

    place = folder / "tensorboard"
    writer = SummaryWriter(str(place))
    return Dashboard(place / "logged.json", writer.add_scalar, writer.flush, writer.close)


def _wandb(config: Config, folder: Path, title: str) -> Dashboard:
    import wandb

    place = folder / "wandb"
    place.mkdir(parents=True, exist_ok=True)
    mark = place / "logged.json"
    if not mark.exists():
        write_json(mark, {"id": secrets.token_hex(4)})
    try:
        run: Any = wandb.init(
            project="evergait",
            dir=str(folder),
            name=title,
            config=to_data(config),
            id=str(read_json(mark).get("id")),
            resume="allow",
        )
    except wandb.Error as error:
        raise EvergaitError(f"log: wandb cannot start: {error}") from error
    axis = "step" if config.steps else "generation"
    run.define_metric("*", step_metric=axis)

    def write(name: str, value: float, at: int) -> None:
        run.log({name: value, axis: at})

    return Dashboard(mark, write, lambda: None, run.finish)


ADAPTERS: dict[str, Callable[[Config, Path, str], Dashboard]] = {"tensorboard": _tensorboard, "wandb": _wandb}


def check_log(name: LogName) -> None:
    """Raise EvergaitError for a dashboard that cannot be fed, before any work starts."""
    try:
        if name == "tensorboard":
            import tensorboardX  # noqa: F401
        else:
            import wandb

            online = os.environ.get("WANDB_MODE", "online") == "online"
            if online and not wandb.login(prompt=False, verify=False):
                raise EvergaitError(
                    "log: wandb has no API key; run `wandb login`, or set WANDB_MODE=offline to keep the log here"
                )
    except ImportError as error:
        raise EvergaitError(f"log: {name} is not installed; `pip install 'evergait[{name}]'` adds it") from error


def make_log(name: LogName, config: Config, folder: Path, title: str) -> Dashboard:
    """The adapter of that name, writing under a folder; people see the title."""
    return ADAPTERS[name](config, folder, title)
