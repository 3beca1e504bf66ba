"""`evergait report`, `lab` and `watch`: results as a page, robots that live in one, and one that follows trainings."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import tyro

from evergait.commands.base import console, errors, make_folder, open_page, write_output
from evergait.core.data import require
from evergait.live.lab import alive
from evergait.paper.study import analyse
from evergait.report.html import render_report
from evergait.scores.scale import ScoreOptions
from evergait.studies.folder import load_results
from evergait.studies.results import Results


@dataclass(frozen=True)
class Report:
    """Write one self-contained page about a study or a run; it opens from disk, offline."""

    folder: tyro.conf.Positional[Path]
    """Folder of a study or a run."""
    output: Path | None = None
    """File to write; report.html in the folder if not given."""
    open: bool = False
    """Open it in a browser, where there is one."""
    store: Path | None = None
    """Where the run's phases are, if `train --store` has put them outside its folder."""
    score: ScoreOptions = field(default_factory=ScoreOptions)

    def run(self) -> int:
        """Write the page."""
        results = load_results(self.folder, self.store)
        path = write_report(results, self.output or self.folder, self.score.references())
        console.print(f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB).", markup=False, soft_wrap=True)
        if self.open:
            open_page(path.resolve().as_uri())
        return 0


def write_report(results: Results, output: Path, references: Mapping[str, float] | None = None) -> Path:
    """Write the report to `output`, or to report.html in it, and return its path. Gaits are kept in DIR/gaits."""
    path = output if output.suffix == ".html" and not output.is_dir() else output / "report.html"
    make_folder(path.parent)
    page = render_report(analyse(results, references), results.path / "gaits", alive(results))
    write_output(path, page.encode(errors="replace"))
    return path


@dataclass(frozen=True)
class Lab:
    """Write one file in which robots live: push them, drag through the stream, train them on. It works offline."""

    output: tyro.conf.Positional[Path]
    """File to write, such as lab.html."""
    folder: Path | None = None
    """Folder of a run or a study whose policies it shows; a walker that ships with evergait if not given."""
    open: bool = False
    """Open it in a browser, where there is one."""

    def run(self) -> int:
        """Write the page."""
        from evergait.live.lab import render_lab

        require(self.output.suffix == ".html", "output", str(self.output), "a name that ends in .html")
        content = render_lab(self.folder).encode(errors="replace")
        make_folder(self.output.parent)
        write_output(self.output, content)
        console.print(f"Wrote {self.output} ({len(content) / 1e6:.1f} MB).", markup=False, soft_wrap=True)
        if self.open:
            open_page(self.output.resolve().as_uri())
        return 0


@dataclass(frozen=True)
class Watch:
    """Follow trainings and studies on a local page: curves, phases, speed, and gaits of the newest checkpoint."""

    folder: tyro.conf.Positional[Path]
    """Folder of a run or a study, or one that has some below it."""
    open: bool = True
    """Open the page in a browser, where there is one; --no-open prints its address only."""
    port: int = 0
    """Port on 127.0.0.1; 0 takes a free one."""

    def run(self) -> int:
        """Serve until Ctrl-C."""
        from evergait.live.server import Server

        require(0 <= self.port < 65536, "port", self.port, "from 0 to 65535")
        server = Server(self.folder, self.port)
        if not server.answers.watches:
            errors.print(f"There is no run or study in {self.folder} yet.", markup=False, soft_wrap=True)
        console.print(server.address, markup=False, soft_wrap=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        if self.open:
            open_page(server.address)
        try:
            threading.Event().wait()
        finally:
            server.close()
        return 0
