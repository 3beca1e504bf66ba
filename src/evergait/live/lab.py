"""`evergait lab`: one file in which robots live, are pushed, forget and are trained; it needs a browser."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from evergait.core.errors import EvergaitError
from evergait.live import page
from evergait.live.page import FILES, packed_module
from evergait.live.robots import live_robot
from evergait.live.shelves import MOST_BYTES, Shelves
from evergait.report.html import Alive
from evergait.studies.folder import load_results
from evergait.studies.results import Results
from evergait.tasks import parse_task
from evergait.tasks.base import short
from evergait.training.run import edited

SAMPLE = Path(str(FILES / "sample"))
"""A study that ships with the package."""
REPORT_BYTES = 2_000_000
"""Bytes of θ in a report; moments beyond it are left out."""


def lab_data(results: Results, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """All that a page with live robots reads; what cannot live on it is said in words."""
    robots, messages = [], []
    names = dict.fromkeys(task for entry in results.entries for ledger in entry.run.ledgers for task in ledger.tasks)
    learnt = dict.fromkeys(t for entry in results.entries for ledger in entry.run.ledgers for t in ledger.learning)
    for name in [*learnt, *(name for name in names if name not in learnt)]:
        try:
            robots.append(live_robot(parse_task(name)))
        except EvergaitError as error:
            messages.append(f"{error}.")
    messages += edited(entry.run for entry in results.entries)
    shelves = Shelves(tuple(parse_task(robot["name"]) for robot in robots), most_bytes)
    shelves.fill(results)
    messages += [
        f"{short(robot['name'])} lives here but is not trained here: only NumPy draws its resets."
        for robot in robots
        if not robot["trainable"]
    ]
    for where, n in Counter("end" if end else "middle" for end in shelves.left_out.values()).items():
        told = "1 policy" if n == 1 else f"{n} policies"
        messages.append(f"Left out to keep this file small: {told} from the {where} of phases.")
    if shelves.n_untaught:
        messages.append(f"Distillation is not offered for {shelves.n_untaught} of the runs, to keep this file small.")
    return {
        "module": packed_module(),
        "robots": robots,
        "tasks": [short(robot["name"]) for robot in robots],
        "policies": shelves.policies,
        "thetas": shelves.thetas,
        "runs": shelves.runs,
        "messages": messages,
    }


def render_lab(folder: Path | None = None, store: Path | None = None) -> str:
    """The page, about a folder's runs or the ones that ship with the package."""
    results = load_results(folder or SAMPLE, store)
    data = lab_data(results)
    if not data["runs"]:
        why = " ".join(data["messages"]) or "it has no finished phase with its policy."
        raise EvergaitError(f"{folder}: no robot of it can live in a page: {why}")
    return page.render_lab(data, title=results.title, description=results.description, messages=data["messages"])


def alive(results: Results) -> Alive | None:
    """The same inside a report, for the first seed of every condition and order; none if no robot of it can live."""
    first = {(entry.condition, entry.order): entry for entry in reversed(results.entries)}
    data = lab_data(replace(results, entries=tuple(reversed(first.values()))), REPORT_BYTES)
    return page.inside_report(data) if data["runs"] else None
