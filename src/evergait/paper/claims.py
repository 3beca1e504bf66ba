"""The paper's six claims, each measured: a sentence, a statistic with its interval, and a verdict.

docs/reproduction.md says which statistic decides and which effect counts, and when that was written.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evergait.analysis.groups import Measure, Values, table_of
from evergait.analysis.study import Analysis
from evergait.core.table import Table, Value
from evergait.paper.roles import Roles, budget_orders, find_roles
from evergait.scores.metrics import Metrics
from evergait.scores.stats import MIN_SEEDS
from evergait.tasks.base import short

Verdict = Literal["holds", "does not hold", "undecided", "not measured"]


@dataclass(frozen=True)
class Rule:
    """When a claim holds."""

    effect: float
    """What counts, or how far from zero is still near."""
    decide: Callable[[float, float, float], Verdict]
    """Estimate and the ends of its interval → verdict."""
    agrees: Callable[[float], bool]
    """Whether one seed alone, as a paper may have it, would speak for the claim."""


FORGETTING, DIFFERENCE = 0.1, 0.05
"""What counts, in units of R*: of what was learnt, and between conditions that both learn."""
MIN_BUDGETS = 3
"""What claim 3 needs."""


def at_least(effect: float) -> Rule:
    """Holds if the interval leaves out zero and the estimate is an effect that counts; not if it leaves that out."""

    def decide(estimate: float, low: float, high: float) -> Verdict:
        if low > 0 and estimate >= effect:
            return "holds"
        return "does not hold" if high < effect else "undecided"

    return Rule(effect, decide, lambda value: value > 0)


def at_most(effect: float) -> Rule:
    """The mirror image, for negative effects."""
    mirrored = at_least(-effect).decide
    return Rule(effect, lambda estimate, low, high: mirrored(-estimate, -high, -low), lambda value: value < 0)


def within(bound: float) -> Rule:
    """Holds if all of the interval is near zero; not if none of it is."""

    def decide(estimate: float, low: float, high: float) -> Verdict:
        if -bound <= low and high <= bound:
            return "holds"
        return "does not hold" if low > bound or high < -bound else "undecided"

    return Rule(bound, decide, lambda value: abs(value) <= bound)


@dataclass(frozen=True)
class Claim:
    """One claim of the paper."""

    number: int
    sentence: str
    statistic: str
    """What is measured, in words."""
    parts: tuple[Values, ...]
    """What decides, all on the same seeds; of several, the least does. Empty if the study lacks the conditions."""
    rule: Rule

    def __post_init__(self) -> None:
        """A claim rests on the seeds that all of its parts have."""
        object.__setattr__(self, "parts", _on_common_seeds(self.parts))

    @property
    def is_measured(self) -> bool:
        """Whether there is a number."""
        return bool(self.parts)

    @property
    def estimate(self) -> float | None:
        """Mean over seeds of the mean over orders."""
        return min(part.estimate for part in self.parts) if self.parts else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its 95 % interval, in which a whole seed is one observation."""
        found = [interval for part in self.parts if (interval := part.interval)]
        whole = found and len(found) == len(self.parts)
        return (min(low for low, _ in found), min(high for _, high in found)) if whole else None

    @property
    def detectable(self) -> float | None:
        """What so many seeds could have told from zero, with 90 % power."""
        return max((effect for part in self.parts if (effect := part.detectable) is not None), default=None)

    @property
    def by_seed(self) -> list[float]:
        """What each seed says alone."""
        return np.min([part.by_seed for part in self.parts], axis=0).tolist() if self.parts else []

    @property
    def n_seeds(self) -> int:
        """Seeds that it rests on."""
        return len(self.by_seed)

    @property
    def verdict(self) -> Verdict:
        """By the claim's rule; one or two seeds decide nothing."""
        if self.estimate is None:
            return "not measured"
        if self.n_seeds < MIN_SEEDS or self.interval is None:
            return "undecided"
        return self.rule.decide(self.estimate, *self.interval)

    @property
    def n_against(self) -> int:
        """Seeds that, each taken alone, would speak against the claim."""
        return sum(not self.rule.agrees(value) for value in self.by_seed)

    @property
    def n_opposite(self) -> int | None:
        """Seeds that, each taken alone, would have said the opposite of the verdict; none where it is undecided."""
        return {"holds": self.n_against, "does not hold": self.n_seeds - self.n_against}.get(self.verdict)


def _on_common_seeds(parts: tuple[Values, ...]) -> tuple[Values, ...]:
    seeds = tuple(seed for seed in (parts[0].seeds if parts else ()) if all(seed in part.seeds for part in parts))
    found = tuple(Values(seeds, part.orders, part.at(seeds, part.orders)) for part in parts)
    return found if seeds else ()


