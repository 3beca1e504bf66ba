"""What docs/reproduction.md says in words about the two readings: every number in it is read from ledgers."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from evergait.analysis.study import Analysis
from evergait.paper.numbers import distance, published
from evergait.scores.metrics import Metrics
from evergait.training.run import Run

TASKS = ("Hopper-v5", "Swimmer-v5", "Walker2d-v5")
HOPPER, SWIMMER, WALKER = TASKS
ORDER = "Hopper > Swimmer > Walker2d"
EPISODE = 1000
"""Steps of a whole episode of each of the three tasks."""
LATE = 10
"""Evaluations at the end that count together, for θ still moves."""


def uncut(metrics: Metrics) -> Metrics:
    """The same without evaluations that ended before a task does."""
    whole = [
        replace(ledger, records=tuple(record for record in ledger.records if not 0 < record.horizon < EPISODE))
        for ledger in metrics.ledgers
    ]
    return Metrics(tuple(whole), metrics.scale)


@dataclass(frozen=True)
class Reading:
    """The run of each condition in one reading; returns are whole numbers."""

    analysis: Analysis

    def metrics(self, condition: str) -> Metrics:
        """Of its run."""
        return self.analysis.metrics(self.analysis.finished(condition)[0])

    def run(self, condition: str) -> Run:
        """With its policies."""
        return self.analysis.finished(condition)[0].run

    def distance(self, condition: str, *, whole: bool = False) -> float:
        """To the paper's numbers; of evaluations that were not cut, if asked."""
        metrics = uncut(self.metrics(condition)) if whole else self.metrics(condition)
        return distance(metrics, published(condition, ORDER))

    def curve(self, condition: str, stage: int, task: str, *, whole: bool = False) -> dict[int, int]:
        """Generation → return in a phase."""
        metrics = uncut(self.metrics(condition)) if whole else self.metrics(condition)
        ledger = metrics.ledgers[stage]
        means = ledger.curve(task)
        return {record.generation: round(float(mean)) for record, mean in zip(ledger.records, means, strict=True)}

    def best(self, condition: str, task: str) -> int:
        """While it was learnt."""
        return max(self.curve(condition, TASKS.index(task), task).values())

    def bests(self, task: str) -> str:
        """The same with a shared head, with replay and with a head per task."""
        first, second, third = (self.best(condition, task) for condition in ("shared", "replay-192", "distinct"))
        return f"{first}, {second} and {third}"

    def limit(self, condition: str, stage: int, generation: int) -> int:
        """Where evaluations were cut."""
        records = self.metrics(condition).ledgers[stage].records
        return next(record.horizon for record in records if record.generation == generation)


CONDITIONS = ("shared", "replay-192", "distinct")


