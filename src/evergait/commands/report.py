"""`evergait report`: results as a page."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import tyro

from evergait.commands.base import console, make_folder, open_page, write_output
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
    page = render_report(analyse(results, references), results.path / "gaits", alive(results))
    make_folder(path.parent)
    write_output(path, page.encode(errors="replace"))
    return path
