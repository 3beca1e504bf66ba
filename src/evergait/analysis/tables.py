"""Every table of the paper with its values beside ours, and summaries over seeds; all from ledgers."""

from collections.abc import Sequence

import numpy as np

from evergait.analysis.gather import finished, gather, later_interference
from evergait.analysis.roles import find_roles, reference_condition
from evergait.core.names import short
from evergait.core.table import Table, Value, file_name
from evergait.scores.metrics import Metrics
from evergait.scores.reference import paper_extrema, paper_multi_task, paper_single_task
from evergait.scores.stats import interquartile_mean
from evergait.studies.results import Entry, Results

COMPARED = ("paper", "ours", "difference")


def compared(ours: float | None, paper: float | None) -> tuple[Value, Value, Value]:
    """The paper's value, ours and the difference, as far as there are any."""
    return paper, ours, None if ours is None or paper is None else ours - paper


def over_seeds(values: Sequence[float]) -> float | None:
    """Interquartile mean; of one seed that is its value."""
    return interquartile_mean(np.array(values)) if values else None


def single_task_table(results: Results) -> Table:
    """The paper's Table 1: the best evaluation of single-task training."""
    best: dict[str, list[float]] = {}
    for ledgers in results.baselines.values():
        for task, ledger in ledgers.items():
            best.setdefault(task, []).append(float(ledger.curve(task).max()))
    paper = paper_single_task()
    rows = [
        (short(task), *compared(over_seeds(values), paper.get(task)), len(values))
        for task, values in sorted(best.items())
    ]
    return Table("single-task", "Best evaluation of single-task training", ("task", *COMPARED, "seeds"), tuple(rows))


def multi_task_table(results: Results) -> Table:
    """The paper's Table 2: the best evaluation of multi-task training, with a shared head or one per task."""
    published = {row["output_head"]: row for row in paper_multi_task()}
    rows: list[tuple[Value, ...]] = []
    for condition in find_roles(results).multitask:
        entries = finished(results, condition)
        heads = entries[0].run.config.policy.heads if entries else ""
        tasks = dict.fromkeys(task for entry in entries for task in entry.run.ledger.learning)
        for task in tasks:
            best = [float(entry.run.ledger.curve(task).max()) for entry in entries]
            paper = published.get(heads, {}).get(short(task))
            row = compared(over_seeds(best), float(paper) if paper else None)
            rows.append((condition, heads, short(task), *row, len(best)))
    columns = ("condition", "output head", "task", *COMPARED, "seeds")
    return Table("multi-task", "Best evaluation of multi-task training", columns, tuple(rows))


def extrema_rows(entries: Sequence[Entry]) -> list[tuple[Value, ...]]:
    """Runs of one condition and order, over seeds: best and worst evaluation per step and task learnt so far."""
    reference = reference_condition(entries[0].run.config)
    published = {
        (row["order"], int(row["step"]), row["task"]): row for row in paper_extrema() if row["condition"] == reference
    }
    rows: list[tuple[Value, ...]] = []
    order = entries[0].order
    for stage in range(max(len(entry.run.ledgers) for entry in entries)):
        ledgers = [entry.run.ledgers[stage] for entry in entries if len(entry.run.ledgers) > stage]
        reached = next(entry for entry in entries if len(entry.run.ledgers) > stage).run.ledgers[: stage + 1]
        for task in dict.fromkeys(task for ledger in reached for task in ledger.learning):
            paper = published.get((order, stage + 1, short(task)), {})
            high, low = (
                compared(
                    over_seeds([float(pick(ledger.curve(task))) for ledger in ledgers]),
                    float(paper[column]) if paper else None,
                )
                for pick, column in ((np.max, "max_return"), (np.min, "min_return"))
            )
            rows.append((entries[0].condition, order, stage + 1, short(task), *high, *low, len(ledgers)))
    return rows


EXTREMA = (
    "condition",
    "order",
    "step",
    "task",
    *(f"max, {word}" for word in COMPARED),
    *(f"min, {word}" for word in COMPARED),
    "seeds",
)


def by_order(results: Results, condition: str) -> dict[str, list[Entry]]:
    """Entries of a condition, finished or not, by order."""
    groups: dict[str, list[Entry]] = {}
    for entry in results.entries:
        if entry.condition == condition:
            groups.setdefault(entry.order, []).append(entry)
    return groups


def extrema_tables(results: Results) -> list[Table]:
    """One table per condition over its orders, and one of all replay budgets on the orders that have several."""
    roles = find_roles(results)
    tables = []
    for condition in results.conditions:
        if condition in roles.multitask:
            continue
        rows = [row for entries in by_order(results, condition).values() for row in extrema_rows(entries)]
        caption = f"Best and worst evaluation per step and task: {condition}"
        tables.append(Table(f"extrema-{file_name(condition)}", caption, EXTREMA, tuple(rows)))
    if len(roles.replay) > 1:
        rows = []
        for order in budget_orders(results):
            for condition in roles.replay:
                rows += extrema_rows(by_order(results, condition)[order])
        caption = "Best and worst evaluation per step and task: replay budgets"
        tables.append(Table("extrema-budgets", caption, EXTREMA, tuple(rows)))
    return tables


def budget_orders(results: Results) -> list[str]:
    """Orders on which every replay budget has been trained."""
    orders = [list(by_order(results, condition)) for condition in find_roles(results).replay]
    return [order for order in orders[0] if all(order in others for others in orders)] if orders else []


MEASURES = {
    "final R̂": Metrics.average_performance,
    "avg BWT": Metrics.average_backward_transfer,
    "avg FWT": Metrics.average_forward_transfer,
    "Int": later_interference,
}


def summary_table(results: Results) -> Table:
    """Per condition: what is left at the end, forgetting, transfer and interference, over orders and seeds."""
    rows: list[tuple[Value, ...]] = []
    for condition in results.conditions:
        entries = finished(results, condition)
        if not entries:
            continue
        row: list[Value] = [condition]
        for name, measure in MEASURES.items():
            if name != "final R̂" and len(entries[0].run.ledgers) == 1:
                row += [None, None, None]
                continue
            values = gather(results, condition, measure)
            row += [values.estimate, *(values.interval or (None, None))]
        values = gather(results, condition, Metrics.average_performance)
        rows.append((*row, len(values.orders), len(values.seeds)))
    names = [column for name in MEASURES for column in (name, f"{name}, low", f"{name}, high")]
    caption = "Interquartile mean over orders and seeds with stratified bootstrap 95 % interval over seeds"
    return Table("summary", caption, ("condition", *names, "orders", "seeds"), tuple(rows), digits=3)


def runs_table(results: Results) -> Table:
    """Every finished run on its own."""
    rows: list[tuple[Value, ...]] = []
    for entry in results.entries:
        if entry.run.is_done and entry.condition != "single":
            metrics = results.metrics(entry)
            several = metrics.n_stages > 1
            values = [m(metrics) if several or name == "final R̂" else None for name, m in MEASURES.items()]
            rows.append((entry.condition, entry.order, entry.seed, *values, sum(metrics.total_steps().values())))
    columns = ("condition", "order", "seed", *MEASURES, "environment steps")
    return Table("runs", "Every run", columns, tuple(rows), digits=3)