def study_claims(analysis: Analysis) -> list[Claim]:
    """All six, as far as the study has what they need; none in a study that is not the paper's."""
    if not analysis.published:
        return []
    roles = find_roles(analysis)
    naive, replay, distinct = roles.naive, roles.middle_replay, roles.distinct
    forgetting, interference = Metrics.average_backward_transfer, Metrics.later_interference

    def measure(condition: str, what: Measure) -> tuple[Values, ...]:
        return _gather(analysis, condition, what)

    def difference(one: str, other: str, what: Measure) -> tuple[Values, ...]:
        return tuple(a - b for a, b in zip(measure(one, what), measure(other, what), strict=False))

    return [
        Claim(
            1,
            "Sequential ES without replay forgets",
            f"Average BWT of {naive}",
            measure(naive, forgetting),
            at_most(-FORGETTING),
        ),
        Claim(
            2,
            "Replay retains what was learnt",
            f"Average BWT of {replay} minus that of {naive}",
            difference(replay, naive, forgetting),
            at_least(FORGETTING),
        ),
        Claim(
            3,
            "The middle replay budget is best; the largest costs plasticity",
            _budget_words(roles),
            _budgets(analysis, roles),
            at_least(DIFFERENCE),
        ),
        Claim(
            4,
            "Distinct heads interfere less than a shared head with replay",
            f"Int at later positions of {replay} minus that of {distinct}",
            difference(replay, distinct, interference),
            at_least(DIFFERENCE),
        ),
        Claim(
            5,
            "With replay, average BWT is near zero",
            f"Average BWT of {replay} (near: within ±{FORGETTING})",
            measure(replay, forgetting),
            within(FORGETTING),
        ),
        Claim(
            6,
            "Forward transfer is positive mainly towards Swimmer",
            "The least of FWT towards Swimmer and its lead over others, right before each is learnt, in "
            + " and ".join(filter(None, (naive, replay))),
            _towards_swimmer(analysis, naive) + _towards_swimmer(analysis, replay),
            at_least(DIFFERENCE),
        ),
    ]


def _gather(analysis: Analysis, condition: str, measure: Measure) -> tuple[Values, ...]:
    """Of streams of several tasks; a single one has nothing to forget, transfer or interfere with."""
    if not condition or any(len(entry.run.ledgers) < 2 for entry in analysis.finished(condition)):
        return ()
    values = analysis.gather(condition, measure)
    return (values,) if values.values.size and np.isfinite(values.values).all() else ()


def _budget_words(roles: Roles) -> str:
    if len(roles.replay) < MIN_BUDGETS:
        return "Final R̂"
    middle, others = roles.middle_replay, [name for name in roles.replay if name != roles.middle_replay]
    differences = [f"final R̂ of {middle} minus that of {other}" for other in others]
    return f"The least of {', '.join(differences)}, and Int at later positions of {roles.replay[-1]} minus {middle}"


def _budgets(analysis: Analysis, roles: Roles) -> tuple[Values, ...]:
    """The middle budget against every other by final R̂, and the largest against it by Int, on the orders of all."""
    orders = tuple(budget_orders(analysis))
    if len(roles.replay) < MIN_BUDGETS or not orders:
        return ()

    def of(name: str, measure: Measure) -> Values:
        return analysis.gather(name, measure, orders)

    middle, largest = roles.middle_replay, roles.replay[-1]
    others = [name for name in roles.replay if name != middle]
    kept = [of(middle, Metrics.average_performance) - of(other, Metrics.average_performance) for other in others]
    parts = (*kept, of(largest, Metrics.later_interference) - of(middle, Metrics.later_interference))
    return parts if all(part.values.size and np.isfinite(part.values).all() for part in parts) else ()


def _towards_swimmer(analysis: Analysis, condition: str) -> tuple[Values, ...]:
    """Per seed: mean FWT towards Swimmer, and the same minus mean FWT towards other tasks, over all orders."""
    counted = analysis.gather(condition, lambda _: 0.0)  # the runs that other claims rest on, whatever is measured
    parts: dict[int, dict[bool, list[float]]] = {}
    for entry in (e for e in analysis.finished(condition) if counted.rests_on(e.seed, e.order)):
        metrics = analysis.metrics(entry)
        for stage in range(1, metrics.n_stages):
            towards = short(metrics.task(stage)).startswith("Swimmer")
            part = parts.setdefault(entry.seed, {True: [], False: []})
            part[towards].append(metrics.forward_transfer(stage))
    rows = {seed: (np.mean(part[True]), np.mean(part[False])) for seed, part in parts.items() if all(part.values())}
    if not rows or not np.isfinite(list(rows.values())).all():
        return ()
    swimmer, others = (table_of({(seed, "all"): float(row[i]) for seed, row in rows.items()}) for i in (0, 1))
    return swimmer, swimmer - others


def claims_table(analysis: Analysis) -> Table:
    """The claims as a table."""
    rows: list[tuple[Value, ...]] = []
    for claim in study_claims(analysis):
        low, high = claim.interval or (None, None)
        statistic = claim.statistic if claim.is_measured else ""
        numbers = (claim.estimate, low, high, claim.detectable, claim.n_seeds, claim.n_against)
        rows.append((claim.number, claim.sentence, statistic, *numbers, claim.verdict))
    measured = ("estimate", "low", "high", "could show", "seeds", "seeds against")
    columns = ("claim", "sentence", "statistic", *measured, "verdict")
    return Table("claims", "The paper's claims, measured", columns, tuple(rows), digits=3)
