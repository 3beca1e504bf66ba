"""What ships: runs on streams of tasks, and robots that have learnt one task well; all phases in one archive."""

import importlib.resources
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergait.config import config_from_data
from evergait.core.errors import EvergaitError, nearest
from evergait.core.files import JSON_LIMIT, parse_object
from evergait.store.archive import archive_path, read_member
from evergait.store.phases import PhaseStore
from evergait.training.run import Run
from evergait.zoo.card import final_returns, share

SHIPPED = Path(str(importlib.resources.files("evergait"))) / "zoo" / "runs"
"""The store; runs.zip beside it has its phases, and runs.json: name → hashes of the phases, config."""
ROBOTS = {"hopper": "Hopper-v5", "swimmer": "Swimmer-v5", "walker": "Walker2d-v5", "cheetah": "HalfCheetah-v5"}
"""Names of what `pretrained` has, and the task that each has learnt."""


@dataclass(frozen=True)
class Entry:
    """A trained policy."""

    name: str

    @property
    def run(self) -> Run:
        """What it was trained by, and what came out."""
        described = shipped_runs()[self.name]
        store = PhaseStore(SHIPPED)
        phases = tuple(map(store.folder, described["phases"]))
        return Run(SHIPPED, config_from_data(described["config"], f"zoo {self.name}"), phases)

    @property
    def returns(self) -> dict[str, float]:
        """Mean return on each task at the end of its stream."""
        return final_returns(self.run)


def shipped_runs() -> dict[str, Any]:
    """Name → what runs.json says of a run."""
    path = archive_path(SHIPPED)
    return parse_object(read_member(path, "runs.json", JSON_LIMIT), f"{path}: runs.json")


def catalogue() -> dict[str, Entry]:
    """Name → what ships, but for the robots of `pretrained`."""
    return {name: Entry(name) for name in shipped_runs() if name not in ROBOTS}


def pretrained(name: str) -> Run:
    """The run of a robot that has learnt one task well: hopper, swimmer, walker or cheetah.

    >>> pretrained("walker").config.stream
    ('Walker2d-v5',)
    """
    if name not in list(ROBOTS):
        raise EvergaitError(f"pretrained: there is no robot {name!r}{nearest(name, ROBOTS)}")
    return Entry(name).run


def get(name: str, out: Path) -> Run:
    """Copy a policy that ships into a folder of its own: a run, which every command takes."""
    known = catalogue()
    if name not in known:
        raise EvergaitError(f"zoo: there is no policy {name!r}{nearest(name, known)}; owner/name is one on the hub")
    require_new(out)
    share(known[name].run, out, name)
    return Run.load(out)


def require_new(out: Path) -> None:
    """Nothing that is there is written over."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise EvergaitError(f"out: {out} is there already; choose a folder that is not")
