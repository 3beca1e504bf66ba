"""The films of a page: robots without a plane as MuJoCo's renderer sees them, right after learning and at the end."""

import base64
import contextlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from evergait.analysis.groups import Group
from evergait.core.errors import EvergaitError
from evergait.core.files import read_bytes, write_atomically
from evergait.core.names import short
from evergait.report.catalogue import Catalogue, Starts
from evergait.report.film import film
from evergait.report.gait import Moment, Recorder, moments, recorder
from evergait.training.run import Run

FORMAT = 1
SECONDS = 6.0
"""Of an episode; `evergait play` films all of it."""
QUALITY = 3
BUDGET = 3_000_000
"""Bytes of films in one page."""


@dataclass(frozen=True)
class Film:
    """A film that a page holds inside."""

    label: str
    source: str
    """A data: address."""


def page_films(catalogue: Catalogue, groups: Sequence[Group], starts: Starts) -> list[Film]:
    """Two films per robot without a plane, of the run that the player opens; what is missing is said in words."""
    found: list[Film] = []
    missing: dict[str, list[str]] = {}
    for task, (_, number) in sorted(starts.items()):
        if catalogue.robots[task]["planar"]:
            continue
        try:
            room = BUDGET - sum(len(one.source) for one in found)
            found += _films(catalogue, groups, task, number, room)
        except EvergaitError as error:
            missing.setdefault(str(error), []).append(short(catalogue.tasks[task]))
    for reason, names in missing.items():
        words = f"{' and '.join(names)}: drawn from lines, seen obliquely; there is no film by MuJoCo, for {reason}."
        catalogue.messages.append(words)
    return found


def _films(catalogue: Catalogue, groups: Sequence[Group], task: int, number: int, room: int) -> list[Film]:
    shelf = catalogue.shelves[number]
    run = next(g for g in groups if (g.condition, g.order) == (shelf["condition"], shelf["order"])).entries[0].run
    films = []
    with closing(recorder(catalogue.tasks[task], catalogue.cache)) as one:
        for shown in catalogue.ends(task, number):
            moment = next(m for m in moments(run) if (m.stage, m.generation) == (shown["stage"], shown["generation"]))
            label = f"{short(catalogue.tasks[task])}, {shelf['condition']}, {shown['label']}"
            content = base64.b64encode(_kept(one, run, moment)).decode()
            films.append(Film(label, f"data:video/mp4;base64,{content}"))
    if sum(len(one.source) for one in films) > room:
        raise EvergaitError(f"all films in this file may weigh {BUDGET / 1e6:.0f} MB; `evergait play` makes one")
    return films


def _kept(one: Recorder, run: Run, moment: Moment) -> bytes:
    """The film from the cache, or made now."""
    played = one.played(run, moment)
    path = (one.cache or Path()) / f"{played.identity}-{FORMAT}.mp4"
    if one.cache and path.is_file():
        return read_bytes(path)
    content = film(one, played, SECONDS, QUALITY)
    if one.cache:
        with contextlib.suppress(OSError):  # a read-only folder only costs time
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
    return content
