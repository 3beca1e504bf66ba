"""`evergait lab`: a page in which robots live and are trained."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from evergait.commands.base import console, make_folder, open_page, write_output
from evergait.core.data import require


@dataclass(frozen=True)
class Lab:
    """Write one file in which robots live: push them, drag through the stream, train them on. It works offline."""

    output: tyro.conf.Positional[Path]
    """File to write, such as lab.html."""
    folder: Path | None = None
    """Folder of a run or a study whose policies it shows; a walker that ships with evergait if not given."""
    store: Path | None = None
    """Where the run's phases are, if `train --store` has put them outside its folder."""
    open: bool = False
    """Open it in a browser, where there is one."""

    def run(self) -> int:
        """Write the page."""
        from evergait.live.lab import render_lab

        require(self.output.suffix == ".html", "output", str(self.output), "a name that ends in .html")
        content = render_lab(self.folder, self.store).encode(errors="replace")
        make_folder(self.output.parent)
        write_output(self.output, content)
        console.print(f"Wrote {self.output} ({len(content) / 1e6:.1f} MB).", markup=False, soft_wrap=True)
        if self.open:
            open_page(self.output.resolve().as_uri())
        return 0
