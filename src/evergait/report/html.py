"""The page: one file with its styles, scripts and data inside, that asks nothing of any network."""

import base64
import functools
import hashlib
import importlib.resources
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import evergait
from evergait.analysis import curves, transfer
from evergait.analysis.groups import Group, group_entries, without_unfinished
from evergait.analysis.plane import plane_data
from evergait.analysis.summary import Summary, headline, number, percent, summarise
from evergait.core.names import short
from evergait.report import redo
from evergait.report.axes import domain, tick_label, ticks
from evergait.report.catalogue import Catalogue, Starts
from evergait.report.escape import script_json
from evergait.report.films import SECONDS as FILM_SECONDS
from evergait.report.films import page_films
from evergait.report.plane import sketch
from evergait.report.still import strobe
from evergait.report.tables import claims_of, tables_of
from evergait.studies.folder import is_study
from evergait.studies.results import Results, order_name
from evergait.training.run import Run

ASSETS = importlib.resources.files("evergait.report") / "assets"
STYLES = ("colours.css", "page.css", "player.css")
SCRIPTS = ("core.js", "chart.js", "plane.js", "gait.js", "player.js", "page.js")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "1 4", "12 4", "5 2 1 2", "3 3")
"""Line styles, by task; the same as in assets/core.js."""

CAP = 2.0
"""R̂ beyond this is drawn at the edge, with its number: one lucky task must not squeeze all the others."""


def render_report(results: Results, cache: Path | None = None) -> str:
    """The whole report as HTML."""
    everything = group_entries(results)
    groups = without_unfinished(everything)
    tasks = all_tasks(groups)
    streams = [group for group in groups if group.condition != "single"] or groups
    sequences = [group for group in streams if all(len(learning) == 1 for learning in group.learning)]
    summaries = summarise(groups)
    catalogue = Catalogue(tasks, cache)
    catalogue.fill(groups)
    starts = catalogue.starts(groups)
    films = page_films(catalogue, groups, starts)
    plane = sketch(plane_data(results, measure=False), tasks) if is_study(results.path) else None
    panels = [curves.panel(group, {task: i for i, task in enumerate(tasks)}) for group in groups]
    any_end = any(row.end is not None for summary in summaries for row in summary.rows)
    backward, forward = transfer.pairwise(streams, "backward"), transfer.pairwise(streams, "forward")
    interference = transfer.interference(streams) if any(group.n_stages > 1 for group in streams) else []
    by_order = transfer.interference_by_order(streams)
    tables = tables_of(results) if groups else []
    # The claims are about streams: a study of one task has nothing to say about them.
    claims = (
        claims_of(results)
        if sequences and all(len(group.entries[0].run.config.stages()) > 1 for group in sequences)
        else []
    )
    values = [v for s in summaries for row in s.rows for v in (row.learnt, *row.learnt_values, *row.end_values)]
    page = {
        "title": results.title,
        "description": results.description,
        "path": str(results.path),
        "headline": headline(summaries),
        "summaries": summaries,
        "counts": counts,
        "any_end": any_end,
        "any_forward": bool(forward),
        "advice": advice(groups, summaries),
        "n_unfinished": len(everything) - len(groups),
        "best_source": _source(results),
        "domain": domain([min(value, CAP) for value in values], 0.0, 1.0),
        "cap": CAP,
        "panels": panels,
        "orders": list(dict.fromkeys(group.order for group in groups)),
        "in_steps": any(metrics.ledgers[0].every_steps for group in groups for metrics in group.metrics),
        "many_seeds": any(len(group.entries) > 1 for group in groups),
        "many_orders": any(bar.n > 1 for chart in backward for bar in chart.bars),
        "matrices": [transfer.matrix(group) for group in groups],
        "backward": backward,
        "forward": forward,
        "interference": interference,
        "domain_backward": bar_domain(backward),
        "domain_forward": bar_domain(forward),
        "interference_by_order": by_order,
        "domain_interference": bar_domain([*interference, *by_order]),
        "claims": claims,
        "tables": tables,
        "commands": redo.commands(results),
        "facts": redo.facts(results),
        "settings": redo.settings(results.entries),
        "dashes": DASHES,
        "films": films,
        "film_seconds": FILM_SECONDS,
        "plane": plane,
    }
    page["sections"] = [
        (anchor, name)
        for anchor, name, shown in (
            ("gaits", "Gaits", catalogue.shelves),
            ("curves", "Curves", panels),
            ("matrix", "Matrix", panels),
            ("transfer", "Transfer", backward or forward),
            ("plane", "Plane", plane),
            ("claims", "Claims", claims),
            ("tables", "Tables", tables),
            ("redo", "Redo", True),
        )
        if shown
    ]
    data = {"panels": panels, "plane": plane and plane.data, **player_data(tasks, catalogue, starts)}
    return render("report.html", data, tasks=tasks, **player_page(tasks, catalogue, starts), **page)


