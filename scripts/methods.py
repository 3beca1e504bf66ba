"""Methods against each other: fills in docs/methods.md from the ledgers in results/.

python scripts/methods.py

Nothing of the studies is trained.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from pages import DOCS, fill_in, filled, markdown, older, with_interval  # noqa: E402, F401

from evergait.analysis.groups import Measure, Values, table_of  # noqa: E402
from evergait.analysis.ranking import LEARNT  # noqa: E402
from evergait.analysis.study import Analysis  # noqa: E402
from evergait.analysis.transfer import series  # noqa: E402
from evergait.config import Config  # noqa: E402
from evergait.core.arrays import Float64  # noqa: E402
from evergait.core.table import Table, Value  # noqa: E402
from evergait.figures.drawing import OKABE_ITO, SETTINGS, Picture, panels  # noqa: E402
from evergait.paper.study import analyse  # noqa: E402
from evergait.scores.metrics import Metrics  # noqa: E402
from evergait.scores.scale import learnt_tasks  # noqa: E402
from evergait.studies.base import read_study  # noqa: E402
from evergait.studies.cells import study_cells  # noqa: E402
from evergait.studies.folder import is_study, load_results  # noqa: E402
from evergait.tasks.base import short  # noqa: E402

HELD = 0.9
"""The share of its score that a held task keeps, and of the learner's alone that every task should end with."""
ALIKE = 0.05
"""Methods whose difference surely lies within this are alike."""
MARKERS = "osD^vP*Xph<>"
STUDIES = ("strengths", "methods", "return", "twenty", "ablation")
PARTS: dict[str, Callable[[Config], bool]] = {
    "normalised observations": lambda config: config.policy.normalise,
    "a head per task": lambda config: config.policy.heads == "separate",
    "8 pairs in place of 32": lambda config: config.pairs == 8,
}
"""What `ablation` varies of the learner, each with a question whether a condition has it."""
ENDS, LEARNS = "mean score at the end", "Int"
ASKED = (
    ("distill", "replay", ENDS),
    ("distill", "ewc", ENDS),
    ("ewc", "anchor", ENDS),
    ("ewc-search", "anchor", ENDS),
    ("adaptive", "replay", ENDS),
    ("project", "replay", ENDS),
    ("anchor", "freeze", ENDS),
    *((name, "naive", ENDS) for name in ("distill", "ewc", "ewc-search", "anchor", "freeze")),
    *((name, "naive", ENDS) for name in ("replay", "adaptive", "project")),
    ("distill", "naive", LEARNS),
    ("ewc", "naive", LEARNS),
)
"""What was to be compared, and on which measure, before the runs."""


def worst_task(metrics: Metrics) -> float:
    """Score at the end on the task that fares worst."""
    return min(metrics.final(task) for task in learnt_tasks(metrics.ledgers))


def at_the_end(task: str) -> Measure:
    """Return on one task at the end of a stream."""
    return lambda metrics: float(metrics.returns(task, -1)[-1])


def score_after(task: str, stage: int = -1) -> Measure:
    """Score on one task at the end of a phase, the last one unless told."""
    return lambda metrics: metrics.final(task, stage)


def million_steps(metrics: Metrics) -> float:
    """Environment steps of a run, evaluations left out."""
    return sum(n for kind, n in metrics.total_steps().items() if kind != "evaluation") / 1e6


def plasticity(metrics: Metrics) -> float:
    """Best score of later tasks while they are learnt, a mean."""
    return 1 - metrics.later_interference()


def load(name: str) -> Analysis | None:
    """A study in results/, if it is there."""
    folder = ROOT / "results" / name
    return analyse(load_results(folder)) if is_study(folder) else None


