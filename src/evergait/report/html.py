"""The page: one file with its styles, scripts and data inside, that asks nothing of any network."""

import base64
import functools
import hashlib
import importlib.resources
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

import evergait
from evergait.analysis.plane import plane_data
from evergait.analysis.ranking import LEARNT, Standing, headline, percent, standings
from evergait.analysis.study import Analysis
from evergait.analysis.transfer import interference, interference_by_order, matrix, pairwise, panel
from evergait.core.table import number
from evergait.report import redo
from evergait.report.catalogue import Catalogue, Starts
from evergait.report.charts import CAP, bar_domain, claims_of, panel_data, row_domains, tables_of, tick_label, ticks
from evergait.report.film import SECONDS as FILM_SECONDS
from evergait.report.film import page_films
from evergait.report.plane import sketch
from evergait.report.video import strobe
from evergait.scores.stats import MIN_SEEDS
from evergait.studies.folder import is_study
from evergait.tasks.base import short
from evergait.training.run import Run

_DANGEROUS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def script_json(data: Any) -> Markup:
    """JSON that can neither end its element nor start a comment in it.

    >>> script_json({"name": "</script>"})
    Markup('{"name":"\\\\u003c/script\\\\u003e"}')
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escaped in _DANGEROUS.items():
        text = text.replace(character, escaped)
    return Markup(text)  # noqa: S704 - everything that markup could be made of is escaped above


ASSETS = importlib.resources.files("evergait.report") / "assets"
STYLES = ("page.css",)
SCRIPTS = ("core.js", "chart.js", "plane.js", "gait.js", "player.js", "forward.js")
START = "page.js"
DASHES = ("", "7 3", "2 3", "9 3 2 3", "1 4", "12 4", "5 2 1 2", "3 3")
"""Line styles, by task; the same as in assets/core.js."""

MANY_PANELS = 12
"""With more charts than this the page opens with one order; the others are a choice away."""


@dataclass(frozen=True)
class Alive:
    """Robots that live in a report, which a layer above knows: their part of the page, its scripts, styles and data."""

    body: Markup
    script: str
    style: str
    data: dict[str, Any]


def render_report(analysis: Analysis, cache: Path | None = None, alive: Alive | None = None) -> str:
    """The whole report as HTML."""
    results, groups, tasks = analysis.results, analysis.groups, analysis.tasks
    ranked = standings(analysis)
    catalogue = Catalogue(tasks, cache)
    catalogue.fill(groups)
    starts = catalogue.starts(groups)
    films = page_films(catalogue, groups, starts)
    is_share = analysis.scale.is_share
    is_drawn = is_share and is_study(results.path)
    plane = sketch(plane_data(results, measure=False), tasks, analysis.scale) if is_drawn else None
    plane = plane if plane and plane.is_shown else None
    colours = {task: i for i, task in enumerate(tasks)}
    panels = [panel_data(panel(group), colours) for group in groups]
    backward, forward = pairwise(analysis.streams, "backward"), pairwise(analysis.streams, "forward")
    several = any(group.n_stages > 1 for group in analysis.streams)
    by_position = interference(analysis.streams) if several else []
    by_order = interference_by_order(analysis.streams)
    tables = tables_of(analysis) if groups else []
    claims = claims_of(analysis)
    domains = row_domains(ranked, tasks)
    page = {
        "title": results.title,
        "description": results.description,
        "path": str(results.path),
        "headline": headline(ranked, analysis.scale.name),
        "ranked": ranked,
        "counts": counts,
        "sentence": sentence,
        "scale": analysis.scale,
        "scale_words": analysis.scale_words,
        "any_end": any(row.was_followed for standing in ranked for row in standing.rows),
        "any_forward": bool(forward),
        "advice": advice(ranked),
        "n_unfinished": len(analysis.all_groups) - len(groups),
        "domains": domains,
        "cap": CAP,
        "is_capped": is_share and any(d[1] > CAP for d in domains.values()),
        "panels": panels,
        "conditions": list(dict.fromkeys([*(s.condition for s in ranked), *(group.condition for group in groups)])),
        "orders": list(dict.fromkeys(group.order for group in groups)),
        "most_stages": max((group.n_stages for group in groups), default=0),
        "opens_with_one_order": len(panels) > MANY_PANELS,
        "in_steps": any(metrics.ledgers[0].every_steps for group in groups for metrics in group.metrics),
        "any_interval": any(len(group.entries) >= MIN_SEEDS for group in groups),
        "matrices": [matrix(group) for group in groups],
        "backward": backward,
        "forward": forward,
        "interference": by_position,
        "domain_backward": bar_domain(backward, is_share),
        "domain_forward": bar_domain(forward, is_share),
        "interference_by_order": by_order,
        "domain_interference": bar_domain([*by_position, *by_order], is_share),
        "claims": claims,
        "tables": tables,
        "commands": redo.commands(results),
        "facts": redo.facts(results, analysis.scale_words),
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
    data |= {"isShare": is_share, "name": analysis.scale.name}
    alive = alive if catalogue.shelves else None
    if alive:
        data["live"] = alive.data
    script, style = report_script(alive.script if alive else ""), alive.style if alive else ""
    page |= player_page(tasks, catalogue, starts)
    return render("report.html", data, script, style, alive=alive, tasks=tasks, **page)


def render_gait(task: str, colour: int, label: str, run: Run, robot: dict[str, Any], gait: dict[str, Any]) -> str:
    """A page with one player and one gait."""
    condition, order = run.config.method.name, run.order
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
    page: dict[str, Any] = {
        "robots": [colour],
        "messages": [],
        "stills": [still(robot, gait, colour, label)],
        "alone": True,
    }
    return render("play.html", data, report_script(), title=f"{short(task)}, {label}", tasks=names, **page)


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


def render(template: str, data: dict[str, Any], script: str, style: str = "", **page: Any) -> str:
    """A template with the styles, its script and data put in; the page's policy names the script's hash."""
    package = page.pop("package", "evergait.report")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        templates(package)
        .get_template(template)
        .render(
            **page,
            data=script_json(data),
            script=Markup(script),  # noqa: S704 - our own files
            script_hash=f"sha256-{digest}",
            style=Markup("\n".join((*map(asset, STYLES), style))),  # noqa: S704 - our own files
            version=evergait.__version__,
        )
    )


@functools.cache
def asset(name: str) -> str:
    """A script or style of reports."""
    return (ASSETS / name).read_text()


def one_function(*parts: str) -> str:
    """Scripts as one function of its own, so that nothing leaks."""
    body = "\n".join(parts)
    return f'(() => {{\n"use strict";\n{body}}})();'


def report_script(more: str = "") -> str:
    """All scripts of a report."""
    return one_function(*map(asset, SCRIPTS), more, asset(START))


@functools.cache
def templates(package: str = "evergait.report") -> jinja2.Environment:
    """Templates of a package, and of reports, that escape everything and refuse what is not given."""
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package), jinja2.PackageLoader("evergait.report")]),
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
        "heat": lambda value: f"{0.5 * min(max(value, 0.0), 1.0):.2f}" if value == value else "0",
        "breakable": lambda text: escape(text).replace("@", Markup("@<wbr>")).replace("=", Markup("=<wbr>")),
        "capitalise": lambda text: text[:1].upper() + text[1:],
    }
    return environment


def counts(standing: Standing) -> str:
    """How many runs a standing is made of."""
    orders = f"{standing.n_orders} orders" if standing.n_orders > 1 else "one order"
    return f"{orders}, {standing.n_seeds} seeds" if standing.n_seeds > 1 else f"{orders}, one seed"


def sentence(standing: Standing) -> str:
    """What happened to each task, in words and measured numbers."""
    parts = []
    for row in standing.rows:
        name, learnt = short(row.task), number(row.learnt)
        if standing.is_share and row.learnt < LEARNT:
            parts.append(f"{name} hardly at all ({learnt})")
        elif not row.was_followed:
            last = "" if standing.together or len(standing.rows) == 1 else ", the last,"
            parts.append(f"{name}{last} to {learnt}")
        elif row.kept is None:
            parts.append(f"{name} to {learnt}, which ended at {number(row.end)}")
        elif row.end > row.learnt and number(row.end) != learnt:
            parts.append(f"{name} to {learnt}, and ended even higher, at {number(row.end)}")
        else:
            parts.append(f"{name} to {learnt}, and kept {percent(row.kept)} of it")
    return f"Learnt {'; '.join(parts)}{', all at once' if standing.together else ''}."


def advice(ranked: Sequence[Standing]) -> str:
    """What the reader should not conclude from so little."""
    if not ranked:
        return ""
    if not any(row.was_followed for standing in ranked for row in standing.rows):
        return "Only one task has been learnt so far: whether it is kept shows when another one follows."
    n_seeds = max(standing.n_seeds for standing in ranked)
    if n_seeds == 1:
        return "One seed: these numbers say what happened, not what usually happens. More seeds give intervals."
    return f"Intervals take at least {MIN_SEEDS} seeds." if n_seeds < MIN_SEEDS else ""
