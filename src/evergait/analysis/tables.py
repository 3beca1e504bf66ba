"""Tables of a study: summaries over seeds, extrema beside published ones, every run; all from ledgers."""

from collections.abc import Sequence

import numpy as np

from evergait.analysis.ranking import standings
from evergait.analysis.study import Analysis, settings, single_task_phases
from evergait.core.table import Table, Value, file_name
from evergait.methods import Multitask
from evergait.scores.metrics import Metrics
from evergait.store.ledger import Ledger
from evergait.studies.results import Entry
from evergait.tasks.base import short

MEASURES = {
    "avg BWT, from best": Metrics.average_backward_transfer,
    "avg BWT, from end of phase": Metrics.gem_backward_transfer,
    "avg FWT": Metrics.average_forward_transfer,
    "Int": Metrics.later_interference,
}
"""Of streams; the first one, what is left at the end, has the name of the scale."""
COUNTED = "the evaluation before a phase's first generation counts"


def compared(analysis: Analysis, ours: Sequence[float], published: float | None) -> tuple[Value, ...]:
    """Our mean over seeds; in a published study, between the published value and the difference."""
    mean = float(np.mean(ours)) if len(ours) else None
    if not analysis.published:
        return (mean,)
    return published, mean, None if mean is None or published is None else mean - published


def comparison_columns(analysis: Analysis, prefix: str = "") -> tuple[str, ...]:
    """The names of what `compared` gives."""
    return tuple(prefix + word for word in (("paper", "ours", "difference") if analysis.published else ("ours",)))


def single_task_table(analysis: Analysis) -> Table:
    """Single-task training: its best evaluation and its final policy, on all seeds' mean."""
    rows: list[tuple[Value, ...]] = []
    if singles := analysis.results.baselines:
        for task, phases in sorted(single_task_phases(analysis.results, settings(singles[0].run.config)).items()):
            published = analysis.published.single_task(task) if analysis.published else None
            ledgers = [ledger for _, ledger in phases.values()]
            best = compared(analysis, [ledger.best(task) for ledger in ledgers], published)
            end = float(np.mean([ledger.records[-1].mean(task) for ledger in ledgers]))
            rows.append((short(task), *best, end, len(phases)))
    columns = ("task", *comparison_columns(analysis, "best, "), "at the end, ours", "seeds")
    return Table("single-task", "Single-task training: best evaluation, mean over seeds", columns, tuple(rows))


def multi_task_table(analysis: Analysis) -> Table:
    """The best evaluation of multi-task training."""
    rows: list[tuple[Value, ...]] = []
    for condition in analysis.results.conditions:
        entries, config = analysis.finished(condition), analysis.config(condition)
        if not isinstance(config.method, Multitask):
            continue
        for task in dict.fromkeys(task for entry in entries for task in entry.run.ledger.learning):
            published = analysis.published.multi_task(config, task) if analysis.published else None
            best = [entry.run.ledger.best(task) for entry in entries]
            heads = config.policy.heads
            rows.append((condition, heads, short(task), *compared(analysis, best, published), len(best)))
    columns = ("condition", "output head", "task", *comparison_columns(analysis), "seeds")
    return Table("multi-task", "Best evaluation of multi-task training, mean over seeds", columns, tuple(rows))


def extrema_rows(analysis: Analysis, entries: Sequence[Entry]) -> list[tuple[Value, ...]]:
    """Runs of one condition and order, over seeds: best and worst evaluation per step and task learnt so far."""
    rows: list[tuple[Value, ...]] = []
    config, order = entries[0].run.config, entries[0].order
    furthest = max(entries, key=lambda entry: len(entry.run.ledgers)).run.ledgers
    for stage in range(len(furthest)):
        ledgers = [entry.run.ledgers[stage] for entry in entries if len(entry.run.ledgers) > stage]
        for task in dict.fromkeys(task for ledger in furthest[: stage + 1] for task in ledger.learning):
            cells: list[Value] = []
            for which, pick in (("max", Ledger.best), ("min", Ledger.worst)):
                known = analysis.published
                published = known.extremum(config, order, stage + 1, short(task), which) if known else None
                cells += compared(analysis, [pick(ledger, task) for ledger in ledgers], published)
            rows.append((entries[0].condition, order, stage + 1, short(task), *cells, len(ledgers)))
    return rows


