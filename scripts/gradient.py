"""ES against PPO: fills in the part of docs/methods.md on a gradient method from results/gradient.jsonl.

python scripts/gradient.py
"""

import itertools
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from pages import DOCS, fill_in, markdown, with_interval  # noqa: E402

from evergait.analysis.groups import Values, table_of  # noqa: E402
from evergait.core.arrays import Float64  # noqa: E402
from evergait.core.table import Table, Value  # noqa: E402
from evergait.figures.drawing import OKABE_ITO, SETTINGS, Picture, panels, task_colours  # noqa: E402
from evergait.scores.stats import CONFIDENCE, t_quantile  # noqa: E402
from evergait.tasks.base import short  # noqa: E402

RECORDS = ROOT / "results" / "gradient.jsonl"
CONDITIONS = (("es", "naive"), ("ppo", "naive"), ("es", "replay"), ("ppo", "replay"))
NAMES = {"es": "ES", "ppo": "PPO"}
MATTERS = 0.1
"""The smallest difference of BWT that we call one; chosen before the runs."""
LEAST = 10
"""A task on which a learner's R* is not this far above random says nothing about forgetting; chosen before the runs."""
LEARNT = 0.2
"""Retention looks at tasks that had at least this share when they were left; chosen before the runs."""


@dataclass(frozen=True)
class Stream:
    """One order of one learner, method and seed."""

    tasks: tuple[str, ...]
    returns: tuple[Mapping[str, float], ...]
    """Task → mean return of 50 episodes, after every phase."""
    steps: tuple[int, ...]
    """Of every phase, replay included."""
    random: Mapping[str, float]
    best: Mapping[str, float]
    """R* of the learner."""
    left_out: frozenset[str]
    """Tasks that a learner has not learnt."""

    def share(self, task: str, stage: int) -> float:
        """(return − random) / (R* − random) after a phase."""
        return (self.returns[stage][task] - self.random[task]) / (self.best[task] - self.random[task])

    def left(self) -> list[tuple[str, float, float]]:
        """Tasks before the last: their share when they were left, and at the end."""
        tasks = [(task, i) for i, task in enumerate(self.tasks[:-1]) if task not in self.left_out]
        return [(task, self.share(task, i), self.share(task, -1)) for task, i in tasks]

    def transfer(self) -> float:
        """BWT from ends of phases: what was lost of earlier tasks, negative."""
        return float(np.mean([end - before for _, before, end in self.left()]))

    def final(self) -> float:
        """Mean share over the tasks at the end."""
        return float(np.mean([self.share(task, -1) for task in self.tasks if task not in self.left_out]))

    def without(self, task: str) -> "Stream":
        """The same, with one more task left out."""
        return replace(self, left_out=self.left_out | {task})


Streams = dict[tuple[str, str], dict[tuple[int, str], Stream]]


def load() -> tuple[Streams, dict[str, dict[str, float]], dict[str, float]]:
    """Whole streams by condition, seed and order; R* of each learner; what random policies have."""
    found, counted = {}, {}
    for line in RECORDS.read_text().splitlines():
        record = json.loads(line)
        key = record["learner"], record["method"], tuple(record["learnt"]), record["seed"]
        found[key] = {task: float(np.mean(values)) for task, values in record["returns"].items()}
        counted[key] = sum(record.get("steps", {}).values())
    random = found.pop(("random", "first", (), 0))
    best: dict[str, dict[str, float]] = {}
    for (learner, method, learnt, _), returns in found.items():
        if method == "first":
            known = best.setdefault(learner, {})
            known[learnt[0]] = max(known.get(learnt[0], -np.inf), returns[learnt[0]])
    unlearnt = frozenset(
        task for known in best.values() for task, value in known.items() if value - random[task] < LEAST
    )
    streams: Streams = {condition: {} for condition in CONDITIONS}
    for learner, method, learnt, seed in found:
        keys = [(learner, method if n else "first", learnt[: n + 1], seed) for n in range(len(learnt))]
        if len(learnt) == 3 and all(key in found for key in keys):
            phases, steps = tuple(found[key] for key in keys), tuple(counted[key] for key in keys)
            order = " > ".join(map(short, learnt))
            streams[learner, method][seed, order] = Stream(learnt, phases, steps, random, best[learner], unlearnt)
    return streams, best, random