def state(name: str, analysis: Analysis | None) -> str:
    """What of a study is trained, and by what its scores are measured."""
    n_phases = len({phase.name for cell in study_cells(read_study(name)) for phase in cell.phases})
    entries = analysis.results.entries if analysis else ()
    n_done = len({phase.name for entry in entries for phase in entry.run.phases})
    command = f"`evergait study run {name} --out runs/{name}`"
    words = f"{n_done} of {n_phases} phases of the study are trained"
    words += f" ({command} trains all of them)." if n_done == n_phases else f"; {command} trains the rest."
    if not analysis:
        return words
    words = f"{words}{older(analysis.results)} {analysis.scale_words}"
    own = later_alone(analysis)
    return f"{words} As that is the best seed, learning the later tasks alone has an Int of {own:.2f} itself."


def streams(analysis: Analysis) -> list[str]:
    """Conditions with finished runs of more than one phase."""
    return [c for c in analysis.results.conditions if (runs := analysis.finished(c)) and len(runs[0].run.phases) > 1]


def alone(analysis: Analysis, task: str) -> float:
    """Mean score of the learner after learning one task and nothing else, over seeds."""
    runs = [entry for entry in analysis.finished("single") if entry.run.config.stream == (task,)]
    return float(np.mean([analysis.metrics(entry).final(task) for entry in runs]))


def later_alone(analysis: Analysis) -> float:
    """Int of the learner alone, over the tasks that the streams learn as later ones, as often as they do."""
    found: dict[str, list[float]] = {}
    for entry in analysis.finished("single"):
        found.setdefault(entry.run.config.stream[0], []).append(analysis.metrics(entry).interference(0))
    orders = {entry.run.config.stream for name in streams(analysis) for entry in analysis.finished(name)}
    later = [task for order in sorted(orders) for task in dict.fromkeys(order[1:]) if task != order[0]]
    return float(np.mean([np.mean(found[task]) for task in later]))


def as_alone(analysis: Analysis) -> Callable[[Metrics], bool]:
    """Whether every task ends at nine tenths of what the same learner reaches on it alone."""
    mark = {task: HELD * alone(analysis, task) for task in analysis.tasks}
    return lambda metrics: all(metrics.final(task) >= mark[task] for task in learnt_tasks(metrics.ledgers))


def held(metrics: Metrics) -> list[bool]:
    """Task by task, whether it ends at nine tenths of its score when it was last left."""
    left = {metrics.task(stage): metrics.final(metrics.task(stage), stage) for stage in range(metrics.n_stages)}
    return [metrics.final(task) >= score - (1 - HELD) * abs(score) for task, score in left.items()]


def all_held(metrics: Metrics) -> bool:
    """Whether that is so of every task."""
    return all(held(metrics))


def told_held(runs: Sequence[Metrics]) -> str:
    """How many runs hold every task, and how many of these left one that was never learnt."""
    held = [metrics for metrics in runs if all_held(metrics)]
    never = sum(any(m.final(m.task(stage), stage) < LEARNT for stage in range(m.n_stages)) for m in held)
    return f"{len(held)} of {len(runs)}" + (f" ({never})" if never else "")


def comparison(analysis: Analysis) -> Table:
    """One row per condition, over orders and seeds: plain returns, scores, and how many runs come to the marks."""
    tasks = analysis.tasks if len(analysis.tasks) == 3 else ()
    scores: dict[str, Measure] = {
        ENDS: Metrics.average_performance,
        "worst task": worst_task,
        "avg BWT": Metrics.average_backward_transfer,
        "from end of phase": Metrics.gem_backward_transfer,
        LEARNS: Metrics.later_interference,
    }
    reaches, lines = as_alone(analysis), list[tuple[Value, ...]]()
    for condition in analysis.results.conditions:
        seeds = analysis.gather(condition, million_steps).seeds
        runs = [entry for entry in analysis.finished(condition) if entry.seed in seeds]
        if not runs:
            continue
        here = list(scores) if len(runs[0].run.phases) > 1 else [ENDS, "worst task"]
        metrics = [analysis.metrics(entry) for entry in runs]
        lines.append(
            (
                condition,
                *(with_interval(analysis.gather(condition, at_the_end(task)), 0) for task in tasks),
                *(with_interval(analysis.gather(condition, m), 2) if n in here else "–" for n, m in scores.items()),
                f"{analysis.gather(condition, million_steps).estimate:.1f}",
                told_held(metrics) if LEARNS in here else "–",
                f"{sum(map(reaches, metrics))} of {len(runs)}",
                len(seeds),
            )
        )
    caption = "Mean over orders and seeds; of three seeds or more, with its 95 % interval (Student's t over seeds)"
    columns = (*(f"return, {short(task)}" for task in tasks), *scores, "steps, M", "all held", "as alone", "seeds")
    return Table("methods", caption, ("method", *columns), tuple(lines))


