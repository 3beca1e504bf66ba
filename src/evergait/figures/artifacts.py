"""All tables, claims and figures of a study, as files beside its phases."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl

from evergait.analysis.study import Analysis
from evergait.core.files import make_own_folder, write_atomically
from evergait.core.signals import interruptible
from evergait.figures.drawing import (
    SETTINGS,
    Picture,
    baselines_figure,
    budget_interference_figure,
    curve_figures,
    heads_interference_figure,
    pairwise_figure,
    plane_figure,
    ranges_figures,
    side_by_side,
)
from evergait.paper.roles import budget_orders, find_roles
from evergait.paper.study import all_tables


def all_figures(analysis: Analysis, measure: bool = True, threads: int | None = None) -> list[Picture]:
    """Every figure that has content; with `measure` false nothing is simulated."""
    with mpl.rc_context(SETTINGS):
        pictures = [
            *curve_figures(analysis),
            *baselines_figure(analysis),
            *pairwise_figure(analysis, "backward"),
            *pairwise_figure(analysis, "forward"),
            *(paper_figures(analysis) if analysis.published else ()),
        ]
        plane = plane_figure(analysis, measure, threads)
        return [*pictures, plane] if plane else pictures


def paper_figures(analysis: Analysis) -> list[Picture]:
    """The paper's own comparisons of replay budgets and of heads."""
    orders, roles = budget_orders(analysis), find_roles(analysis)
    budgets = [
        group
        for name in roles.replay
        for group in analysis.groups
        if orders and (group.condition, group.order) == (name, orders[0])
    ]
    pictures = [side_by_side(analysis, budgets, "budgets", f"Replay budgets on {orders[0]}")] if budgets else []
    bars = (*budget_interference_figure(analysis), *heads_interference_figure(analysis))
    return [*pictures, *bars, *ranges_figures(analysis.results)]


def all_files(analysis: Analysis, threads: int | None = None) -> Iterator[tuple[Path, bytes]]:
    """Tables as CSV, Markdown and LaTeX in tables/, figures as PNG and PDF in figures/."""
    for table in all_tables(analysis):
        yield from ((Path("tables", name), content) for name, content in table.files())
    for picture in all_figures(analysis, threads=threads):
        yield from ((Path("figures", name), content) for name, content in picture.files())


def write_artifacts(analysis: Analysis, folder: Path | None = None, threads: int | None = None) -> None:
    """Write every file; a signal may stop the work on the next one, but never its writing."""
    if not analysis.results.entries:
        return
    folder = folder or analysis.results.path
    for part in ("tables", "figures"):
        make_own_folder(folder / part)
    files = all_files(analysis, threads)
    while True:
        with interruptible():
            file = next(files, None)
        if file is None:
            return
        write_atomically(folder / file[0], file[1])
