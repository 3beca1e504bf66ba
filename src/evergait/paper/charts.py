"""What two of the paper's figures and one of its tables show: interference by replay budget, and by heads."""

from collections.abc import Sequence

from evergait.analysis.gather import Values
from evergait.analysis.study import Analysis
from evergait.analysis.tables import extrema_table
from evergait.core.table import Table
from evergait.paper.roles import find_roles

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
    return [
        analysis.gather(condition, lambda metrics, stage=stage: metrics.interference(stage), [order])  # type: ignore[misc]
        for stage in stages
    ]


def budgets_table(analysis: Analysis) -> Table:
    """The paper's table of extrema of all replay budgets."""
    cells = [(name, order) for order in budget_orders(analysis) for name in find_roles(analysis).replay]
    return extrema_table(analysis, "extrema-budgets", "replay budgets", cells)