def chosen(strengths: Analysis) -> dict[str, str]:
    """Method → which of its settings ended highest, the one that is compared with others."""
    families: dict[str, list[str]] = {}
    for condition in filter(strengths.finished, strengths.results.conditions):
        family = "ewc-search" if condition.startswith("ewc-search") else condition.partition("-")[0]
        families.setdefault(family, []).append(condition)
    ends = {c: strengths.gather(c, Metrics.average_performance).estimate for tried in families.values() for c in tried}
    return {family: max(tried, key=ends.__getitem__) for family, tried in families.items()}


def differences(analysis: Analysis) -> Table:
    """What was asked: one method minus another, on the same seeds and orders, and what that decides."""
    measures = {ENDS: Metrics.average_performance, LEARNS: Metrics.later_interference}
    lines = []
    for one, other, name in ASKED:
        if analysis.finished(one) and analysis.finished(other):
            values = analysis.gather(one, measures[name]) - analysis.gather(other, measures[name])
            lines.append((f"{one} − {other}", name, with_interval(values, 3), verdict(values)))
    caption = "What was asked before the runs: differences over the same seeds and orders (Student's t over seeds)"
    return Table("differences", caption, ("difference", "of", "estimate and 95 % interval", "so"), tuple(lines))


def verdict(values: Values) -> str:
    """What a difference decides, by the rule that was written down before the runs."""
    if values.interval is None:
        return "undecided"
    low, high = values.interval
    if low > 0 or high < 0:
        return "higher" if low > 0 else "lower"
    return "alike" if low >= -ALIKE and high <= ALIKE else "undecided"


def effects(ablation: Analysis) -> Table:
    """What each part of the learner does to the mean score at the end, over all combinations of the others."""
    ends = {c: ablation.gather(c, Metrics.average_performance) for c in ablation.results.conditions}
    having = {tuple(has(ablation.config(c)) for has in PARTS.values()): values for c, values in ends.items()}
    lines = []
    for i, part in enumerate(PARTS):
        pairs = [(values, having[*has[:i], False, *has[i + 1 :]]) for has, values in having.items() if has[i]]
        found: dict[int, list[float]] = {}
        for values in (one - other for one, other in pairs):
            for seed, value in zip(values.seeds, values.by_seed, strict=True):
                found.setdefault(seed, []).append(float(value))
        whole = {(s, "all"): float(np.mean(each)) for s, each in found.items() if len(each) == len(pairs)}
        values = table_of(whole)
        each = ", ".join(f"{(one - other).estimate:.2f}" for one, other in pairs)
        lines.append((part, with_interval(values, 3), effect(values), each))
    caption = "The mean score at the end with a part minus that without it, a mean over the other two (Student's t)"
    return Table(
        "effects", caption, ("part", "effect and 95 % interval", "so", "each combination of the others"), tuple(lines)
    )


def effect(values: Values) -> str:
    """By the rule that was written down before the runs."""
    low, high = values.interval or (-np.inf, np.inf)
    return "undecided" if low <= 0 <= high else "helps" if low > 0 else "harms"


