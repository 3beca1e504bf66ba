"""What ships: folders of runs in `policies/`, and one robot each in `pretrained/`."""

import importlib.resources
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from evergait.config import config_from_data
from evergait.core.errors import EvergaitError, nearest
from evergait.core.files import read_json
from evergait.store.phases import PhaseStore
from evergait.training.run import Run

POLICIES = Path(str(importlib.resources.files("evergait"))) / "zoo" / "policies"
PRETRAINED = POLICIES.parent / "pretrained"
ROBOTS = {"hopper": "Hopper-v5", "swimmer": "Swimmer-v5", "walker": "Walker2d-v5", "cheetah": "HalfCheetah-v5"}
"""Names of what `pretrained` has, and the task that each has learnt."""


@dataclass(frozen=True)
class Entry:
    """A trained policy."""

    name: str
    path: Path

    @property
    def run(self) -> Run:
        """What it was trained by, and what came out."""
        return Run.load(self.path)

    @property
    def returns(self) -> dict[str, float]:
        """Mean return on each task at the end of its stream."""
        return final_returns(self.run)


def final_returns(run: Run) -> dict[str, float]:
    """Mean return on each task at the end of a run."""
    last = run.ledger.records[-1]
    return {task: fmean(returns) for task, returns in last.returns.items()}


def catalogue() -> dict[str, Entry]:
    """Name → what ships."""
    return {path.name: Entry(path.name, path) for path in sorted(POLICIES.iterdir()) if (path / "run.json").exists()}


def pretrained(name: str) -> Run:
    """The run of a robot that has learnt one task well: hopper, swimmer, walker or cheetah.

    >>> pretrained("walker").config.stream
    ('Walker2d-v5',)
    """
    if name not in ROBOTS:
        raise EvergaitError(f"pretrained: there is no robot {name!r}{nearest(name, ROBOTS)}")
    described = read_json(PRETRAINED / "runs.json")[name]
    phase = PhaseStore(PRETRAINED).folder(described["phase"])
    return Run(PRETRAINED, config_from_data(described["config"], f"pretrained {name}"), (phase,))


def get(name: str, out: Path) -> Run:
    """Copy a policy that ships into a folder of its own: a run, which every command takes."""
    known = catalogue()
    if name not in known:
        raise EvergaitError(f"zoo: there is no policy {name!r}{nearest(name, known)}; owner/name is one on the hub")
    copy(known[name].path, out)
    return Run.load(out)


def copy(source: Path, out: Path) -> None:
    """All files of a run, as files; nothing that is there is written over."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise EvergaitError(f"out: {out} is there already; choose a folder that is not")
    for path in sorted(source.rglob("*")):
        inside = path.relative_to(source)
        if path.is_file() and not path.is_symlink() and not any(part.startswith(".") for part in inside.parts):
            target = out / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
