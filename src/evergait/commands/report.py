"""`evergait report` and `evergait play`: results as a page, one gait as a page or a film."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from evergait.commands.base import console
from evergait.commands.opening import open_page
from evergait.commands.reporting import play, write_report
from evergait.commands.selection import Which, select_run
from evergait.scores.references import ScoreOptions
from evergait.studies.folder import load_results


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


@dataclass(frozen=True)
class Play:
    """Show how a run's policy moves: a page with a player, a GIF or an MP4."""

    folder: tyro.conf.Positional[Path]
    """Folder of a run or a study."""
    which: Annotated[Which, tyro.conf.arg(name="")] = field(default_factory=Which)
    task: str = ""
    """Task; the last one learnt if not given."""
    stage: int | None = None
    """After which phase of the stream, from 1; the last one finished if not given."""
    generation: int | None = None
    """One of the generations whose θ was kept; the phase's last if not given."""
    output: Path = Path("gait.html")
    """File to write; its ending (.html, .gif, .mp4) decides what it is."""

    def run(self) -> int:
        """Write the file."""
        path = play(select_run(self.folder, self.which), self.task, self.stage, self.generation, self.output)
        console.print(f"Wrote {path}.", markup=False, soft_wrap=True)
        return 0