def extrema_table(analysis: Analysis, name: str, what: str, cells: Sequence[tuple[str, str]]) -> Table:
    """Best and worst evaluation of some (condition, order)."""
    rows: list[tuple[Value, ...]] = []
    for condition, order in cells:
        found = [e for e in analysis.results.entries if (e.condition, e.order) == (condition, order)]
        rows += extrema_rows(analysis, found) if found else []
    numbers = (*comparison_columns(analysis, "max, "), *comparison_columns(analysis, "min, "))
    columns = ("condition", "order", "step", "task", *numbers, "seeds")
    caption = f"Best and worst evaluation per step and task, mean over seeds; {COUNTED}: {what}"
    return Table(name, caption, columns, tuple(rows))


def extrema_tables(analysis: Analysis) -> list[Table]:
    """One table per condition over its orders."""
    tables = []
    for condition in analysis.results.conditions:
        if isinstance(analysis.config(condition).method, Multitask):
            continue
        orders = dict.fromkeys(e.order for e in analysis.results.entries if e.condition == condition)
        name = f"extrema-{file_name(condition)}"
        tables.append(extrema_table(analysis, name, condition, [(condition, order) for order in orders]))
    return tables


def summary_table(analysis: Analysis) -> Table:
    """Per condition, best first: what is left at the end, forgetting, transfer and interference."""
    rows: list[tuple[Value, ...]] = []
    for standing in standings(analysis):
        entries = analysis.finished(standing.condition)
        if not entries:
            continue
        row: list[Value] = [standing.condition]
        for measure in (Metrics.average_performance, *MEASURES.values()):
            if measure is not Metrics.average_performance and len(entries[0].run.ledgers) == 1:
                row += [None, None, None]
                continue
            values = analysis.gather(standing.condition, measure)
            row += [_defined(values.estimate), *(values.interval or (None, None))]
        values = analysis.gather(standing.condition, Metrics.average_performance)
        counted = [entry for entry in entries if values.rests_on(entry.seed, entry.order)]
        returns = [_mean_return(counted, task) for task in analysis.tasks]
        rows.append((*row, *returns, len(values.orders), len(values.seeds)))
    names = [f"{name}{end}" for name in (_final(analysis), *MEASURES) for end in ("", ", low", ", high")]
    finals = [f"final return, {short(task)}" for task in analysis.tasks]
    caption = "Mean over orders and seeds with its 95 % interval (Student's t over seeds; none from fewer than three)"
    return Table("summary", caption, ("condition", *names, *finals, "orders", "seeds"), tuple(rows), digits=3)


def _mean_return(entries: Sequence[Entry], task: str) -> float | None:
    """Of the last evaluation, where runs learnt the task."""
    learnt = [e for e in entries if any(task in ledger.learning for ledger in e.run.ledgers)]
    return float(np.mean([entry.run.ledger.records[-1].mean(task) for entry in learnt])) if learnt else None


def runs_table(analysis: Analysis) -> Table:
    """Every finished run on its own."""
    rows: list[tuple[Value, ...]] = []
    for entry in analysis.results.entries:
        if entry.run.is_done and not entry.is_baseline:
            metrics = analysis.metrics(entry)
            several = [_defined(measure(metrics)) if metrics.n_stages > 1 else None for measure in MEASURES.values()]
            returns = [_mean_return([entry], task) for task in analysis.tasks]
            final = _defined(metrics.average_performance())
            steps = sum(metrics.total_steps().values())
            rows.append((entry.condition, entry.order, entry.seed, final, *several, *returns, steps))
    finals = [f"final return, {short(task)}" for task in analysis.tasks]
    columns = ("condition", "order", "seed", _final(analysis), *MEASURES, *finals, "environment steps")
    return Table("runs", "Every run", columns, tuple(rows), digits=3)


def _final(analysis: Analysis) -> str:
    return f"final {analysis.scale.name}"


def _defined(value: float) -> float | None:
    return value if np.isfinite(value) else None
