"""What the command line calls: a whole report, or one gait as a page, a GIF or an MP4."""

from pathlib import Path

from evergait.files import write_atomically
from evergait.report.html import render_report
from evergait.studies.results import Results


def write_report(results: Results, output: Path) -> Path:
    """Write `report.html` (or `output`, if it is a file's name) and return its path. Gaits are kept in DIR/gaits."""
    path = output / "report.html" if output.is_dir() or output.suffix != ".html" else output
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, render_report(results, results.path / "gaits").encode())
    return path
