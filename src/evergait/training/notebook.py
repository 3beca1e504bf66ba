"""Progress in a notebook: one cell's output that is replaced as training goes on."""

import importlib
import sys
import time
from collections.abc import Callable
from html import escape
from typing import Any

from evergait.store.ledger import Record
from evergait.training.observer import Diagnostics, Observer, Position

SECONDS_BETWEEN_VIEWS = 1.0


def in_notebook() -> bool:
    """Whether this is a notebook's kernel; IPython is not imported for the question's sake."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


class NotebookProgress(Observer):
    """A bar and the last return on every task, below the cell."""

    def __init__(self, n_stages: int, display: Callable[[str], None] | None = None) -> None:
        self._update: Callable[[str], None] = display or _below_the_cell()
        self._n_stages, self._last, self._returns = n_stages, 0.0, dict[str, float]()

    def evaluated(self, at: Position, record: Record) -> None:
        """Always shown."""
        self._returns = {task: record.mean(task) for task in record.returns}
        self._show(at)

    def generation_done(self, at: Position, seen: Diagnostics) -> None:
        """Shown now and then."""
        if time.monotonic() - self._last > SECONDS_BETWEEN_VIEWS:
            self._show(at)

    def _show(self, at: Position) -> None:
        self._last = time.monotonic()
        returns = ", ".join(f"{escape(task)} {value:,.1f}" for task, value in self._returns.items())
        total = at.length * self._n_stages
        self._update(
            f"<progress max={total} value={min(at.in_stream, total)}></progress> "
            f"phase {at.stage.index + 1}/{self._n_stages} {escape(at.stage.name)}, generation {at.generation}"
            f"<br>mean returns: {returns}"
        )


def _below_the_cell() -> Callable[[str], None]:
    """Replaces one output of the cell that runs."""
    display: Any = importlib.import_module("IPython.display")
    handle = display.display(display.HTML(""), display_id=True)

    def update(text: str) -> None:
        handle.update(display.HTML(text))

    return update
