"""Minutes to a return, beside other people's learners: fills in docs/methods.md from results/minutes.jsonl.

python scripts/rivals.py
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

import matplotlib as mpl

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from fast import ARS  # noqa: E402
from pages import DOCS, fill_in, markdown  # noqa: E402

from evergait.core.table import Table, Value  # noqa: E402
from evergait.figures.drawing import OKABE_ITO, SETTINGS, Picture, legend_below, panels  # noqa: E402
from evergait.tasks.base import short  # noqa: E402

RECORDS = ROOT / "results" / "minutes.jsonl"
TASKS = ("Hopper-v5", "Walker2d-v5")
NAMES = {
    "fast": "evergait, fast",
    "ppo": "Stable-Baselines3, PPO",
    "sac": "Stable-Baselines3, SAC",
    "ars": "sb3-contrib, ARS",
    "pgpe": "EvoTorch, PGPE",
}
AFTER = (1, 3, 10, 30)
"""Minutes."""
LATE = 1.03
"""A run ends with a generation, a little after its time."""


@dataclass
class Curve:
    """One seed of one learner: mean returns over minutes of training, to the end of its run."""

    minutes: list[float] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)
    steps: int = 0
    until: float = float("inf")
    """When training ended."""
    end: float = float("nan")
    """Mean of fifty fresh episodes of what it ended with."""

    def at(self, minute: float) -> float | None:
        """The last evaluation by then; if training has ended, the fifty episodes of its end."""
        if self.until <= minute * LATE:
            return self.end
        known = [value for when, value in zip(self.minutes, self.returns, strict=True) if when <= minute]
        return known[-1] if known else None

    def reaches(self, mark: float) -> float | None:
        """Minutes until the first evaluation with that mean."""
        found = (when for when, value in zip(self.minutes, self.returns, strict=True) if value >= mark)
        return next(found, None)


Curves = dict[tuple[str, str], dict[int, Curve]]


def load() -> Curves:
    """(Learner, task) → seed → curve, of runs that came to their end."""
    curves: Curves = {}
    for line in map(json.loads, RECORDS.read_text().splitlines()):
        minute, mean = line["seconds"] / 60, fmean(line["returns"])
        seeds = curves.setdefault((line["learner"], line["task"]), {})
        curve = seeds.setdefault(line["seed"], Curve())
        if curve.minutes and minute < curve.minutes[-1]:  # a run that was cut short, and begun anew
            curve = seeds[line["seed"]] = Curve()
        if line["last"]:
            curve.until, curve.end, curve.steps = minute, mean, line["steps"]
        else:
            curve.minutes.append(minute)
            curve.returns.append(mean)
    whole = {key: {seed: c for seed, c in seeds.items() if c.end == c.end} for key, seeds in curves.items()}
    return {key: seeds for key, seeds in whole.items() if seeds}


def spread(values: list[float], digits: int = 0) -> str:
    """Median, least and most; one alone as it is."""
    low, high = (f"{value:,.{digits}f}" for value in (min(values), max(values)))
    return f"{median(values):,.{digits}f}" + (f" ({low} to {high})" if len(values) > 1 else "")


def parts() -> dict[str, str]:
    """The page's part: one row per learner and robot."""
    lines: list[tuple[Value, ...]] = []
    curves = load()
    for task in TASKS:
        for learner, name in NAMES.items():
            seeds = list(curves.get((learner, task), {}).values())
            if not seeds:
                continue
            found = [[value for c in seeds if (value := c.at(minute)) is not None] for minute in AFTER]
            after = [spread(values) if len(values) == len(seeds) else "–" for values in found]
            reached = [minute for c in seeds if (minute := c.reaches(ARS[task])) is not None]
            passed = f"{spread(reached, 1)}; {len(reached)} of {len(seeds)}" if reached else f"none of {len(seeds)}"
            steps = spread([c.steps / 1e6 for c in seeds], 2)
            lines.append((short(task), name, *after, passed, steps, spread([c.end for c in seeds]), len(seeds)))
    marks = " and ".join(f"{ARS[task]:,} ({short(task)})" for task in TASKS)
    caption = (
        "Mean returns of ten episodes after so many minutes on one core, and of 50 fresh ones at the end, which stand "
        "in the columns of minutes, too, where training has ended by then; median (least to most) over seeds. Minutes "
        f"to the mark, {marks}, are of the seeds that reach it by an evaluation on the way"
    )
    after_names = (f"{minute} min" for minute in AFTER)
    columns = ("task", "learner", *after_names, "minutes to the mark; seeds", "steps, M", "end", "seeds")
    return {"minutes": markdown(Table("minutes", caption, columns, tuple(lines)))}


def picture() -> None:
    """Return over minutes of one core, one panel per robot."""
    curves = load()
    with mpl.rc_context(SETTINGS):
        figure, axes = panels(1, len(TASKS), width=4.2, height=3.2)
        for task, panel in zip(TASKS, axes, strict=True):
            for (learner, name), colour in zip(NAMES.items(), OKABE_ITO, strict=False):
                for i, curve in enumerate(curves.get((learner, task), {}).values()):
                    width, label = 0.8 if learner == "fast" else 1.6, "" if i else name
                    panel.plot(curve.minutes, curve.returns, color=colour, linewidth=width, label=label)
                    panel.plot([curve.until], [curve.end], "o", color=colour, markersize=3)
            panel.axhline(ARS[task], color="0.4", linestyle="--", linewidth=0.8)
            panel.set_xscale("log")
            panel.set_xticks([0.1, 0.3, 1, 3, 10, 30], ["6 s", "20 s", "1 min", "3", "10", "30"])
            panel.set_title(short(task))
            panel.set_xlabel("training on one core")
        axes[0].set_ylabel("return, ten episodes without noise")
        legend_below(figure)
    (DOCS / "minutes.png").write_bytes(dict(Picture("minutes", "", figure).files())["minutes.png"])


if __name__ == "__main__":
    picture()
    fill_in("methods.md", parts())
