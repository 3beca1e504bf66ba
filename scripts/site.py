"""The site's pages: those in docs/, those made from docstrings, commands, notebooks and ledgers; links that hold there.

`python scripts/site.py` writes build/docs; `make docs` then builds build/site from it.
"""

import contextlib
import inspect
import io
import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from pages import older

import evergait
from evergait.analysis.study import Analysis
from evergait.analysis.transfer import panel, series
from evergait.cli import main as cli
from evergait.commands.train import field_docs
from evergait.figures.drawing import Picture, draw_switches, legend_below, panels, task_colours
from evergait.paper.study import analyse
from evergait.studies.folder import load_results
from evergait.tasks.base import short

ROOT = Path(__file__).parents[1]
DOCS, PAGES = ROOT / "docs", ROOT / "build" / "docs"
SOURCE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
SHIM = "https://unpkg.com/iframe-worker/shim"
GROUPS = {
    "Training and results": ("train", "Run", "load", "Results", "Config", "Evaluation", "preset", "read_config"),
    "Errors": ("EvergaitError",),
}
"""Names that come first; all others follow by their modules."""


def write_pages() -> None:
    """All of them, into a fresh build/docs."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(DOCS, PAGES)
    for report in list(PAGES.rglob("*.html")):  # beside a page of the same name
        if report.with_suffix(".md").exists():
            report.rename(report.with_suffix(".report.html"))
    for page in PAGES.rglob("*.md"):
        page.write_text(lead_outside(page.read_text(), page.relative_to(PAGES).parent))
    write_methods(ROOT / "results" / "methods")
    (PAGES / "api.md").write_text(api())
    (PAGES / "commands.md").write_text(commands())
    for notebook in sorted(PAGES.glob("notebooks/*.ipynb")):
        notebook.with_suffix(".md").write_text(notebook_page(json.loads(notebook.read_text()), notebook.name))


def write_methods(study: Path) -> None:
    """A page for every method, with its curve; the source has them all on one."""
    index, analysis = PAGES / "methods" / "index.md", analyse(load_results(study))
    overview, sections = method_sections(index.read_text())
    index.write_text(overview)
    for name, text in sections.items():
        if drawn := method_curve(analysis, name):
            (PAGES / "methods" / f"{name}.svg").write_bytes(drawn.svg())
            text += f"\n![Scores over the stream, naive and {name}]({name}.svg)\n\n{drawn.caption}\n"
        (PAGES / "methods" / f"{name}.md").write_text(text)


def method_sections(text: str) -> tuple[str, dict[str, str]]:
    """The page of all methods as an overview and a page for each, by the name that its table has."""
    overview, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    names = {anchor: name for name, anchor in re.findall(r"^\| \[(\w+)\]\(#([\w-]+)\)", overview, re.MULTILINE)}
    pages = {names[re.sub(r"\W+", "-", s.partition("\n")[0].lower())]: f"# {s.rstrip()}\n" for s in sections}
    return re.sub(r"^(\| \[(\w+)\])\(#[\w-]+\)", r"\1(\2.md)", overview, flags=re.MULTILINE), pages


def method_curve(analysis: Analysis, name: str) -> Picture | None:
    """Scores of every task over one order, without protection and with a method; None if the study has it not."""
    groups = {group.condition: group for group in reversed(analysis.streams)}  # the first order
    if name not in groups:
        return None
    shown = [groups[condition] for condition in dict.fromkeys(("naive", name))]
    figure, axes = panels(1, len(shown))
    bounds = []
    for at, group in zip(axes, shown, strict=True):
        curves, colours = panel(group), task_colours(group.tasks)
        draw_switches(at, curves)
        for task in dict.fromkeys(task for learning in group.learning for task in learning):
            seeds = [series(metrics, task, "score") for metrics in group.metrics]
            for one in seeds:
                at.plot(curves.x, one, color=colours[task], linewidth=0.4, alpha=0.6)
            at.plot(curves.x, np.mean(seeds, axis=0), color=colours[task], label=short(task))
        at.set_title(group.condition)
        at.set_ylabel("score")
        bounds.append(at.get_ylim())
    for at in axes:
        at.set_ylim(min(low for low, _ in bounds), max(high for _, high in bounds))
    legend_below(figure)
    caption = (
        f"{shown[0].order}: the score on every task (0 is a random policy, 1 the best that learnt the task alone), in "
        f"bold the mean over {len(shown[0].entries)} seeds; dashed lines are task switches. From the study "
        f"`{analysis.results.path.name}` in results/.{older(analysis.results)}"
    )
    return Picture(name, caption, figure)


def lead_outside(text: str, folder: Path) -> str:
    """Links to what is in the repository and not on the site lead to the repository; notebooks are pages there."""

    def link(match: re.Match[str]) -> str:
        target = match[2]
        if "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        path = (DOCS / folder / target.partition("#")[0]).resolve()
        if path.suffix == ".html" and path.with_suffix(".md").exists():
            return f"{match[1]}({target.replace('.html', '.report.html')})"
        if path.suffix == ".ipynb":
            return f"{match[1]}({target.replace('.ipynb', '.md')})"
        if path.is_relative_to(DOCS) or not path.is_relative_to(ROOT):
            return match[0]
        kind = "tree" if path.is_dir() else "blob"
        return f"{match[1]}({SOURCE}/{kind}/main/{path.relative_to(ROOT)})"

    return re.sub(r"(\[[^\]]*\])\(([^)\s]+)\)", link, text)


def api() -> str:
    """Every public name, with its signature and its docstrings."""
    names = [name for name in evergait.__all__ if not name.startswith("_")]
    first = [name for group in GROUPS.values() for name in group]
    rest: dict[str, list[str]] = {}
    for name in names:
        if name not in first:
            thing = getattr(evergait, name)
            rest.setdefault(getattr(thing, "__module__", "typing").split(".")[1:2][0], []).append(name)
    titles = {**GROUPS, **{f"evergait.{module}": tuple(found) for module, found in rest.items()}}
    text = ["# API reference", "", "Everything in `evergait` that is public; written from its docstrings.", ""]
    for title, group in titles.items():
        text += [f"## {title}", ""]
        for name in group:
            text += _describe(name, getattr(evergait, name))
    return "\n".join(text) + "\n"


def _describe(name: str, thing: Any) -> list[str]:
    text = [f"### {name}", ""]
    if not inspect.isclass(thing) and not inspect.isfunction(thing):
        return [*text, f"`{thing}`".replace("|", "or"), ""]
    with contextlib.suppress(ValueError):
        text += ["```text", f"{name}{_signature(thing)}", "```", ""]
    text += [_prose(inspect.getdoc(thing) or ""), ""]
    if inspect.isclass(thing):
        fields = _fields(thing)
        members = {
            key: member
            for key, member in vars(thing).items()
            if not key.startswith("_") and (callable(member) or isinstance(member, property)) and inspect.getdoc(member)
        }
        rows = [f"| `{key}` | {_cell(words)} |" for key, words in fields.items()]
        rows += [
            f"| `{key}{'' if isinstance(m, property) else '()'}` | {_cell(inspect.getdoc(m))} |"
            for key, m in members.items()
        ]
        if rows:
            text += ["| | |", "|---|---|", *rows, ""]
    return text


def _signature(thing: Any) -> str:
    """A parameter per line if there are many; annotations as they are written."""
    text = str(inspect.signature(thing)).replace("evergait.", "")
    return text if len(text) < 100 else re.sub(r", (?=\w+: )", ",\n    ", text)


def _fields(cls: type) -> dict[str, str]:
    """Fields of a dataclass with the strings that are written below them."""
    bases = [base for base in reversed(cls.__mro__) if base.__module__.startswith("evergait.")]
    return {name: words for base in bases for name, words in field_docs(base).items()}


def _prose(text: str) -> str:
    """A docstring as Markdown: examples become blocks."""
    return re.sub(r"((?:^>>>.*\n?)(?:^(?!\s*$).*\n?)*)", r"\n```pycon\n\1\n```\n", text, flags=re.MULTILINE)


def _cell(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split()).replace("|", "\\|")


def commands() -> str:
    """What every command says of itself."""
    listing = _printed("--help")
    text = [
        "# Commands",
        "",
        "What `evergait --help` and `evergait COMMAND --help` say.",
        "",
        "```text",
        listing,
        "```",
        "",
    ]
    for name in re.findall(r"^  (\w+) {2,}", listing, re.MULTILINE):
        text += [
            f"## evergait {name}",
            "",
            "```text",
            _printed(name, "--help-all" if name == "train" else "--help"),
            "```",
            "",
        ]
    return "\n".join(text)


def _printed(*arguments: str) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        cli(list(arguments))
    return re.sub(r"\x1b\[[0-9;]*m", "", output.getvalue()).rstrip()


def notebook_page(notebook: dict[str, Any], name: str) -> str:
    """A notebook with its outputs as a page; its first cell has the badge that opens it elsewhere."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts += [source, ""] if cell["cell_type"] == "markdown" else ["```python", source, "```", ""]
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            words = "".join(output.get("text", data.get("text/plain", [])))
            if "text/html" in data:
                parts += ["".join(data["text/html"]), ""]
            elif words:
                parts += ["```text", words.rstrip(), "```", ""]
    parts[1:1] = ["", f"[The notebook itself]({name})"]
    return "\n".join(parts) + "\n"


def work_from_disk(site: Path) -> None:
    """Zensical's pages ask a host for what lets search work from disk; ours is beside them."""
    for page in site.rglob("*.html"):
        to_root = "../" * (len(page.relative_to(site).parts) - 1)
        page.write_text(page.read_text().replace(SHIM, f"{to_root}assets/file-worker.js"))


if __name__ == "__main__":
    if sys.argv[1:] == ["--from-disk"]:
        work_from_disk(ROOT / "build" / "site")
        sys.exit(0)
    write_pages()
    sys.stdout.write(f"Wrote {len(list(PAGES.rglob('*.md')))} pages.\n")
