"""The paper's six claims, each measured: a sentence, a statistic with its interval, and a verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evergait.analysis.gather import MIN_SEEDS, Values, finished, gather, later_interference
from evergait.analysis.roles import Roles, find_roles
from evergait.analysis.tables import budget_orders
from evergait.core.names import short
from evergait.core.table import Table
from evergait.scores.metrics import Metrics
from evergait.studies.results import Results

Verdict = Literal["holds", "does not hold", "too few seeds", "not measured"]

NEAR_ZERO = 0.1
"""What counts as near zero for an average in units of R*."""


@dataclass(frozen=True)
class Claim:
    """One claim of the paper."""

    number: int
    sentence: str
    statistic: str
    """What is measured, in words."""
    values: Values | None
    holds: Callable[[float], bool]
    """Whether the claim is true if the statistic has this value."""

    @property
    def estimate(self) -> float | None:
        """Interquartile mean over orders and seeds."""
        return self.values.estimate if self.values and self.values.values.size else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its stratified bootstrap 95 % interval over seeds."""
        return self.values.interval if self.values else None

    @property
    def n_seeds(self) -> int:
        """Seeds that it rests on."""
        return len(self.values.seeds) if self.values and self.values.values.size else 0

    @property
    def verdict(self) -> Verdict:
        """It holds only if it does so all over the interval."""
        if self.estimate is None:
            return "not measured"
        if self.n_seeds < MIN_SEEDS or self.interval is None:
            return "too few seeds"
        return "holds" if all(map(self.holds, self.interval)) else "does not hold"

    @property
    def text(self) -> str:
        """All of it in one line."""
        if self.estimate is None:
            return f"{self.sentence}: not measured, for this study lacks the conditions."
        between = f" [{self.interval[0]:+.3f}, {self.interval[1]:+.3f}]" if self.interval else ""
        seeds = f"{self.n_seeds} seed{'s' if self.n_seeds != 1 else ''}"
        return f"{self.sentence}: {self.verdict}. {self.statistic} is {self.estimate:+.3f}{between} ({seeds})."


def study_claims(results: Results) -> list[Claim]:
    """All six, as far as the study has what they need."""
    roles = find_roles(results)
    naive, replay = (roles.naive or ("",))[0], roles.middle_replay
    distinct = (roles.distinct or ("",))[0]
    forgetting = Metrics.average_backward_transfer
    return [
        Claim(
            1,
            "Sequential ES without replay forgets",
            f"Average BWT of {naive}",
            _gather(results, naive, forgetting),
            lambda value: value < 0,
        ),
        Claim(
            2,
            "Replay retains what was learnt",
            f"Average BWT of {replay} minus that of {naive}",
            _difference(results, replay, naive, forgetting),
            lambda value: value > 0,
        ),
        Claim(
            3,
            "The middle replay budget is best; the largest costs plasticity",
            _budget_words(roles),
            _budgets(results, roles),
            lambda value: value > 0,
        ),
        Claim(
            4,
            "Distinct heads interfere less than a shared head with replay",
            f"Int at later positions of {replay} minus that of {distinct}",
            _difference(results, replay, distinct, later_interference),
            lambda value: value > 0,
        ),
        Claim(
            5,
            "With replay, average BWT is near zero",
            f"Average BWT of {replay} (near: within ±{NEAR_ZERO})",
            _gather(results, replay, forgetting),
            lambda value: abs(value) <= NEAR_ZERO,
        ),
        Claim(
            6,
            "Forward transfer is positive mainly towards Swimmer",
            f"FWT towards Swimmer minus FWT towards the other tasks, right before each is learnt, in {naive}",
            _towards_swimmer(results, naive),
            lambda value: value > 0,
        ),
    ]


def _gather(results: Results, condition: str, measure: Callable[[Metrics], float]) -> Values | None:
    """Of streams of several tasks; a single one has nothing to forget, transfer or interfere with."""
    if not condition or any(len(entry.run.ledgers) < 2 for entry in finished(results, condition)):
        return None
    values = gather(results, condition, measure)
    return values if values.values.size else None


def _difference(results: Results, one: str, other: str, measure: Callable[[Metrics], float]) -> Values | None:
    first, second = _gather(results, one, measure), _gather(results, other, measure)
    return first - second if first and second else None


def _budget_words(roles: Roles) -> str:
    others = " and ".join(name for name in roles.replay if name != roles.middle_replay)
    return f"Final R̂ of {roles.middle_replay} minus the better of {others}" if others else "Final R̂"


def _budgets(results: Results, roles: Roles) -> Values | None:
    """Final R̂ of the middle budget minus that of the better of the others, on the orders that all have."""
    if len(roles.replay) < MIN_BUDGETS:
        return None
    orders = budget_orders(results)
    measured = [gather(results, name, Metrics.average_performance, orders) for name in roles.replay]
    middle = measured.pop(len(measured) // 2)
    seeds = tuple(seed for seed in middle.seeds if all(seed in other.seeds for other in measured))
    orders = [order for order in middle.orders if all(order in other.orders for other in measured)]
    best = np.max([other.at(seeds, orders) for other in measured], axis=0)
    return Values(seeds, tuple(orders), middle.at(seeds, orders) - best) if seeds and orders else None


MIN_BUDGETS = 3


def _towards_swimmer(results: Results, condition: str) -> Values | None:
    """Per seed: mean FWT towards Swimmer minus mean FWT towards other tasks, over all orders of the condition."""
    parts: dict[int, dict[bool, list[float]]] = {}
    for entry in results.entries:
        if entry.condition == condition and entry.run.is_done:
            metrics = results.metrics(entry)
            for stage in range(1, metrics.n_stages):
                towards = short(metrics.task(stage)).startswith("Swimmer")
                part = parts.setdefault(entry.seed, {True: [], False: []})
                part[towards].append(metrics.forward_transfer(stage))
    rows = {seed: np.mean(part[True]) - np.mean(part[False]) for seed, part in parts.items() if all(part.values())}
    return Values(tuple(rows), ("all",), np.array(list(rows.values())).reshape(-1, 1)) if rows else None


def claims_table(results: Results) -> Table:
    """The claims as a table."""
    rows = []
    for claim in study_claims(results):
        low, high = claim.interval or (None, None)
        statistic = claim.statistic if claim.estimate is not None else ""
        rows.append((claim.number, claim.sentence, statistic, claim.estimate, low, high, claim.n_seeds, claim.verdict))
    columns = ("claim", "sentence", "statistic", "estimate", "low", "high", "seeds", "verdict")
    return Table("claims", "The paper's claims, measured", columns, tuple(rows), digits=3)