def findings(words: Reading, code: Reading, fresh: Callable[[Run, str], float]) -> str:
    """The page's section on what the two readings show."""
    said = {condition: published(condition, ORDER) for condition in CONDITIONS}
    paper_best = {task: [round(said[c][TASKS.index(task), task][1]) for c in CONDITIONS] for task in TASKS}
    near, cut, far = (
        float(np.mean(values))
        for values in (
            [code.distance(c) for c in CONDITIONS],
            [code.distance(c, whole=True) for c in CONDITIONS],
            [words.distance(c) for c in CONDITIONS],
        )
    )
    nearer = sum(code.distance(c) < words.distance(c) for c in CONDITIONS)
    hopper = {stage: code.curve("shared", stage, HOPPER) for stage in (1, 2)}
    own = code.curve("distinct", 2, HOPPER, whole=True)
    early, late = ([r for g, r in own.items() if (g <= 460) == is_early] for is_early in (True, False))
    replayed = min(min(code.curve("replay-192", stage, HOPPER).values()) for stage in (1, 2))
    falls = {c: code.curve(c, 2, SWIMMER) for c in ("shared", "distinct")}
    whole = {c: min(code.curve(c, 2, SWIMMER, whole=True).values()) for c in CONDITIONS}
    lines = [
        f"**By the distance, the authors' code is nearer to the paper in {nearer} of {len(CONDITIONS)} conditions.** "
        f"{100 * (cut - near) / (far - near):.0f} % of its lead comes from cut evaluations (see below): without them "
        f"its mean distance is {cut:.3f} in place of {near:.3f}, that of the words {far:.3f}. Its first phases come "
        f"to a best Hopper of {code.best('shared', HOPPER)} and {code.best('distinct', HOPPER)} (shared and distinct "
        f"heads; the paper {paper_best[HOPPER][0]} and {paper_best[HOPPER][2]}; words {words.best('shared', HOPPER)} "
        f"and {words.best('distinct', HOPPER)}). Swimmer comes to {code.bests(SWIMMER)} (shared, replay, distinct), in "
        f"words to {words.bests(SWIMMER)}, in the paper to {listed(paper_best[SWIMMER])}; Walker2d to "
        f"{code.bests(WALKER)}, in words to {words.bests(WALKER)}, in the paper to {listed(paper_best[WALKER])}.",
        "**What makes the difference, these runs do not tell.** The readings differ in many points "
        "([reading.md](reading.md)), and there is one seed of each.",
        f"**Hopper with a shared head, code.** Without replay it holds long after Swimmer is learnt (Swimmer "
        f"{code.curve('shared', 1, SWIMMER)[40]} at generation 40, Hopper {hopper[1][390]} at 390), collapses from "
        f"generation 420 on ({hopper[1][1000]} at the end of the phase), comes back almost whole while Walker2d is "
        f"learnt ({hopper[2][660]} at generation 660) and falls again ({median_of_last(hopper[2])} in the median of "
        f"the last ten evaluations, {fresh(code.run('shared'), HOPPER):.0f} in fifty fresh episodes); with replay it "
        f"is never below {replayed} in a later phase.",
        f"**With a head per task, code, Hopper outlives Swimmer and is then lost in part**: never below "
        f"{min(code.curve('distinct', 1, HOPPER).values())} while Swimmer is learnt (the paper "
        f"{said['distinct'][1, HOPPER][0]:.0f}). While Walker2d is learnt, it stays between {min(early)} and "
        f"{max(early)} where evaluations are not cut, until generation 460, then swings between {min(late)} and "
        f"{max(late)}; the last five evaluations are {max(late[-5:])} or less, and fifty fresh episodes of the last "
        f"policy have a mean of {fresh(code.run('distinct'), HOPPER):.0f}. The paper's text says that earlier tasks "
        f"stay largely stable with distinct heads; the worst evaluation of Hopper in its own table is "
        f"{said['distinct'][2, HOPPER][0]:.0f} at this place.",
        "**A part of what looks like forgetting in the authors' code is its measurement.** Evaluations are cut where "
        "training's episodes are, at twice the mean length of the last generation, so a task that is still known is "
        "measured over the few steps that a falling Walker2d lasts. Ten generations into the third phase the limit is "
        f"{code.limit('shared', 2, 10)} (shared) and {code.limit('distinct', 2, 10)} steps (distinct), and Swimmer "
        f'"falls" from {falls["shared"][0]} to {falls["shared"][10]} and from {falls["distinct"][0]} to '
        f"{falls['distinct'][10]}, Hopper with distinct heads from {code.curve('distinct', 2, HOPPER)[0]} to "
        f"{code.curve('distinct', 2, HOPPER)[10]}; at generation 60, with a limit above 1000, they are back "
        f"({falls['shared'][60]}, {falls['distinct'][60]} and {code.curve('distinct', 2, HOPPER)[60]}). The "
        f"minima in the paper's tables at this place (Swimmer {said['shared'][2, SWIMMER][0]:.0f} and "
        f"{said['distinct'][2, SWIMMER][0]:.0f}, Hopper {said['distinct'][2, HOPPER][0]:.0f}) may be of this kind; its "
        "curves are not published as numbers. With replay the limit counts the long replayed episodes too; here it "
        "stays above 1000 in both later phases, and nothing is cut. So by worst evaluations replay's lead looks larger "
        f"than it is: Swimmer's worst whole evaluation in the third phase is {whole['shared']} (shared), "
        f"{whole['distinct']} (distinct) and {whole['replay-192']} (replay).",
        words_in_short(words, fresh),
        f"**Unexplained.** With replay the paper's Walker2d comes to {paper_best[WALKER][1]} and its Swimmer to "
        f"{paper_best[SWIMMER][1]}; neither reading is near to both. Other seeds may be; one run each cannot tell.",
    ]
    return "\n".join(f"- {line}" for line in lines)


def words_in_short(words: Reading, fresh: Callable[[Run, str], float]) -> str:
    """What became of each task in the paper's words."""
    ends = {c: listed([round(fresh(words.run(c), task)) for task in TASKS]) for c in CONDITIONS}
    return (
        "**The paper's words**, fifty fresh episodes of the last policy on Hopper, Swimmer and Walker2d: "
        f"{ends['shared']} without replay, {ends['replay-192']} with it, {ends['distinct']} with a head per task. "
        f"Hopper's best was {words.bests(HOPPER)} (shared, replay, distinct)."
    )


def listed(values: list[int]) -> str:
    """1, 2 and 3."""
    return f"{', '.join(map(str, values[:-1]))} and {values[-1]}"


def median_of_last(curve: dict[int, int]) -> int:
    """Of the last ten evaluations."""
    return round(float(np.median(list(curve.values())[-LATE:])))
