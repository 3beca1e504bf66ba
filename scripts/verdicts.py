"""The paper's claims over several seeds, for docs/reproduction.md: verdicts, where its numbers lie, what scale does.

Whole episodes are played once for every phase and kept in fresh.json with the ledgers: 50 episodes of its last θ on
every task, with seeds of their own.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, cached_property

import matplotlib as mpl
import numpy as np
from findings import ORDER, TASKS
from pages import DOCS, ROOT, fresh_episodes, markdown, whole

from evergait.analysis.groups import Measure, Values, table_of
from evergait.analysis.study import Analysis, measure_references
from evergait.config import Evaluation
from evergait.core.files import write_json
from evergait.core.table import Table, Value
from evergait.figures.drawing import OKABE_ITO, SETTINGS, Picture, panels, ranges_figures
from evergait.paper.claims import Claim, study_claims
from evergait.paper.numbers import SINGLE_TASK, study_ranges
from evergait.paper.study import analyse, hat_scale
from evergait.scores.metrics import Metrics
from evergait.store.ledger import Ledger, Record
from evergait.studies.results import Results
from evergait.tasks.base import short
from evergait.training.evaluate import Evaluator
from evergait.training.run import Run
from evergait.workers import LocalWorkers

FOLDER = ROOT / "results" / "authors-third"
EPISODES = 50
"""Fresh ones, of a phase's last θ."""
BUDGET_PARTS = (
    "the middle budget ends above the smallest",
    "the middle budget ends above the largest",
    "the largest costs plasticity",
)
"""What claim 3 says, in the order in which it is measured."""


@cache
def whole_seeds() -> Results:
    """Streams of those seeds that have every order of the condition, trained to its end."""
    return whole(FOLDER, lambda run: (run.condition, run.seed))


def fresh(run: Run, task: str, stage: int = -1) -> float:
    """Mean return of a stage's last θ over whole episodes with seeds of their own."""
    state = run.state(stage)
    known = next(known for known in run.policy.tasks if known.name == task)
    with closing(LocalWorkers(1)) as workers:
        evaluator = Evaluator(run.policy, {known: "planar"}, workers, Evaluation(), seed=run.config.seed + 1)
        request = evaluator.episodes(state.theta, known, state.statistics, EPISODES)
        return float(workers.run("planar", request).returns.mean())


def play(results: Results) -> None:
    """Play what fresh.json lacks."""
    found = fresh_episodes(results.path)
    for entry in results.entries:
        for stage, phase in enumerate(entry.run.phases):
            if phase.name not in found:
                found[phase.name] = {task: fresh(entry.run, task, stage) for task in entry.run.ledger.tasks}
    write_json(results.path / "fresh.json", dict(sorted(found.items())))


@dataclass(frozen=True, kw_only=True)
class WholeEpisodes(Analysis):
    """The same study with 50 fresh episodes at the end of every phase in place of its evaluations."""

    played: Mapping[str, Mapping[str, float]]
    """Phase → task → mean return."""

    @cached_property
    def _metrics(self) -> dict[int, Metrics]:
        return {id(e): Metrics(self._ledgers(e.run), self.scales[e.condition]) for e in self.results.entries}

    def _ledgers(self, run: Run) -> list[Ledger]:
        """With one evaluation each."""
        ends = [(ledger, self.played[p.name]) for p, ledger in zip(run.phases, run.ledgers, strict=True)]
        return [replace(ledger, records=(_record(ledger.records[-1], means),)) for ledger, means in ends]


def _record(last: Record, means: Mapping[str, float]) -> Record:
    return replace(last, returns={task: [mean] for task, mean in means.items()}, horizon=0)


def analyses() -> tuple[Analysis, WholeEpisodes]:
    """As evaluated while it trained, which decides, and in whole episodes."""
    analysis = analyse(whole_seeds())
    played = fresh_episodes(FOLDER)
    return analysis, WholeEpisodes(analysis.results, analysis.scales, analysis.published, played=played)


def number(value: float) -> str:
    """Three decimals, with a minus sign.

    >>> number(-0.12345)
    '−0.123'
    """
    return f"{value:.3f}".replace("-", "−")


def estimate(claim: Claim) -> str:
    """With its interval."""
    ends = f" [{', '.join(map(number, claim.interval))}]" if claim.interval else ""
    return f"{number(claim.estimate)}{ends}" if claim.estimate is not None else "–"


