"""What ships in the package: writes src/evergait/zoo/runs.zip.

python scripts/zoo.py

The robots are the best seeds of results/fast by what they earned in plain Gymnasium. The two streams are runs of the
study `methods`, trained here once more (a minute or two), with some policies on the way.
"""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from pages import fresh_episodes

from evergait.core.data import to_data
from evergait.core.files import write_json
from evergait.store.archive import archive_path
from evergait.store.pack import pack
from evergait.studies.base import read_study
from evergait.studies.cells import study_cells
from evergait.studies.folder import load_results
from evergait.training.run import Run, train

ROOT = Path(__file__).parent.parent
FAST = ROOT / "results" / "fast"
ROBOTS = {"hopper": "Hopper-v5", "swimmer": "Swimmer-v5", "walker": "Walker2d-v5", "cheetah": "HalfCheetah-v5"}
"""Name → the task that its robot has learnt."""
STREAMS = {"hsw-naive": "naive", "hsw-distill": "distill"}
"""Name → condition of the study `methods`, on its first order and with its first seed."""


def robots() -> dict[str, Run]:
    """The best run of each task."""
    mean = {theta: fmean(played["returns"]) for theta, played in fresh_episodes(FAST).items()}
    runs = [entry.run for entry in load_results(FAST).entries]
    return {
        name: max((run for run in runs if run.config.stream == (task,)), key=lambda run: mean[run.theta_sha256])
        for name, task in ROBOTS.items()
    }


def streams(folder: Path) -> dict[str, Run]:
    """Runs over three tasks, trained in a folder; both have the same first phase."""
    configs = {cell.condition: cell.config for cell in reversed(study_cells(read_study("methods")))}
    runs = {}
    for name, condition in STREAMS.items():
        evaluation = replace(configs[condition].evaluation, snapshots=2)
        config = replace(configs[condition], evaluation=evaluation)
        runs[name] = train(config, folder / name, store=folder / "phases", threads=2)
    return runs


def main() -> None:
    """Write the archive."""
    with tempfile.TemporaryDirectory() as folder:
        runs = {**streams(Path(folder)), **robots()}
        root = Path(folder) / "shipped" / "runs"
        for phase in {phase.name: phase for run in runs.values() for phase in run.phases}.values():
            phase.copy_to(root / phase.name)
        described = {
            name: {"phases": [phase.name for phase in run.phases], "config": to_data(run.config)}
            for name, run in runs.items()
        }
        write_json(root.parent / "runs.json", described)
        pack(root)
        shutil.copy(archive_path(root), archive_path(ROOT / "src" / "evergait" / "zoo" / "runs"))


if __name__ == "__main__":
    main()
