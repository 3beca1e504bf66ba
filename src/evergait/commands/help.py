"""`evergait train --help`: the common options and examples; --help-all has all of them."""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Mapping
from typing import Any

EXAMPLES = """\
  evergait train --preset quick --stream Swimmer-v5 InvertedPendulum-v5 --out runs/first
  evergait train --preset tuned --stream 'H>S>W' --threads 2 --out runs/tuned
  evergait train --stream Hopper-v5 Hopper-v5@moon --method replay --method.budget 192 --out runs/moon
  evergait train --config runs/tuned/config.toml --seed 1 --out runs/tuned-1"""
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