def verdicts(analysis: Analysis, whole: Analysis) -> str:
    """Every claim that has been measured, with its verdict."""
    rows: list[tuple[Value, ...]] = []
    for claim, again in zip(study_claims(analysis), study_claims(whole), strict=True):
        if claim.is_measured:
            is_near = claim.rule.agrees(0.0)  # told from zero, or not: no matter where near zero is what is claimed
            shown = "–" if claim.detectable is None or is_near else number(claim.detectable)
            opposite = "–" if claim.n_opposite is None else f"{claim.n_opposite} of {claim.n_seeds}"
            numbers = (estimate(claim), shown, claim.n_seeds, claim.verdict, opposite)
            rows.append((f"{claim.number}. {claim.sentence}", *numbers, estimate(again), again.verdict))
    measured = ("estimate [95 %]", "could show", "seeds", "verdict", "single seeds that say the opposite")
    columns = ("claim", *measured, "in whole episodes", "verdict there")
    missing = [str(claim.number) for claim in study_claims(analysis) if not claim.is_measured]
    table = markdown(Table("verdicts", "The paper's claims, λ = 256, K = 300", columns, tuple(rows)))
    note = f" Not measured yet: claims {' and '.join(missing)}." if missing else ""
    return f"{table}\n\n{analysis.scale_words}{note}"


def told(values: Values) -> str:
    """An estimate over seeds with its interval."""
    ends = f" [{', '.join(map(number, values.interval))}]" if values.interval else ""
    return f"{number(values.estimate)}{ends}".replace("[", "\\[").replace("]", "\\]")


def notes(analysis: Analysis, whole: Analysis) -> str:
    """What a referee would ask: other yardsticks, parts of a claim, tasks one by one, and cost."""
    conditions, scales = analysis.results.conditions, analysis.scales
    paper = hat_scale("the paper's single-task runs", SINGLE_TASK, TASKS)
    other = study_claims(replace(analysis, scales=dict.fromkeys(scales, paper)))
    claims = study_claims(analysis)
    pairs = [(a, b) for a, b in zip(claims, other, strict=True) if a.is_measured]
    again = ", ".join(f"claim {b.number} {estimate(b)}" for _, b in pairs)
    changed = ", ".join(f"claim {a.number}: {b.verdict}" for a, b in pairs if a.verdict != b.verdict)
    flips = f"other verdicts: {changed}" if changed else "the same verdicts"
    parts = claims[5].parts
    lost = "; ".join(f"of *{c}* {lost_by_task(analysis, c)}" for c in ("shared", "distinct") if c in conditions)
    third = by_seed(whole, "replay-192", last_learnt) - by_seed(whole, "shared", last_learnt)
    carried = {c: told(by_seed(analysis, c, swimmer_carried)) for c in conditions}
    steps = {c: analysis.gather(c, million_steps).estimate for c in conditions}
    lines = [
        *undecided_note(claims),
        "**Another yardstick.** R* is low at this scale, and it is the best of the same seeds, whose single-task runs "
        "are also the streams' first phases. Divided by the paper's R*, as in the tables at full scale below: "
        f"{again}; {flips}. What counts is a larger difference in returns there, "
        "two to three times as large for Hopper and Walker2d.",
        f"**Tasks differ.** BWT by task, {lost}.",
        f"**Replay costs more**: {steps['replay-192']:.0f} million environment steps a stream, {steps['shared']:.0f} "
        "without. For every earlier task it adds half as many episodes as the new task has, never cut (64 pairs "
        "beside 128: its name is that of the budget at λ = 768). So claim 2 compares runs of unequal cost.",
        f"**{plasticity(third)}** Tasks learnt third, in whole episodes, *replay-192* minus *shared*: {told(third)} of "
        "R*. This was not asked beforehand.",
        "**Claim 6 has four parts**, and the least of each number is shown, which is no 95 % interval. FWT towards "
        f"Swimmer is {told(parts[0])} in *shared* and {told(parts[2])} in *replay-192*. It is of a phase's last θ; the "
        f"one that the next task begins with in this reading has {carried['shared']} and {carried['replay-192']} (not "
        "asked beforehand).",
    ]
    return "\n".join(
        f"- {line}" for line in (*lines, *budget_notes(analysis, claims[2]), *head_notes(analysis, claims[3]))
    )


def undecided_note(claims: Sequence[Claim]) -> list[str]:
    """How much these seeds could have missed."""
    missed = [
        f"claim {claim.number} {number(claim.detectable)} where {claim.rule.effect:g} counts"
        for claim in claims
        if claim.verdict == "undecided" and claim.detectable is not None
    ]
    words = "**Undecided is no verdict against a claim.** What these seeds could have shown (roughly: they are few):"
    return [f"{words} {', '.join(missed)}."] if missed else []


