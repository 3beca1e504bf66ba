"""The preset fast, on single tasks and in every order: fills in docs/methods.md from results/fast and results/orders.

python scripts/fast.py [--play]

With --play, every policy of a single task first plays fifty fresh episodes in plain Gymnasium, and fresh.json has what
came of it; `evergait study pack results/fast` packs it, and `python scripts/zoo.py` then ships the best of each robot.
"""

import argparse
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import matplotlib as mpl  # noqa: E402
import numpy as np  # noqa: E402
from pages import DOCS, fill_in, fresh_episodes, markdown, whole, with_interval  # noqa: E402

from evergait.analysis.groups import Values  # noqa: E402
from evergait.config import Evaluation  # noqa: E402
from evergait.core.arrays import Float64  # noqa: E402
from evergait.core.files import write_json  # noqa: E402
from evergait.core.table import Table  # noqa: E402
from evergait.figures.drawing import SETTINGS, Picture, legend_below, panels, task_colours  # noqa: E402
from evergait.paper.numbers import SINGLE_TASK  # noqa: E402
from evergait.studies.folder import load_results  # noqa: E402
from evergait.studies.results import Entry  # noqa: E402
from evergait.tasks import parse_task  # noqa: E402
from evergait.tasks.base import short  # noqa: E402
from evergait.training.evaluate import Evaluator, as_recorded  # noqa: E402
from evergait.workers import LocalWorkers  # noqa: E402
from evergait.zoo.card import final_returns  # noqa: E402

FOLDER, ORDERS = ROOT / "results" / "fast", ROOT / "results" / "orders"
EPISODES, EPISODE_SEED = 50, 2026
"""The seed decides the episodes, which training and its evaluations have not seen."""
ARS = {"Hopper-v5": 3120, "Swimmer-v5": 325, "Walker2d-v5": 4390, "HalfCheetah-v5": 3430}
"""Thresholds of Mania et al. 2018 (arXiv:1803.07055), for an older version of these tasks."""
BEST = {"Hopper-v5": 3754.2, "Swimmer-v5": 365.7, "Walker2d-v5": 5007, "HalfCheetah-v5": 12139}
"""The best that libraries publish for older versions: TQC and TRPO of rl-zoo3, SAC of Tianshou (the last two)."""
SHARE = 0.9
"""Of what is reached alone, and of the paper's, that every task is to end with in every order."""


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


def means_of(task: str) -> list[float]:
    """Of every seed, the least first."""
    return sorted(fmean(row["returns"]) for row in fresh_episodes(FOLDER).values() if row["task"] == task)


def single_tasks() -> str:
    """How many seeds of each task pass."""
    lines = []
    for task, threshold in ARS.items():
        means = means_of(task)
        counts = (
            f"{mark:,}: {sum(mean >= mark for mean in means)} of {len(means)}" for mark in (threshold, BEST[task])
        )
        lines.append((short(task), *counts, f"{median(means):,.0f}", ", ".join(f"{mean:,.0f}" for mean in means)))
    caption = f"Mean returns of {EPISODES} fresh episodes in plain Gymnasium, one number per seed"
    columns = ("task", "ARS's threshold: seeds that pass", "best published: seeds that pass", "median", "all")
    return markdown(Table("fast", caption, columns, tuple(lines)))


def returns(entries: tuple[Entry, ...]) -> dict[str, dict[str, list[float]]]:
    """Order → task → returns at the end of its streams, by seed; a task on its own is an order too."""
    found: dict[str, dict[str, list[float]]] = {}
    for entry in sorted(entries, key=lambda entry: entry.seed):
        for task, value in final_returns(entry.run).items():
            found.setdefault(entry.order, {}).setdefault(task, []).append(value)
    return found


def orders() -> tuple[Entry, ...]:
    """Every order of those seeds that have all of them."""
    return whole(ORDERS, lambda run: run.seed).entries


def marks_of(found: dict[str, dict[str, list[float]]]) -> dict[str, Mapping[str, float]]:
    """What every task is held against: its mean alone, and the paper's."""
    alone = {task: fmean(values) for tasks in found.values() if len(tasks) == 1 for task, values in tasks.items()}
    return {"alone": alone, "the paper's": SINGLE_TASK}


