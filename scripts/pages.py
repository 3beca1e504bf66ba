"""Pages with parts that programs write: what stands between `<!-- name -->` and `<!-- end -->`.

docs/generated.json has a digest of every such part, so that a test sees when one was edited by hand.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from evergait.analysis.groups import Values
from evergait.core.files import parse_object
from evergait.core.table import Table
from evergait.store.archive import read_beside
from evergait.studies.folder import StoredCell, load_results, read_cells
from evergait.studies.results import Entry, Results

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
DIGESTS = DOCS / "generated.json"
PART = r"(<!-- (?P<name>[a-z ]+) -->\n)(?P<block>.*?)(<!-- end -->)"


def fill_in(page: str, blocks: dict[str, str]) -> None:
    """Replace measured parts of a page, and leave everything else as its authors wrote it."""
    path = DOCS / page
    text = path.read_text()
    for name, block in blocks.items():
        text = filled(text, name, block)
    path.write_text(text)
    digests = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
    known = {**digests.get(page, {}), **{name: digest(text, name) for name in blocks}}
    digests[page] = {name: known[name] for name in parts(text) if name in known}
    DIGESTS.write_text(json.dumps(digests, indent=2, sort_keys=True) + "\n")


def fresh_episodes(folder: Path) -> dict[str, Any]:
    """What policies of a study earned in fresh episodes: fresh.json, packed with its phases or beside them."""
    content = read_beside(folder / "phases", "fresh.json")
    return parse_object(content, folder / "fresh.json") if content else {}


def whole(folder: Path, group: Callable[[Entry | StoredCell], object]) -> Results:
    """The finished runs of a study, of those groups only, such as seeds, that have every run of theirs."""
    results, missing = load_results(folder), dict[object, set[tuple[str, str, int]]]()
    for cell in read_cells(folder)[1]:
        missing.setdefault(group(cell), set()).add((cell.condition, cell.order, cell.seed))
    done = [entry for entry in results.entries if entry.run.is_done]
    for entry in done:
        missing[group(entry)].discard((entry.condition, entry.order, entry.seed))
    return replace(results, entries=tuple(entry for entry in done if not missing[group(entry)]))


def filled(text: str, name: str, block: str) -> str:
    """A page's text with one measured part replaced."""
    text, n = re.subn(_pattern(name), lambda m: f"{m[1]}\n{block}\n\n{m[3]}", text, flags=re.DOTALL)
    if n != 1:
        raise SystemExit(f"the page has no part {name}")
    return text


def parts(text: str) -> list[str]:
    """Names of the measured parts of a page."""
    return [found["name"] for found in re.finditer(PART, text, flags=re.DOTALL)]


def digest(text: str, name: str) -> str:
    """Of what stands in one part."""
    found = re.search(_pattern(name), text, flags=re.DOTALL)
    return hashlib.sha256((found[2] if found else "").encode()).hexdigest()[:16]


def rows(page: str, name: str) -> list[list[str]]:
    """The table in a measured part, cell by cell, without its head."""
    found = re.search(_pattern(name), (DOCS / page).read_text(), flags=re.DOTALL)
    lines = [line for line in (found[2] if found else "").splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def older(results: Results) -> str:
    """A sentence on results that today's parts would not give to the bit; libm, the machine's own, is left out."""
    parts = "; ".join(words for words in results.outdated if not words.startswith("libm "))
    words = f" They were trained with an older version of a part ({parts}): training them again gives other bits."
    return words if parts else ""


def markdown(*tables: Table) -> str:
    """Tables one after the other, those without a row left out."""
    return "\n".join(table.to_markdown() for table in tables if table.rows).strip()


def with_interval(values: Values, digits: int) -> str:
    """An estimate over seeds, and its interval where there is one."""
    if not values.values.size:
        return "–"
    interval = values.interval
    return f"{values.estimate:.{digits}f}" + (
        f" [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]" if interval else ""
    )


def _pattern(name: str) -> str:
    return rf"(<!-- {name} -->\n)(.*?)(<!-- end -->)"