def render_gait(task: str, colour: int, label: str, run: Run, robot: dict[str, Any], gait: dict[str, Any]) -> str:
    """A page with one player and one gait."""
    condition, order = run.config.method.name, order_name(run.config.stream)
    moment = {"label": label, "stage": 0, "generation": 0, "learnt": [], "gaits": {colour: 0}}
    shelf = {"condition": condition, "order": order, "seed": run.config.seed, "moments": [moment]}
    names = [""] * colour + [short(task)]
    data = {
        "panels": [],
        "plane": None,
        "tasks": names,
        "robots": {str(colour): robot},
        "gaits": [{key: value for key, value in gait.items() if key != "id"}],
        "shelves": [shelf],
        "task": colour,
        "starts": {str(colour): 0},
    }
    page = {"robots": [colour], "messages": [], "stills": [still(robot, gait, colour, label)], "alone": True}
    return render("play.html", data, title=f"{short(task)}, {label}", tasks=names, **page)


def all_tasks(groups: Sequence[Group]) -> tuple[str, ...]:
    """Every task, in the order in which streams learn them: its place decides its colour everywhere."""
    learnt = [task for group in groups for learning in group.learning for task in learning]
    return tuple(dict.fromkeys([*learnt, *(task for group in groups for task in group.tasks)]))


def player_data(tasks: Sequence[str], catalogue: Catalogue, starts: Starts) -> dict[str, Any]:
    """What player.js reads."""
    return {
        "tasks": [short(task) for task in tasks],
        "robots": {str(index): robot for index, robot in sorted(catalogue.robots.items())},
        "gaits": catalogue.gaits,
        "shelves": catalogue.shelves,
        "task": max(starts, key=lambda task: starts[task][0], default=None),
        "starts": {str(task): shelf for task, (_, shelf) in sorted(starts.items())},
    }


def player_page(tasks: Sequence[str], catalogue: Catalogue, starts: Starts) -> dict[str, Any]:
    """What the player's template reads: who can be watched, and stills for readers without JavaScript."""
    stills = [{"picture": Markup(""), "caption": ""}] * 2
    if starts and catalogue.shelves:
        task = max(starts, key=lambda task: starts[task][0])
        number = starts[task][1]
        ends = catalogue.ends(task, number)
        for i, moment in enumerate((ends[0], ends[-1])):
            label = f"{short(tasks[task])}, {catalogue.shelves[number]['condition']}, {moment['label']}"
            stills[i] = still(catalogue.robots[task], catalogue.gaits[moment["gaits"][task]], task, label)
    return {
        "robots": sorted(catalogue.robots),
        "shelves": catalogue.shelves,
        "messages": catalogue.messages,
        "stills": stills,
        "alone": False,
    }


def still(robot: dict[str, Any], gait: dict[str, Any], task: int, label: str) -> dict[str, Any]:
    """A picture of a gait and what it shows."""
    ending = {"terminated": ", ended early"}.get(gait["ended"], "")
    caption = f"{label}: return {gait['return']:.0f} in {gait['seconds']:.1f} s{ending}"
    return {"picture": strobe(robot, gait, task, label), "caption": caption}


def render(template: str, data: dict[str, Any], **page: Any) -> str:
    """A template with the styles, the scripts and their data put in."""
    script = asset_script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        templates()
        .get_template(template)
        .render(
            **page,
            data=script_json(data),
            script=Markup(script),  # noqa: S704 - our own file
            script_hash=f"sha256-{digest}",
            style=Markup("\n".join((ASSETS / name).read_text() for name in STYLES)),  # noqa: S704 - our own files
            version=evergait.__version__,
        )
    )


@functools.cache
def asset_script() -> str:
    """All scripts as one function of its own, so that nothing leaks; the page's policy names its hash."""
    body = "\n".join((ASSETS / name).read_text() for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{body}}})();'


@functools.cache
def templates() -> jinja2.Environment:
    """Templates that escape everything and refuse what is not given."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("evergait.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "short": short,
        "number": number,
        "percent": percent,
        "ticks": ticks,
        "tick_label": tick_label,
        "heat": lambda value: f"{0.5 * min(max(value, 0.0), 1.0):.2f}",
        "capitalise": lambda text: text[:1].upper() + text[1:],
    }
    return environment


def counts(summary: Summary) -> str:
    """How many runs a summary is made of."""
    orders = f"{summary.n_orders} orders" if summary.n_orders > 1 else "one order"
    return f"{orders}, {summary.n_seeds} seeds" if summary.n_seeds > 1 else f"{orders}, one seed"


def advice(groups: Sequence[Group], summaries: Sequence[Summary]) -> str:
    """What the reader should not conclude from so little."""
    if not summaries:
        return ""
    if not any(row.end is not None for summary in summaries for row in summary.rows):
        return "Only one task has been learnt so far: whether it is kept shows when another one follows."
    if all(len(group.entries) == 1 for group in groups):
        return "One seed: these numbers say what happened, not what usually happens. More seeds give intervals."
    return ""


def _source(results: Results) -> str:
    sources = dict.fromkeys(results.normaliser(entry.seed).source for entry in results.entries)
    return "; ".join(sources).replace("-v5", "")


def bar_domain(charts: Sequence[transfer.Chart]) -> tuple[float, float]:
    """The range of bars, whiskers included, the same for all conditions."""
    values = [value for chart in charts for bar in chart.bars for value in (bar.value, bar.low, bar.high)]
    return domain([min(max(value, -CAP), CAP) for value in values], -0.1, 0.1)