def gather(streams: Mapping[tuple[int, str], Stream], measure: Callable[[Stream], float]) -> Values:
    """A measure over seeds and orders."""
    return table_of({where: measure(stream) for where, stream in streams.items()})


def apart(one: Float64, other: Float64) -> tuple[float, float, float]:
    """Difference of two independent means, and its 95 % interval (Welch, degrees of freedom rounded down)."""
    errors = np.array([values.var(ddof=1) / len(values) for values in (one, other)])
    freedom = errors.sum() ** 2 / sum(e**2 / (len(v) - 1) for e, v in zip(errors, (one, other), strict=True))
    middle, half = float(one.mean() - other.mean()), t_quantile(CONFIDENCE, int(freedom)) * float(np.sqrt(errors.sum()))
    return middle, middle - half, middle + half


def verdict(name: str, middle: float, low: float, high: float) -> str:
    """In the words that were chosen before the runs."""
    if low > 0 and middle >= MATTERS:
        return f"{name} forgets less"
    if high < 0 and middle <= -MATTERS:
        return f"{name} forgets more"
    return "alike" if low > -MATTERS and high < MATTERS else "undecided"


def results(streams: Streams) -> Table:
    """One row per learner and method."""
    lines: list[tuple[Value, ...]] = []
    tasks = sorted({task for runs in streams.values() for stream in runs.values() for task in stream.tasks})
    for learner, method in CONDITIONS:
        runs = streams[learner, method]
        if not runs:
            continue
        plain: list[Value] = []
        for task in tasks:
            where = [(s, s.tasks.index(task)) for s in runs.values() if task in s.tasks[:-1]]
            before = np.mean([s.returns[i][task] for s, i in where])
            after = np.mean([s.returns[-1][task] for s, _ in where])
            last = np.mean([s.returns[-1][task] for s in runs.values() if task == s.tasks[-1]])
            plain.append(f"{before:.0f} → {after:.0f}; {last:.0f}")
        kept = [(before, end) for s in runs.values() for _, before, end in s.left() if before >= LEARNT]
        shares = (with_interval(gather(runs, m), 2) for m in (Stream.transfer, Stream.final))
        retention = f"{np.mean([end / before for before, end in kept]):.2f} (of {len(kept)})"
        steps = np.mean([stream.steps for stream in runs.values()]) / 1e6
        n_seeds = len({seed for seed, _ in runs})
        lines.append((f"{NAMES[learner]}, {method}", *plain, *shares, retention, f"{steps:.2f}", n_seeds))
    caption = (
        "Plain returns: tasks that are not the last of their order, at the end of their phase → at the end of the "
        "stream; then where they are the last. Shares of the learner's own R*: means over orders and seeds, with "
        "95 % intervals (Student's t over seeds)"
    )
    columns = ("learner", *(short(t) for t in tasks), "BWT", "share at the end")
    return Table("gradient", caption, (*columns, "retention", "steps per phase, M", "seeds"), tuple(lines))