def later(analysis: Analysis) -> Table:
    """How well, and in how many generations, tasks are learnt that are not the first."""
    found: dict[str, dict[tuple[str, str, int], tuple[float, int]]] = {}
    for condition in ("single", *streams(analysis)):
        phases = found.setdefault("from scratch" if condition == "single" else condition, {})
        for entry in analysis.finished(condition):
            for ledger in entry.run.ledgers[condition != "single" :]:
                task = ledger.learning[0]
                phases[task, entry.order, entry.seed] = ledger.best(task), ledger.generations[-1]
    naive, lines = found.get("naive", {}), []
    tasks = sorted({task for phases in found.values() for task, *_ in phases})
    for condition, phases in found.items():
        best: dict[str, list[float]] = {task: [] for task in tasks}
        share: dict[str, list[float]] = {task: [] for task in tasks}
        for where, (highest, n_generations) in phases.items():
            best[where[0]].append(highest)
            if where in naive:
                share[where[0]].append(n_generations / naive[where][1])
        cells = (*(with_range(best[task], 0) for task in tasks), *(with_range(share[task], 2) for task in tasks))
        lines.append((condition, *cells))
    columns = (f"{what}, {short(task)}" for what in ("best return", "generations") for task in tasks)
    caption = (
        "Tasks that are not the first of their order: the best return while they are learnt, and generations as a "
        "multiple of naive training's; mean, smallest and largest"
    )
    return Table("later", caption, ("method", *columns), tuple(lines))


def with_range(values: list[float], digits: int) -> str:
    """A mean, the smallest and the largest."""
    if not values:
        return "–"
    middle, low, high = (f"{v:.{digits}f}" for v in (float(np.mean(values)), min(values), max(values)))
    return f"{middle} ({low} to {high})"


def finals(analysis: Analysis, name: str = "finals") -> Table:
    """Score on every task of a long stream, when it was first left and at the end."""
    conditions, lines = streams(analysis), []
    stream = analysis.metrics(analysis.finished(conditions[0])[0])
    stages = [stream.task(stage) for stage in range(stream.n_stages)]
    for task in learnt_tasks(stream.ledgers):
        measures = (score_after(task, stages.index(task)), score_after(task))
        means = ([analysis.gather(condition, m).estimate for m in measures] for condition in conditions)
        lines.append((short(task), f"{alone(analysis, task):.2f}", *(f"{a:.2f} → {b:.2f}" for a, b in means)))
    caption = "Score on every task: alone; when it was left for the first time → at the end of the stream"
    return Table(name, caption, ("task", "alone", *conditions), tuple(lines))


def n_held(analysis: Analysis) -> str:
    """How many tasks every run of a long stream holds, and what distillation gains."""
    told = []
    for condition in streams(analysis):
        counts = [sum(held(analysis.metrics(entry))) for entry in analysis.finished(condition)]
        told.append(f"{condition} {', '.join(map(str, counts))}")
    ends = {c: analysis.gather(c, Metrics.average_performance) for c in ("distill", "naive")}
    difference = ends["distill"] - ends["naive"]
    words = f"Tasks held, of {len(analysis.tasks)}, seed by seed: {'; '.join(told)}. "
    return f"{words}Mean score at the end, distill − naive: {with_interval(difference, 3)}."


def knowledge(analysis: Analysis, condition: str) -> tuple[Float64, Float64]:
    """Steps, and the mean score over all tasks of the stream at every evaluation, over orders and seeds."""
    curves = []
    for entry in analysis.finished(condition):
        metrics = analysis.metrics(entry)
        curves.append(np.mean([series(metrics, task, "score") for task in learnt_tasks(metrics.ledgers)], axis=0))
    ledgers = analysis.finished(condition)[0].run.ledgers
    starts = np.cumsum([0.0, *(ledger.axis[-1] for ledger in ledgers)])
    x = np.concatenate([start + np.array(ledger.axis) for start, ledger in zip(starts, ledgers, strict=False)])
    length = min(len(x), *map(len, curves))
    values: Float64 = np.mean([curve[:length] for curve in curves], axis=0)
    return x[:length], values


