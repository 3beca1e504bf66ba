"""Modules import only from lower layers, as the table in docs/architecture.md says."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "evergait"


def table() -> dict[str, int]:
    """Path under src/evergait → layer."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text.split("## Layers")[1].split("\n## ")[0]
    layers = {}
    for paths, layer in re.findall(r"^\| (`.*?) \| (\d+) \|", section, re.MULTILINE):
        for path in re.findall(r"`([^`]+)`", paths):
            layers[path] = int(layer)
    return layers


LAYERS = table()


def room(parts: list[str]) -> str:
    """The row of the table that a module belongs to."""
    return f"{parts[0]}/" if f"{parts[0]}/" in LAYERS else f"{parts[0]}.py"


def imported_rooms(path: Path) -> set[str]:
    """Rooms that a file imports from, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            submodules = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "evergait" else []
            names = submodules or [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "evergait" and len(parts) > 1 and parts[1] != "_native":
                found.add(room(parts[1:]))
    return found


FILES = [p for p in SOURCE.rglob("*.py") if p.parent != SOURCE or p.name not in ("__init__.py", "__main__.py")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down(path: Path) -> None:
    parts = list(path.relative_to(SOURCE).with_suffix("").parts)
    own = room(parts)
    assert own in LAYERS, f"{own} is not in the table of docs/architecture.md"
    for other in imported_rooms(path):
        assert other == own or LAYERS[other] < LAYERS[own], f"{own} ({LAYERS[own]}) imports {other} ({LAYERS[other]})"


def test_every_row_of_the_table_exists() -> None:
    assert len(LAYERS) > 12
    for path in LAYERS:
        assert (SOURCE / path).exists(), path


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_are_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400
