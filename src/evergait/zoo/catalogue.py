"""What ships: runs on streams of tasks, and robots that have learnt one task well; all phases in one archive."""

import importlib.resources
from pathlib import Path
from typing import Any

from evergait.config import config_from_data
from evergait.core.errors import EvergaitError, nearest
from evergait.core.files import JSON_LIMIT, parse_object
from evergait.store.archive import archive_path, read_member
from evergait.store.phases import PhaseStore
from evergait.training.run import Run
from evergait.zoo.card import CHOICE, share

SHIPPED = Path(str(importlib.resources.files("evergait"))) / "zoo" / "runs"
"""The store; runs.zip beside it has its phases, and runs.json: name → hashes of the phases, config, choice."""


def described() -> dict[str, Any]:
    """Name → what runs.json says, streams of tasks first."""
    path = archive_path(SHIPPED)
    return parse_object(read_member(path, "runs.json", JSON_LIMIT), f"{path}: runs.json")


def catalogue() -> dict[str, Run]:
    """Name → what ships, streams of tasks first."""
    store = PhaseStore(SHIPPED)
    return {
        name: Run(SHIPPED, config_from_data(run["config"], f"zoo {name}"), tuple(map(store.folder, run["phases"])))
        for name, run in described().items()
    }


def choice(name: str) -> str:
    """A sentence on how a run that ships was chosen."""
    return str(described()[name].get("choice", CHOICE))


def pretrained(name: str) -> Run:
    """A run that ships, as `evergait zoo` lists them: hopper, swimmer, walker and cheetah have learnt one task well.

    >>> pretrained("walker").config.stream
    ('Walker2d-v5',)
    """
    known = catalogue()
    if name not in list(known):
        raise EvergaitError(f"zoo: there is no policy {name!r}{nearest(name, known)}")
    return known[name]


def get(name: str, out: Path) -> Run:
    """Copy a policy that ships into a folder of its own: a run, which every command takes."""
    run = pretrained(name)
    require_new(out)
    share(run, out, name, choice(name))
    return Run.load(out)


def require_new(out: Path) -> None:
    """Nothing that is there is written over."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise EvergaitError(f"out: {out} is there already; choose a folder that is not")
