"""Single tasks with the preset fast: fills in docs/methods.md from results/fast.

python scripts/fast.py [--play]

With --play, every policy first plays fifty fresh episodes in plain Gymnasium, and fresh.json has what came of it;
`evergait study pack results/fast` packs it, and `python scripts/zoo.py` then ships the best of each robot.
"""

import argparse
import sys
from contextlib import closing
from pathlib import Path
from statistics import fmean, median
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from pages import fill_in, fresh_episodes, markdown  # noqa: E402

from evergait.config import Evaluation  # noqa: E402
from evergait.core.files import write_json  # noqa: E402
from evergait.core.table import Table  # noqa: E402
from evergait.studies.folder import load_results  # noqa: E402
from evergait.studies.results import Entry  # noqa: E402
from evergait.tasks import parse_task  # noqa: E402
from evergait.tasks.base import short  # noqa: E402
from evergait.training.evaluate import Evaluator, as_recorded  # noqa: E402
from evergait.workers import LocalWorkers  # noqa: E402

FOLDER = ROOT / "results" / "fast"
EPISODES, EPISODE_SEED = 50, 2026
"""The seed decides the episodes, which training and its evaluations have not seen."""
ARS = {"Hopper-v5": 3120, "Swimmer-v5": 325, "Walker2d-v5": 4390, "HalfCheetah-v5": 3430}
"""Thresholds of Mania et al. 2018 (arXiv:1803.07055), for an older version of these tasks."""
BEST = {"Hopper-v5": 3618, "Swimmer-v5": 366, "Walker2d-v5": 5007, "HalfCheetah-v5": 12139}
"""The best that libraries publish for older versions: TRPO of rl-zoo3 (the first two), SAC of Tianshou."""


def play(entry: Entry, workers: LocalWorkers, n_episodes: int = EPISODES) -> list[float]:
    """Returns of the policy at the end of a run in fresh episodes, by gymnasium.make(...).step."""
    run, task = entry.run, parse_task(entry.run.config.stream[0])
    evaluator = Evaluator(run.policy, {task: "gymnasium"}, workers, Evaluation(), EPISODE_SEED)
    state = run.state(-1)
    outcome = workers.run("gymnasium", evaluator.episodes(state.theta, task, state.statistics, n_episodes))
    return [round(value, 2) for value in as_recorded(outcome).tolist()]


def played(entries: tuple[Entry, ...]) -> dict[str, dict[str, Any]]:
    """Digest of θ → what that policy did in Gymnasium; what has been played is not played again."""
    known = fresh_episodes(FOLDER)
    with closing(LocalWorkers(1)) as workers:
        return {
            entry.run.theta_sha256: known.get(entry.run.theta_sha256)
            or {"task": entry.run.config.stream[0], "seed": entry.seed, "returns": play(entry, workers)}
            for entry in entries
        }


def parts() -> dict[str, str]:
    """The page's part: how many seeds of each task pass."""
    rows = fresh_episodes(FOLDER).values()
    lines = []
    for task, threshold in ARS.items():
        means = sorted(fmean(row["returns"]) for row in rows if row["task"] == task)
        counts = (
            f"{mark:,}: {sum(mean >= mark for mean in means)} of {len(means)}" for mark in (threshold, BEST[task])
        )
        lines.append((short(task), *counts, f"{median(means):,.0f}", ", ".join(f"{mean:,.0f}" for mean in means)))
    caption = f"Mean returns of {EPISODES} fresh episodes in plain Gymnasium, one number per seed"
    columns = ("task", "ARS's threshold: seeds that pass", "best published: seeds that pass", "median", "all")
    return {"fast": markdown(Table("fast", caption, columns, tuple(lines)))}


def main() -> None:
    """Play if asked to, and fill in the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--play", action="store_true")
    if parser.parse_args().play:
        write_json(FOLDER / "fresh.json", played(load_results(FOLDER).entries))
    fill_in("methods.md", parts())


if __name__ == "__main__":
    main()