@dataclass(frozen=True)
class End:
    """Returns on a task at the end of an order, by seed; the same on its own."""

    order: str
    task: str
    values: Float64
    alone: Float64

    @property
    def is_first(self) -> bool:
        """Whether the order begins with it: then it is the run on its own."""
        return self.order.startswith(short(self.task))


def ends_of(found: dict[str, dict[str, list[float]]]) -> list[End]:
    """Of all orders."""
    alone = {task: np.array(values) for ends in found.values() if len(ends) == 1 for task, values in ends.items()}
    orders = {order: ends for order, ends in found.items() if len(ends) > 1}
    return [End(order, task, np.array(v), alone[task]) for order, ends in orders.items() for task, v in ends.items()]


def passing(ends: list[End], mark: Mapping[str, float]) -> int:
    """How many come to a mark by their mean."""
    return sum(bool(end.values.mean() >= SHARE * mark[end.task]) for end in ends)


def told(name: str, ends: list[End], mark: Mapping[str, float]) -> str:
    """How many cells, ends of single runs and whole policies come to a mark."""
    later = [end for end in ends if not end.is_first]
    runs = np.concatenate([end.values >= SHARE * mark[end.task] for end in later])
    policies = [
        np.all([end.values >= SHARE * mark[end.task] for end in ends if end.order == order], axis=0)
        for order in dict.fromkeys(end.order for end in ends)
    ]
    whole_ones, alone = np.concatenate(policies), {end.task: end.alone >= SHARE * mark[end.task] for end in ends}
    return (
        f"Nine tenths of {name}: {passing(ends, mark)} of {len(ends)} cells by their mean. Of second and third tasks, "
        f"{passing(later, mark)} of {len(later)} cells, and {runs.sum()} of {len(runs)} single ones; whole policies, "
        f"with all three tasks at it, {whole_ones.sum()} of {len(whole_ones)} (learnt alone, all three with "
        f"{np.all(list(alone.values()), axis=0).sum()} of {len(ends[0].alone)} seeds)."
    )


def doubts(ends: list[End], seeds: tuple[int, ...]) -> list[str]:
    """How far second and third tasks are from nine tenths of alone and from alone, paired by seed."""
    later, above, open_ones = [end for end in ends if not end.is_first], 0, []
    for end in later:
        gap = Values(seeds, (end.order,), (end.values - SHARE * end.alone)[:, None])
        low, high = gap.interval or (-np.inf, np.inf)
        above += low > 0
        if low <= 0 <= high:
            open_ones.append(f"{short(end.task)} of {letters(end.order)} {with_interval(gap, 0)}")
    gaps = []
    for task in dict.fromkeys(end.task for end in later):
        mine = [end for end in later if end.task == task]
        gap = Values(seeds, tuple(end.order for end in mine), np.stack([end.values - end.alone for end in mine], 1))
        gaps.append(f"{short(task)} {with_interval(gap, 0)}")
    n_below = len(later) - above - len(open_ones)
    return [
        f"By 95 % intervals, paired by seed, {above} of the {len(later)} cells of second and third tasks are above "
        f"nine tenths of alone, {n_below} below it, and {len(open_ones)} undecided: {'; '.join(open_ones)}.",
        f"From alone itself, in the mean over the orders where it comes later: {'; '.join(gaps)}.",
    ]


def every_order(entries: tuple[Entry, ...]) -> str:
    """Every task of every order by both marks, and how many come to them."""
    seeds = tuple(sorted({entry.seed for entry in entries}))
    found = returns(entries)
    marks, ends = marks_of(found), ends_of(found)
    words = [f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]}), each with every order and every task alone."]
    words += [told(name, ends, mark) for name, mark in marks.items()] + doubts(ends, seeds)
    caption = (
        "Mean return of the last evaluation, 50 episodes on the planar engine (lowest and highest seed), and the mean "
        "as a share of that alone and of the paper's. Where a task comes first, it is the run alone"
    )
    tasks = list(marks["alone"])
    rows = tuple((order, *(_cell(ends.get(task), task, marks) for task in tasks)) for order, ends in found.items())
    table = Table("orders", caption, ("order", *map(short, tasks)), rows)
    return "\n\n".join(("\n".join(words), markdown(table)))


def _cell(values: list[float] | None, task: str, marks: Mapping[str, Mapping[str, float]]) -> str:
    if not values:
        return "–"
    mean = fmean(values)
    shares = ", ".join(f"{mean / mark[task]:.2f}" for mark in marks.values())
    return f"{mean:,.0f} ({min(values):,.0f} to {max(values):,.0f}): {shares}"