def sign(values: Values) -> int:
    """On which side of zero the interval lies; 0 if it has zero in it, or if there is none."""
    low, high = values.interval or (-np.inf, np.inf)
    return (low > 0) - (high < 0)


def plasticity(third: Values) -> str:
    """What the last tasks of a stream say about the cost of replay."""
    words = (
        "Whether replay costs plasticity is open.",
        "Replay cost no plasticity here.",
        "Replay cost plasticity here.",
    )
    return words[sign(third)]


def lost_by_task(analysis: Analysis, condition: str) -> str:
    """BWT of every task."""
    found = {short(t): by_seed(analysis, condition, lambda m, t=t: lost_of(m, t)) for t in TASKS}  # type: ignore[misc]
    return ", ".join(f"{task} {told(values)}" for task, values in found.items())


def budget_notes(analysis: Analysis, claim: Claim) -> list[str]:
    """The parts of claim 3, what budgets cost, and the largest beside the smallest."""
    if not claim.is_measured:
        return []
    small, large, plastic = map(told, claim.parts)
    nor = "" if sign(claim.parts[1]) < 0 else " That the largest is the better one is not shown either."
    names = ("replay-12", "replay-192", "replay-288")
    steps = ", ".join(f"{analysis.gather(name, million_steps, (ORDER,)).estimate:.0f}" for name in names)
    later = [analysis.gather(name, Metrics.later_interference, (ORDER,)) for name in names]
    extremes = later[2] - later[0]
    so = ("these seeds leave that open", "here the smallest did", "here the largest did")[sign(extremes)]
    return [
        "**Claim 3 has three parts**, on one order, and the least of each number is shown, which is no 95 % interval. "
        f"Final R̂ of *replay-192* minus that of *replay-12* is {small}, minus that of *replay-288* {large}; Int of "
        f"*replay-288* minus that of *replay-192* is {plastic}. Part by part: {part_verdicts(claim)}.{nor} The "
        f"budgets take {steps} million steps. In this "
        "reading replay weighs as much as the new task whatever its budget: a larger one is less noisy, and dearer. "
        f"Not asked beforehand: Int of *replay-288* minus that of *replay-12* is {told(extremes)}; below zero the "
        f"largest budget would have learnt new tasks better than the smallest: {so}."
    ]


def part_verdicts(claim: Claim) -> str:
    """Claim 3 part by part, each by the claim's rule: it does not hold where one part does not."""
    found: dict[str, list[str]] = {"does not hold": [], "undecided": [], "holds": []}
    for part, words in zip(claim.parts, BUDGET_PARTS, strict=True):
        verdict = claim.rule.decide(part.estimate, *part.interval) if part.interval else "undecided"
        found[verdict].append(f"that {words}")
    each = (f"{verdict}: {' and '.join(parts)}" for verdict, parts in found.items() if parts)
    return f"{'; '.join(each)}, where {claim.rule.effect:g} of R* counts"


def head_notes(analysis: Analysis, claim: Claim) -> list[str]:
    """What claim 4 compares, by condition, and on one scale for both kinds of heads."""
    if not claim.is_measured:
        return []
    conditions = ("shared", "replay-192", "distinct")
    shared, replay, distinct = later = [analysis.gather(c, Metrics.later_interference) for c in conditions]
    found = ", ".join(f"*{c}* {told(values)}" for c, values in zip(conditions, later, strict=True))
    one = replace(analysis, scales=dict.fromkeys(analysis.scales, analysis.scales["shared"]))
    same = study_claims(one)[3]
    alone = [analysis.gather(c, lambda metrics: metrics.interference(0)) for c in ("shared", "distinct")]
    return [
        f"**Claim 4 changes two things at once**, replay and heads. Int at later positions: {found}. So replay adds "
        f"{told(replay - shared)} with a shared head, and a shared head adds {told(shared - distinct)} to one per "
        "task, both without replay (not asked beforehand). Each is divided by what its kind of heads reaches alone; "
        f"divided by the shared head's for both, claim 4 is {estimate(same)}: {same.verdict}. R* is the best seed, so "
        f"that first tasks, learnt alone, have an Int themselves: {told(alone[0])} with a shared head, "
        f"{told(alone[1])} with one per task. Measured from these, claim 4 is "
        f"{told(replay - distinct - (alone[0] - alone[1]))} (not asked beforehand)."
    ]


def by_seed(analysis: Analysis, condition: str, measure: Measure) -> Values:
    """A measure over all orders of a seed in which it is defined."""
    found: dict[int, list[float]] = {}
    for entry in analysis.finished(condition):
        value = measure(analysis.metrics(entry))
        found.setdefault(entry.seed, []).extend([value] if np.isfinite(value) else [])
    return table_of({(seed, "all"): float(np.mean(values)) for seed, values in found.items()})