def front(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The Pareto front: points that no other is beyond in both coordinates, from left to right."""
    return sorted(p for p in points if not any(q != p and q[0] >= p[0] and q[1] >= p[1] for q in points))


def picture(analysis: Analysis, name: str) -> None:
    """Retention against plasticity, and what a policy knows of all tasks against steps."""
    shown = [condition for condition in analysis.results.conditions if analysis.finished(condition)]
    looks: dict[str, dict[str, Any]] = {  # a method looks the same in every picture
        condition: {"color": OKABE_ITO[i % 7], "marker": MARKERS[i % len(MARKERS)], "linestyle": "-" if i < 7 else "--"}
        for i, condition in enumerate(read_study("methods").conditions)
    }
    with mpl.rc_context(SETTINGS):
        figure, (left, right) = panels(1, 2, width=4.4, height=3.8)
        points = []
        for condition in streams(analysis):
            learns, keeps = (analysis.gather(condition, m) for m in (plasticity, Metrics.average_backward_transfer))
            x, y = learns.estimate, keeps.estimate
            points.append((x, y))
            low_high = [values.interval or (values.estimate, values.estimate) for values in (learns, keeps)]
            spread = [[[v - a], [b - v]] for v, (a, b) in zip((x, y), low_high, strict=True)]
            left.errorbar([x], [y], xerr=spread[0], yerr=spread[1], **looks[condition], elinewidth=0.6, markersize=5)
        left.step(*zip(*front(points), strict=True), where="pre", color="0.5", linewidth=0.8, linestyle=":", zorder=0)
        left.axhline(0, color="0.7", linewidth=0.6)
        left.axvline(1, color="0.7", linewidth=0.6)
        left.set_xlabel("plasticity: best score of later tasks while they are learnt (1 − Int)")
        left.set_ylabel("retention: average BWT")
        for condition in shown:
            x, y = knowledge(analysis, condition)  # type: ignore[assignment]
            right.plot(x, y, **looks[condition], linewidth=1.0, markersize=4, markevery=(5, 10), label=condition)
        right.set_xlabel("million environment steps, replay and collection included")
        right.set_ylabel("mean score over all tasks of the stream")
        figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=6)
    (DOCS / f"{name}.png").write_bytes(dict(Picture(name, "", figure).files())[f"{name}.png"])


def keeping(methods: Analysis) -> str:
    """How many runs hold their tasks with the default method and with none, for the README."""
    reaches, told = as_alone(methods), {}
    for condition in ("distill", "naive"):
        seeds = methods.gather(condition, million_steps).seeds
        runs = [entry for entry in methods.finished(condition) if entry.seed in seeds]
        metrics = [methods.metrics(entry) for entry in runs]
        told[condition] = (len(runs), sum(map(all_held, metrics)), sum(map(reaches, metrics)))
    n_orders = len({entry.order for entry in runs})
    (n, held, alone), (n_naive, naive_held, naive_alone) = told.values()
    return (
        f"With distillation, the default of the presets `fast` and `quick`, {held} of {n} runs ({n_orders} orders, "
        f"{len(seeds)} seeds) end with every task at {HELD} or more of the score with which it was left, and {alone} "
        f"end with every task at {HELD} or more of what the learner reaches on it alone, in the mean over seeds. "
        f"With nothing against forgetting, {naive_held} and {naive_alone} of {n_naive} do."
    )


def parts(found: dict[str, Analysis | None]) -> dict[str, str]:
    """Every part of the page that comes from ledgers."""
    blocks = {f"{name} trained": state(name, analysis) for name, analysis in found.items()}
    for name, analysis in found.items():
        blocks[name] = markdown(comparison(analysis)) if analysis else "Nothing yet."
    if methods := found["methods"]:
        blocks["differences"] = markdown(differences(methods))
        blocks["later"] = markdown(later(methods))
    if long := found["return"]:
        blocks["finals"] = markdown(finals(long))
    if (twenty := found["twenty"]) and streams(twenty):
        blocks |= {"twenty held": n_held(twenty), "twenty finals": markdown(finals(twenty, "twenty-finals"))}
    if ablation := found["ablation"]:
        blocks["effects"] = markdown(effects(ablation))
    return blocks


def main() -> None:
    """Write the page."""
    found = {name: load(name) for name in STUDIES}
    for name in ("methods", "return", "twenty"):
        if analysis := found[name]:
            picture(analysis, name)
    fill_in("methods.md", parts(found))
    if methods := found["methods"]:
        fill_in("../README.md", {"keeping": keeping(methods)})


if __name__ == "__main__":
    main()