def decisions(streams: Streams) -> Table:
    """The comparisons that were chosen before the runs."""
    lines: list[tuple[Value, ...]] = []
    for method, alone in itertools.product(("naive", "replay"), (False, True)):
        if alone and all("Swimmer-v5" in s.left_out for s in streams["es", method].values()):
            continue  # it was left out before

        def measure(stream: Stream, alone: bool = alone) -> float:
            return (stream.without("Swimmer-v5") if alone else stream).transfer()

        one, other = (gather(streams[learner, method], measure).by_seed for learner in ("es", "ppo"))
        if min(len(one), len(other)) >= 3:
            middle, low, high = apart(one, other)
            name = f"{method}: ES − PPO" + (", without Swimmer" if alone else "")
            lines.append((name, f"{middle:.2f} [{low:.2f}, {high:.2f}]", verdict("ES", middle, low, high)))
    for learner, name in NAMES.items():
        gained = gather(streams[learner, "replay"], Stream.transfer) - gather(
            streams[learner, "naive"], Stream.transfer
        )
        if gained.interval:
            found = verdict("replay", gained.estimate, *gained.interval)
            lines.append((f"{name}: replay − naive", with_interval(gained, 2), found))
    return Table("decisions", "Differences of BWT, and what they decide", ("difference", "BWT", "so"), tuple(lines))


def scale(best: Mapping[str, Mapping[str, float]], random: Mapping[str, float]) -> str:
    """The ends of the scale in plain returns."""
    ends = (
        f"{NAMES[learner]}'s R* is " + ", ".join(f"{short(task)} {known[task]:,.0f}" for task in sorted(known))
        for learner, known in sorted(best.items())
    )
    return (
        "; ".join((*ends, "random policies have " + ", ".join(f"{short(t)} {v:.0f}" for t, v in random.items()))) + "."
    )


def parts() -> dict[str, str]:
    """The measured part of the page."""
    streams, best, random = load()
    out = sorted({task for runs in streams.values() for stream in runs.values() for task in stream.left_out})
    words = f" Left out of all shares, by the rule above: {', '.join(map(short, out))}." if out else ""
    tables = markdown(results(streams), decisions(streams))
    return {"gradient": f"{scale(best, random)}{words}\n\n{tables}"}


def picture() -> None:
    """What was left against what was kept, run by run; and BWT by seed."""
    streams, _, _ = load()
    colours = task_colours(["Hopper-v5", "Swimmer-v5", "Walker2d-v5"])
    looks = dict(zip(CONDITIONS, "osDv", strict=True))
    with mpl.rc_context(SETTINGS):
        figure, (left, right) = panels(1, 2, width=4.4, height=3.6)
        left.axline((0, 0), slope=1, color="0.7", linewidth=0.6)
        left.axhline(0, color="0.7", linewidth=0.6)
        for i, ((learner, method), runs) in enumerate(streams.items()):
            for stream in runs.values():
                for task, before, end in stream.left():
                    fill = "none" if method == "naive" else colours[task]
                    left.plot([before], [end], looks[learner, method], color=colours[task], mfc=fill, markersize=4)
            values = gather(runs, Stream.transfer)
            if values.values.size:
                right.plot(np.full(len(values.by_seed), i), values.by_seed, "o", color="0.4", markersize=3)
                low, high = values.interval or (values.estimate, values.estimate)
                spread = [[values.estimate - low], [high - values.estimate]]
                right.errorbar([i + 0.15], [values.estimate], yerr=spread, marker="D", color=OKABE_ITO[0], markersize=5)
        names = [f"{NAMES[learner]}, {method}" for learner, method in CONDITIONS]
        for task, colour in colours.items():
            left.plot([], [], "s", color=colour, label=short(task))
        for condition, name in zip(CONDITIONS, names, strict=True):
            fill = "none" if condition[1] == "naive" else "0.2"
            left.plot([], [], looks[condition], color="0.2", mfc=fill, label=name)
        left.set_xlabel("share of R* at the end of the task's phase")
        left.set_ylabel("share of R* at the end of the stream")
        right.axhline(0, color="0.7", linewidth=0.6)
        right.set_xticks(range(len(names)), names)
        right.set_ylabel("BWT, each seed's mean over orders")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=7)
    (DOCS / "gradient.png").write_bytes(dict(Picture("gradient", "", figure).files())["gradient.png"])


if __name__ == "__main__":
    picture()
    fill_in("methods.md", parts())