def million_steps(metrics: Metrics) -> float:
    """What a stream costs; evaluations do not count."""
    steps = metrics.total_steps()
    return (steps["training"] + steps["replay"]) / 1e6


def lost_of(metrics: Metrics, task: str) -> float:
    """BWT of one task, where it is not the last."""
    stages = [stage for stage in range(metrics.n_stages - 1) if metrics.task(stage) == task]
    return metrics.backward_transfer(stages[0]) if stages else float("nan")


def last_learnt(metrics: Metrics) -> float:
    """What the last task comes to."""
    return metrics.final(metrics.task(metrics.n_stages - 1))


def swimmer_carried(metrics: Metrics) -> float:
    """FWT towards Swimmer of the θ that its phase begins with."""
    stages = [stage for stage in range(1, metrics.n_stages) if metrics.task(stage) == TASKS[1]]
    return float(metrics.curve(TASKS[1], stages[0])[0]) - metrics.random(TASKS[1]) if stages else float("nan")


def in_short(analysis: Analysis, whole: Analysis) -> str:
    """The claims by what became of them, for people in a hurry."""
    claims, again = study_claims(analysis), study_claims(whole)
    found: dict[str, list[str]] = {}
    for claim, other in zip(claims, again, strict=True):
        differs = f" (in whole episodes: {other.verdict})" if other.verdict != claim.verdict else ""
        parts = f" ({part_verdicts(claim)})" if claim.number == 3 and claim.verdict == "does not hold" else ""
        found.setdefault(claim.verdict, []).append(f"*{claim.sentence}*{parts}{differs}")
    seeds = max(claim.n_seeds for claim in claims)
    lead = (
        f"With {seeds} seeds, six orders (one for replay budgets) and a tenth of the paper's episodes (λ = 256 in "
        "place of 768, K = 300 in place of 1000), as the authors' code has it; verdicts at this scale, not at the "
        "paper's:"
    )
    turns = ("holds", "does not hold", "undecided", "not measured")
    lines = [f"- **{verdict.capitalize()}**: {', '.join(found[verdict])}" for verdict in turns if verdict in found]
    lines = [line.replace("**Not measured**", "**Not measured yet at this scale**") for line in lines]
    return "\n".join([lead, "", *lines])


def returns(analysis: Analysis, whole: WholeEpisodes) -> str:
    """Plain returns: the best evaluation while a task was learnt, then the ends of its phase and of the stream."""
    rows: list[tuple[Value, ...]] = []
    for condition in ("single", *analysis.results.conditions):
        found: dict[tuple[int, str], list[tuple[float, float, float]]] = {}
        for entry in analysis.finished(condition):
            trained, ends = analysis.metrics(entry), whole.metrics(entry)
            for stage in range(trained.n_stages):
                task = trained.task(stage)
                own, last = ends.returns(task, stage)[0], ends.returns(task, -1)[0]
                best = float(trained.returns(task, stage).max())
                found.setdefault((stage, task), []).append((best, float(own), float(last)))
        for (stage, task), values in sorted(found.items(), key=lambda item: (item[0][1], item[0][0])):
            spans = [f"{np.mean(of):.0f} ({min(of):.0f} to {max(of):.0f})" for of in zip(*values, strict=True)]
            rows.append((condition, short(task), stage + 1, *spans, len(values)))
    columns = ("condition", "task", "position", "best evaluation", "end of its phase", "end of the stream", "runs")
    caption = "Returns, mean (least to most) over orders and seeds; ends are 50 fresh whole episodes"
    return markdown(Table("returns", caption, columns, tuple(rows)))


def ranges(analysis: Analysis) -> str:
    """How many of the paper's numbers lie within our seeds, by condition and kind."""
    rows: list[tuple[Value, ...]] = []
    found = [one for one in study_ranges(analysis.results) if len(one.ours) > 1]
    for condition in dict.fromkeys(one.condition for one in found):
        for extreme in ("best", "worst"):
            for task in dict.fromkeys(one.task for one in found):
                mine = [o for o in found if (o.condition, o.extreme, o.task) == (condition, extreme, task)]
                inside = sum(one.is_inside for one in mine)
                gaps = [one.paper - float(np.median(one.ours)) for one in mine]
                below, above = sum(gap < 0 for gap in gaps), sum(gap > 0 for gap in gaps)
                rows.append((condition, extreme, task, len(mine), inside, below, above))
    n_inside = sum(one.is_inside for one in found)
    chance = np.mean([(len(one.ours) - 1) / (len(one.ours) + 1) for one in found])
    share = 100 * n_inside / len(found)
    caption = f"{n_inside} of these {len(found)} cells ({share:.0f} %) lie within the range of our seeds"
    counts = ("cells", "within our seeds", "below our median", "above it")
    table = markdown(Table("ranges", caption, ("condition", "evaluation", "task", *counts), tuple(rows)))
    words = f"A further seed of the same experiment would lie within the range in {100 * chance:.0f} % of cases."
    return f"{table}\n\n{words}"