def picture(entries: tuple[Entry, ...]) -> None:
    """Returns at the end of every order, one panel per robot, beside both marks."""
    found = returns(entries)
    marks = marks_of(found)
    with mpl.rc_context(SETTINGS):
        figure, axes = panels(1, len(marks["alone"]), width=3.0, height=2.8)
        for (task, colour), panel in zip(task_colours(marks["alone"]).items(), axes, strict=True):
            shown = [(order, ends[task]) for order, ends in found.items() if task in ends]
            for y, (order, values) in enumerate(shown):
                face = "none" if letters(order).startswith(f"{task[0]} ") else colour  # the runs alone, once more
                at = [y] * len(values)
                panel.plot(values, at, "o", color=colour, markerfacecolor=face, markersize=3.5, alpha=0.6)
                panel.plot([fmean(values)], [y], "|", color="black", markersize=12)
            for (name, mark), line in zip(marks.items(), ("--", ":"), strict=True):
                panel.axvline(SHARE * mark[task], color="0.4", linestyle=line, label=f"{SHARE} of {name}")
            panel.set_yticks(range(len(shown)), [letters(order) for order, _ in shown])
            panel.invert_yaxis()
            panel.set_xlim(0, 1.05 * max(value for _, values in shown for value in values))
            panel.set_title(short(task))
            panel.set_xlabel("return at the end")
        legend_below(figure)
    (DOCS / "orders.png").write_bytes(dict(Picture("orders", "", figure).files())["orders.png"])


def letters(order: str) -> str:
    """An order in letters.

    >>> letters("Hopper > Swimmer > Walker2d"), letters("Hopper")
    ('H > S > W', 'alone')
    """
    tasks = order.split(" > ")
    return " > ".join(task[0] for task in tasks) if len(tasks) > 1 else "alone"


def learning() -> str:
    """Both studies in a few sentences, for the README."""
    means = {task: means_of(task) for task in ARS}
    passed, runs = sum(v >= ARS[task] for task in ARS for v in means[task]), sum(map(len, means.values()))
    each = ", ".join(f"{short(task)} {median(values):,.0f}" for task, values in means.items())
    found, n_seeds = returns(orders()), len({entry.seed for entry in orders()})
    later, marks = [end for end in ends_of(found) if not end.is_first], marks_of(found)
    alone, paper = (passing(later, mark) for mark in marks.values())
    below = [end for end in later if end.values.mean() < SHARE * end.alone.mean()]
    missed = " and ".join(f"{short(end.task)} at {end.values.mean() / end.alone.mean():.2f}" for end in below) or "none"
    return (
        f"One robot alone, with the preset `fast` (the fourth setting that was put to this test): {passed} of {runs} "
        f"runs, {runs // len(ARS)} seeds on each of four robots, end above the thresholds of "
        f"[ARS](https://arxiv.org/abs/1803.07055), which are for older versions of the tasks. Medians: {each}. "
        "[More](docs/methods.md#single-tasks-fast).\n\n"
        f"Three robots in one policy, in all six orders ({n_seeds} seeds). Each robot has its own input layer and "
        "head; they share one layer, which stays as the first robot left it (`freeze`), so nothing can be forgotten, "
        "and what is measured is how well later robots are learnt with it. Does each come to nine tenths of what the "
        f"same learner reaches on it alone? {alone} of {len(later)} do (each a later robot in one order, a mean over "
        f"seeds); the others are {missed}. {paper} of {len(later)} come to nine tenths of the paper's single-task "
        "return, an easier mark. "
        "[More](docs/methods.md#every-order-fast)."
    )


def parts() -> dict[str, dict[str, str]]:
    """What pages have of both studies."""
    page = {"fast": single_tasks(), "orders": every_order(orders())}
    return {"methods.md": page, "../README.md": {"learning": learning()}}


def main() -> None:
    """Play if asked to, and fill in the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--play", action="store_true")
    if parser.parse_args().play:
        write_json(FOLDER / "fresh.json", played(load_results(FOLDER).entries))
    for path, blocks in parts().items():
        fill_in(path, blocks)
    picture(orders())


if __name__ == "__main__":
    main()
