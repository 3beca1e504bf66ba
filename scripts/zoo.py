"""What ships in the package: writes src/evergait/zoo/runs.zip.

python scripts/zoo.py

The robots are the best seeds of results/fast by what they earned in plain Gymnasium. The two streams are runs of the
study `methods`, trained here once more (a minute or two), with some policies on the way.
"""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

from pages import fresh_episodes

from evergait.core.data import to_data
from evergait.core.files import write_json
from evergait.store.archive import archive_path
from evergait.store.pack import pack
from evergait.studies.base import read_study
from evergait.studies.cells import study_cells
from evergait.studies.folder import load_results
from evergait.training.run import Run, train
from evergait.zoo.card import CHOICE

ROOT = Path(__file__).parent.parent
FAST = ROOT / "results" / "fast"
ROBOTS = {"hopper": "Hopper-v5", "swimmer": "Swimmer-v5", "walker": "Walker2d-v5", "cheetah": "HalfCheetah-v5"}
"""Name → the task that its robot has learnt."""
STREAMS = {"hsw-naive": "naive", "hsw-distill": "distill"}
"""Name → condition of the study `methods`, on its first order and with its first seed."""


def robots() -> dict[str, tuple[Run, str]]:
    """The best run of each task, and a sentence on that."""
    found = {}
    played = {theta: fmean(row["returns"]) for theta, row in fresh_episodes(FAST).items()}
    for name, task in ROBOTS.items():
        runs = [entry.run for entry in load_results(FAST).entries if entry.run.config.stream == (task,)]
        means = {run.theta_sha256: played[run.theta_sha256] for run in runs}
        best = max(runs, key=lambda run: means[run.theta_sha256])
        words = (
            f"It is the best of {len(runs)} seeds by the mean of 50 fresh episodes in plain Gymnasium: "
            f"{max(means.values()):,.0f}, where the median is {median(means.values()):,.0f}."
        )
        found[name] = best, words
    return found


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
        chosen = {**{name: (run, CHOICE) for name, run in streams(Path(folder)).items()}, **robots()}
        root = Path(folder) / "shipped" / "runs"
        for phase in {phase.name: phase for run, _ in chosen.values() for phase in run.phases}.values():
            phase.copy_to(root / phase.name)
        described = {
            name: {"phases": [phase.name for phase in run.phases], "config": to_data(run.config), "choice": words}
            for name, (run, words) in chosen.items()
        }
        write_json(root.parent / "runs.json", described)
        pack(root)
        shutil.copy(archive_path(root), archive_path(ROOT / "src" / "evergait" / "zoo" / "runs"))


if __name__ == "__main__":
    main()
