"""What a condition is in the paper's terms, told by its settings and not by its name.

By these roles two of the paper's figures and one of its tables are made: interference by replay budget, and by heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from evergait.analysis.groups import Values
from evergait.analysis.study import Analysis, settings
from evergait.analysis.tables import extrema_table
from evergait.config import Config
from evergait.core.table import Table
from evergait.methods import Multitask, Naive, Replay
from evergait.scores.metrics import Metrics

PAPER_POPULATION = 768


@dataclass(frozen=True)
class Roles:
    """Conditions of a study by the part they play; empty where there is none. All differ in method and heads alone."""

    naive: str
    """Sequential ES with a shared head."""
    replay: tuple[str, ...]
    """Joint replay with a shared head, rising with the budget; of several with one budget, the first of the study."""
    distinct: str
    """Sequential ES with a head per task."""
    multitask: tuple[str, ...]

    @property
    def middle_replay(self) -> str:
        """The budget that stands for replay: the middle one; empty without replay."""
        return self.replay[len(self.replay) // 2] if self.replay else ""


def budget_share(config: Config) -> float:
    """Replay evaluations per evaluation on the current task; 0 for other methods."""
    return config.method.budget / (2 * config.pairs) if isinstance(config.method, Replay) else 0.0


def reference_condition(config: Config) -> str:
    """The paper's condition that has this method and these heads, up to the size of the population; else empty."""
    shared = config.policy.heads == "shared"
    if isinstance(config.method, Naive):
        return "shared" if shared else "distinct"
    if isinstance(config.method, Replay) and shared:
        return f"replay-{round(budget_share(config) * PAPER_POPULATION)}"
    return ""


def find_roles(analysis: Analysis) -> Roles:
    """Who is who among the conditions of a study; one that differs in more than method and heads plays no part."""
    configs = {name: analysis.config(name) for name in analysis.results.conditions}
    called: dict[str, list[str]] = {}
    for name, config in configs.items():
        called.setdefault(reference_condition(config), []).append(name)
    naive = called.get("shared", [""])[0]
    first = configs[naive] if naive else next(iter(configs.values()), Config())
    alike = {name for name, config in configs.items() if _but_heads(config) == _but_heads(first)}
    budgets = [next((n for n in names if n in alike), "") for role, names in called.items() if role[:6] == "replay"]
    return Roles(
        naive=naive,
        replay=tuple(sorted(filter(None, budgets), key=lambda name: budget_share(configs[name]))),
        distinct=next((name for name in called.get("distinct", []) if name in alike), ""),
        multitask=tuple(name for name, config in configs.items() if isinstance(config.method, Multitask)),
    )


def _but_heads(config: Config) -> Config:
    return settings(replace(config, policy=replace(config.policy, heads="shared")))


Bars = dict[str, list[Values]]
"""Condition → a value per label."""


def budget_orders(analysis: Analysis) -> list[str]:
    """Orders on which every replay budget has been trained to the end, if there are several budgets."""
    replay = find_roles(analysis).replay
    orders = [analysis.orders(condition) for condition in replay]
    return [order for order in orders[0] if all(order in o for o in orders)] if len(replay) > 1 else []


def budget_interference(analysis: Analysis) -> tuple[str, list[str], Bars]:
    """Order, labels and Int at every position, from no replay to the largest budget; empty if there is nothing."""
    roles = find_roles(analysis)
    for order in budget_orders(analysis)[:1]:
        shown = [name for name in (roles.naive, *roles.replay) if name and order in analysis.orders(name)]
        tasks = order.split(" > ")
        labels = [f"{task} (position {i + 1})" for i, task in enumerate(tasks)]
        return order, labels, {name: _interference(analysis, name, order, range(len(tasks))) for name in shown}
    return "", [], {}


def heads_interference(analysis: Analysis, stage: int) -> tuple[list[str], Bars]:
    """Orders and Int of replay with a shared head against distinct heads, at one position."""
    roles = find_roles(analysis)
    shown = [name for name in (roles.middle_replay, roles.distinct) if name]
    if len(shown) < 2:
        return [], {}
    orders = [order for order in analysis.orders(shown[0]) if order in analysis.orders(shown[1])]
    orders = [order for order in orders if len(order.split(" > ")) > stage]
    bars = {name: [_interference(analysis, name, order, [stage])[0] for order in orders] for name in shown}
    return orders, bars if orders else {}


def _interference(analysis: Analysis, condition: str, order: str, stages: Sequence[int]) -> list[Values]:
    return [analysis.gather(condition, partial(Metrics.interference, stage=stage), [order]) for stage in stages]


def budgets_table(analysis: Analysis) -> Table:
    """The paper's table of extrema of all replay budgets."""
    cells = [(name, order) for order in budget_orders(analysis) for name in find_roles(analysis).replay]
    return extrema_table(analysis, "extrema-budgets", "replay budgets", cells)
