"""All tables, claims and figures of a study, as files beside its phases."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl

from evergait.analysis.tables import (
    extrema_tables,
    multi_task_table,
    runs_table,
    single_task_table,
    summary_table,
)
from evergait.core.files import make_own_folder, write_atomically
from evergait.core.signals import interruptible
from evergait.core.table import Table
from evergait.figures.bars import budget_interference_figure, heads_interference_figure, pairwise_figure
from evergait.figures.curves import baselines_figure, budgets_figure, curve_figures
from evergait.figures.plane import plane_figure
from evergait.figures.ranges import ranges_figures
from evergait.figures.style import SETTINGS, Picture
from evergait.paper.claims import claims_table
from evergait.paper.ranges import ranges_table
from evergait.studies.results import Results


def all_tables(results: Results) -> list[Table]:
    """Every table that has a row."""
    tables = [
        summary_table(results),
        claims_table(results),
        single_task_table(results),
        multi_task_table(results),
        *extrema_tables(results),
        ranges_table(results),
        runs_table(results),
    ]
    return [table for table in tables if table.rows]


def all_figures(results: Results, measure: bool = True, threads: int | None = None) -> list[Picture]:
    """Every figure; with `measure` false nothing is simulated."""
    with mpl.rc_context(SETTINGS):
        return [
            *curve_figures(results),
            budgets_figure(results),
            baselines_figure(results),
            pairwise_figure(results, "backward"),
            pairwise_figure(results, "forward"),
            budget_interference_figure(results),
            heads_interference_figure(results),
            *ranges_figures(results),
            plane_figure(results, measure, threads),
        ]


def all_files(results: Results, threads: int | None = None) -> Iterator[tuple[Path, bytes]]:
    """Tables as CSV, Markdown and LaTeX in tables/, figures as PNG and PDF in figures/."""
    for table in all_tables(results):
        yield from ((Path("tables", name), content) for name, content in table.files())
    for picture in all_figures(results, threads=threads):
        yield from ((Path("figures", name), content) for name, content in picture.files())


def write_artifacts(results: Results, folder: Path | None = None, threads: int | None = None) -> None:
    """Write every file; a signal may stop the work on the next one, but never its writing."""
    if not results.entries:
        return
    folder = folder or results.path
    for part in ("tables", "figures"):
        make_own_folder(folder / part)
    files = all_files(results, threads)
    while True:
        with interruptible():
            file = next(files, None)
        if file is None:
            return
        write_atomically(folder / file[0], file[1])
