"""Every evaluation episode as one row of a long table, for pandas, polars, R and spreadsheets."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evergait.core.arrays import Array
from evergait.core.errors import EvergaitError
from evergait.core.files import write_atomically
from evergait.store.ledger import Ledger
from evergait.tasks.base import short

KINDS: dict[str, Any] = {
    "condition": object,
    "order": object,
    "seed": np.uint64,
    "stage": np.int64,
    "generation": np.int64,
    "steps": np.int64,
    "task": object,
    "episode": np.int64,
    "return": np.float64,
    "length": np.int64,
}
"""Columns and their types. `stage` counts from 0, as in ledgers; `steps` are the phase's environment steps before the
evaluation, those of evaluations not counted; a return that is no finite number is NaN."""


class Frame(dict[str, Array]):
    """Columns of equal length by name: `pandas.DataFrame(frame)` and `polars.DataFrame(frame)` take it as it is."""

    @property
    def n_rows(self) -> int:
        """Evaluation episodes."""
        return len(self["return"])

    def write_csv(self, path: Path) -> None:
        """Write a CSV file; a return that is no number is an empty field."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(self)
        columns = {name: column.tolist() for name, column in self.items()}
        columns["return"] = ["" if value != value else value for value in columns["return"]]
        rows.writerows(zip(*columns.values(), strict=True))
        write_atomically(path, text.getvalue().encode())

    def write_parquet(self, path: Path) -> None:
        """Write a Parquet file, which needs pyarrow."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise EvergaitError("parquet: needs pyarrow; install it with `pip install 'evergait[frame]'`") from error
        content = io.BytesIO()
        parquet.write_table(pa.table(dict(self)), content, compression="zstd")
        write_atomically(path, content.getvalue())


def make_frame(runs: Iterable[tuple[str, str, int, Sequence[Ledger]]]) -> Frame:
    """The frame of some runs: (condition, order, seed, ledgers of its phases). A phase that runs share is in each."""
    columns: dict[str, list[Any]] = {name: [] for name in KINDS}
    for condition, order, seed, ledgers in runs:
        for ledger in ledgers:
            n_before = len(columns["return"])
            _add_ledger(columns, ledger)
            n = len(columns["return"]) - n_before
            same = {"condition": condition, "order": order, "seed": seed, "stage": ledger.stage}
            for name, value in same.items():
                columns[name] += [value] * n
    return Frame({name: np.array(columns[name], kind) for name, kind in KINDS.items()})


def _add_ledger(columns: dict[str, list[Any]], ledger: Ledger) -> None:
    steps = 0
    for record in ledger.records:
        steps += sum(n for kind, n in record.steps.items() if kind != "evaluation")
        for task in ledger.tasks:
            n = len(record.returns[task])
            columns["generation"] += [record.generation] * n
            columns["steps"] += [steps] * n
            columns["task"] += [task] * n
            columns["episode"] += range(n)
            columns["return"] += record.returns[task]
            columns["length"] += record.lengths[task]


def order_name(stream: Sequence[str]) -> str:
    """The paper's way to write a stream of task names; a config may spell its tasks in other ways.

    >>> order_name(["Hopper-v5", "Swimmer-v5"])
    'Hopper > Swimmer'
    """
    return " > ".join(map(short, stream))
