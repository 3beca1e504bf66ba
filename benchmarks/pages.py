"""Pages of docs/ with measured parts: what stands between `<!-- name -->` and `<!-- end -->` is written by programs."""

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def fill_in(page: str, blocks: dict[str, str]) -> None:
    """Replace measured parts of a page, and leave everything else as its authors wrote it."""
    path = DOCS / page
    text = path.read_text()
    for name, block in blocks.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text, n = re.subn(pattern, lambda m, block=block: f"{m[1]}\n{block}\n\n{m[2]}", text, flags=re.DOTALL)
        if n != 1:
            raise SystemExit(f"docs/{page} has no block {name}")
    path.write_text(text)
