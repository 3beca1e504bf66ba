"""What commands share: where they print and write, tables, flags."""

import json
import math
import os
import sys
import webbrowser
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro
from rich.cells import cell_len
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from evergait.core.console import Screen
from evergait.core.errors import EvergaitError
from evergait.core.files import write_atomically
from evergait.core.plugins import import_trusted, trust
from evergait.core.terminal import inert, inert_json

T = TypeVar("T")

console = Screen()
"""Results, on standard output."""
errors = Screen(stderr=True)
"""Progress and errors, on standard error."""


def parse_flags(command: Any, arguments: Sequence[str], name: str, **options: Any) -> Any:
    """A command from its flags."""
    return tyro.cli(command, args=arguments, prog=f"evergait {name}", **options)


def split_flags(kind: type[T], arguments: Sequence[str]) -> tuple[T, list[str]]:
    """What some flags say, and all other arguments."""
    found, rest = tyro.cli(kind, args=arguments, return_unknown_args=True, add_help=False)
    return found, list(rest)


def first_flags(kind: type[T], arguments: Sequence[str]) -> T:
    """What some flags say, whatever else is among the arguments: they decide which others there are."""
    return split_flags(kind, arguments)[0]


@dataclass(frozen=True)
class Imports:
    """Flags of every command."""

    modules: Annotated[tuple[str, ...], tyro.conf.arg(name="import"), tyro.conf.UseAppendAction] = ()
    """Python module of your own that adds methods, optimizers, engines or tasks; the current folder counts."""

    def run(self) -> None:
        """Import them: naming them is trusting them."""
        for module in self.modules:
            trust(module)
        import_trusted(self.modules, "import")


def print_json(data: Mapping[str, Any] | Sequence[Any]) -> None:
    """Plain JSON on standard output, for programs; a number that is not finite is null."""
    text = json.dumps(_finite(data), indent=2, ensure_ascii=False, allow_nan=False)
    console.out(inert_json(text), highlight=False)


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


PROSE, GAP = 24, 2
"""How narrow a column of sentences may be, and what stands between two columns."""


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], n_names: int = 1) -> None:
    """A table; columns that hold numbers are right-aligned, and no name is read as markup.

    One that is too wide goes on below itself, again with the first columns, which say what a row is about.
    """
    texts = [[_text(cell) for cell in row] for row in rows]
    cells = list(zip(*texts, strict=True)) or [()] * len(columns)
    numeric = [bool(texts) and all(map(_is_numeric, filter(None, column))) for column in cells]
    widths = [_least_width((head, *column), console.width // 2) for head, column in zip(columns, cells, strict=True)]
    for i, block in enumerate(blocks(widths, console.width, n_names)):
        table = Table(title=None if i else title, title_justify="left", box=None, pad_edge=False, title_style="bold")
        for j in block:
            justify: JustifyMethod = "right" if numeric[j] else "left"
            table.add_column(columns[j], justify=justify, overflow="fold")  # a name that is cut is another one
        for row in texts:
            table.add_row(*(Text(row[j]) for j in block))
        if i:
            console.print()
        console.print(table)


def blocks(widths: Sequence[int], width: int, n_names: int) -> list[list[int]]:
    """Which columns stand side by side, the first ones in every block.

    >>> blocks([9, 9, 9, 9, 9], 35, 1), blocks([9, 9, 9, 9], 35, 2), blocks([9, 9, 9], 35, 1)
    ([[0, 1, 2], [0, 3, 4]], [[0, 1, 2], [0, 1, 3]], [[0, 1, 2]])
    """
    names = list(range(n_names))
    found = [[*names]]
    for i in range(n_names, len(widths)):
        if len(found[-1]) > n_names and sum(widths[j] + GAP for j in (*found[-1], i)) - GAP > width:
            found.append([*names])
        found[-1].append(i)
    return found


def _least_width(texts: Sequence[str], most: int) -> int:
    """Of a column, its head first, that breaks lines between words only."""
    words = [cell_len(word) for text in texts for word in text.split()]
    return min(most, max([1, *words, *(min(cell_len(cell), PROSE) for cell in texts[1:])]))


def _is_numeric(text: str) -> bool:
    return text.replace(",", "").lstrip("+-−").replace(".", "").isdigit()


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float) and not math.isfinite(cell):
        return "undefined"
    if isinstance(cell, float):
        return f"{cell:,.1f}" if abs(cell) >= 100 else f"{cell:.3f}"
    return f"{cell:,}" if isinstance(cell, int) else inert(str(cell))


def open_page(address: str) -> bool:
    """Open an address; false where there is no screen."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    return webbrowser.open(address)


def make_folder(path: Path) -> None:
    """The folder of what --output names."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvergaitError(f"output: {path} cannot be made a folder: {error.strerror}") from error


def write_output(path: Path, content: bytes) -> None:
    """The file that --output names, whole or not at all."""
    try:
        write_atomically(path, content)
    except OSError as error:
        raise EvergaitError(f"output: {path} cannot be written: {error.strerror}") from error
