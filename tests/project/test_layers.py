"""Modules import only from lower layers, as the table in docs/architecture.md says, and never in circles.

Imports inside functions count, and so do modules that are named in a text to be imported later.
"""

import ast
import re
from graphlib import CycleError, TopologicalSorter
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


def module_name(path: Path) -> str:
    """`evergait.tasks.base`, or `evergait.tasks` for its __init__.py."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


LAYERS = table()
MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}
TOP = ("evergait", "evergait.__main__")  # the front doors lead everywhere
NAMED = re.compile(r"(evergait(?:\.\w+)+)(?::\w+)?")


def room(module: str) -> str:
    """The row of the table that a module belongs to."""
    first = module.split(".")[1]
    return f"{first}/" if f"{first}/" in LAYERS else f"{first}.py"


def imports_of(source: str, modules: "dict[str, Path]") -> set[str]:
    """Modules of ours that a source imports anywhere in it, or names in a text of their own."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in modules else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (m := NAMED.fullmatch(node.value)):
            found.add(m[1])
    return found & modules.keys()


GRAPH = {name: imports_of(path.read_text(), MODULES) - {name, "evergait"} for name, path in MODULES.items()}
INNER = [name for name in GRAPH if name not in TOP]


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, or none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("module", INNER)
def test_imports_go_down(module: str) -> None:
    own = room(module)
    assert own in LAYERS, f"{own} is not in the table of docs/architecture.md"
    for other in map(room, GRAPH[module] - set(TOP)):
        assert other == own or LAYERS[other] < LAYERS[own], f"{own} ({LAYERS[own]}) imports {other} ({LAYERS[other]})"


def test_no_module_imports_itself_through_others() -> None:
    assert circle({name: GRAPH[name] for name in INNER}) == []


def test_late_and_named_imports_are_seen() -> None:
    modules = {"evergait.a": Path(), "evergait.b": Path(), "evergait.c": Path()}
    late = imports_of("def f():\n    from evergait.b import x\n    return load('evergait.c:C')\n", modules)
    assert late == {"evergait.b", "evergait.c"}
    assert circle({"evergait.a": late, "evergait.b": {"evergait.a"}})


def test_every_row_of_the_table_exists() -> None:
    assert len(LAYERS) > 12
    for path in LAYERS:
        assert (SOURCE / path).exists(), path


@pytest.mark.parametrize("module", INNER)
def test_files_are_small(module: str) -> None:
    assert len(MODULES[module].read_text().splitlines()) <= 400