def scales(full: Analysis) -> str:
    """The one seed that was trained at both scales, on the one order that full scale has."""
    third, whole = analyses()
    rows: list[tuple[Value, ...]] = []
    for condition in third.results.conditions:
        small = [entry for entry in third.finished(condition) if (entry.seed, entry.order) == (0, ORDER)]
        large = [entry for entry in full.finished(condition) if (entry.seed, entry.order) == (0, ORDER)]
        for one, other in zip(small, large, strict=False):
            for stage, task in enumerate(TASKS):
                best = [float(entry.run.ledgers[stage].curve(task).max()) for entry in (one, other)]
                ends = [float(whole.metrics(one).returns(task, -1)[0]), fresh(other.run, task)]
                rows.append((condition, short(task), *best, *ends))
    measures = ("best evaluation", f"end of the stream, {EPISODES} fresh episodes")
    columns = ("condition", "task", *(f"{what}, {scale}" for what in measures for scale in ("third", "full")))
    return markdown(Table("scales", f"{ORDER}, seed 0, at both scales", columns, tuple(rows), 0))


def picture(analysis: Analysis, whole: Analysis) -> None:
    """Every measured claim: its estimate and interval, every seed, whole episodes below, and the effect that counts."""
    claims = [(a, b) for a, b in zip(study_claims(analysis), study_claims(whole), strict=True) if a.is_measured]
    with mpl.rc_context(SETTINGS):
        figure, (axes,) = panels(1, 1, width=7.2, height=0.7 + 0.55 * len(claims))
        for place, pair in enumerate(claims):
            for claim, colour, shift, label in zip(
                pair, OKABE_ITO, (-0.12, 0.14), ("as evaluated in training", "whole episodes"), strict=False
            ):
                draw_claim(axes, claim, place + shift, colour, "" if place else label)
            effect, agrees = pair[0].rule.effect, pair[0].rule.agrees
            for mark in (effect, -effect) if agrees(0.0) else (effect,):  # near zero: on both sides
                axes.plot([mark, mark], [place - 0.4, place + 0.4], color="0.5", linestyle=":", linewidth=1)
        axes.axvline(0, color="0.3", linewidth=0.8)
        axes.set_yticks(range(len(claims)), [f"{a.number}. {a.sentence}\n{a.verdict}" for a, _ in claims])
        axes.invert_yaxis()
        axes.set_xlabel("units of R*; dotted: the effect that counts")
        figure.legend(loc="outside lower center", ncols=2)
    _save("reproduction-verdicts", Picture("verdicts", "", figure))


def draw_claim(axes: mpl.axes.Axes, claim: Claim, place: float, colour: str, label: str) -> None:
    """One line of the picture."""
    if claim.interval:
        axes.plot(claim.interval, [place, place], color=colour, linewidth=2.5, alpha=0.4, solid_capstyle="butt")
    axes.plot(claim.by_seed, [place] * claim.n_seeds, "|", color=colour, markersize=7)
    axes.plot(claim.estimate or 0.0, place, "o", color=colour, markersize=4, label=label or None)


def _save(name: str, picture: Picture) -> None:
    files = dict(picture.files())
    (DOCS / f"{name}.png").write_bytes(next(content for file, content in files.items() if file.endswith(".png")))


def parts(full: Analysis) -> dict[str, str]:
    """Every part of docs/reproduction.md that comes from here; the study at full scale stands beside."""
    analysis, whole = analyses()
    return {
        "in short": in_short(analysis, whole),
        "verdicts": verdicts(analysis, whole),
        "notes": notes(analysis, whole),
        "returns": returns(analysis, whole),
        "ranges": ranges(analysis),
        "scales": scales(full),
    }


def draw() -> None:
    """Play what has not been played, and draw."""
    results = whole_seeds()
    measure_references(results)
    play(results)
    analysis, whole = analyses()
    picture(analysis, whole)
    with mpl.rc_context(SETTINGS):
        for found in ranges_figures(analysis.results):
            _save("reproduction-ranges", found)
