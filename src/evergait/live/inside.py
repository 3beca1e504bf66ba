"""Live robots inside a report: the same engine and stage, moved by the policies that its player offers."""

from dataclasses import replace

from evergait.live.lab import lab_data
from evergait.live.page import ENGINE, assets
from evergait.report.html import Alive
from evergait.studies.results import Results

SCRIPTS = (*ENGINE, "trainer.js", "unpack.js", "stage.js", "inside.js")
BUDGET = 2_000_000
"""Bytes of θ in a report; moments beyond it are watched as they were recorded."""


def alive(results: Results) -> Alive | None:
    """For the first seed of every condition and order, as the player has them; none if no robot can live in a page."""
    first = {(entry.condition, entry.order): entry for entry in reversed(results.entries)}
    data = lab_data(replace(results, entries=tuple(reversed(first.values()))), train=False, budget=BUDGET)
    return Alive(assets(*SCRIPTS), data) if data["runs"] else None
