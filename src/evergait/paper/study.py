"""Results as the paper has them: measured in its way where a study says so, with its tables."""

from collections.abc import Mapping

from evergait.analysis.study import Analysis, analyse_by_score, settings, single_task_source
from evergait.analysis.tables import extrema_tables, multi_task_table, runs_table, single_task_table, summary_table
from evergait.core.table import Table
from evergait.paper.claims import claims_table
from evergait.paper.numbers import SINGLE_TASK, PaperNumbers, ranges_table
from evergait.paper.roles import budgets_table
from evergait.scores.scale import Scale, Source, learnt_tasks
from evergait.studies.results import Results

PAPER = "paper"


def analyse(results: Results, references: Mapping[str, float] | None = None) -> Analysis:
    """What every page, figure, table and command draws from."""
    if results.scores != PAPER or not results.entries:
        return analyse_by_score(results, references or {})
    return Analysis(results, paper_scales(results), PaperNumbers())


def paper_scales(results: Results) -> dict[str, Scale]:
    """Condition → R̂ = return / R*: R* of single-task phases with the same heads, or the paper's for all conditions."""
    tasks = learnt_tasks(ledger for entry in results.entries for ledger in entry.run.ledgers)
    configs = {entry.condition: entry.run.config for entry in reversed(results.entries)}
    sources = [(config.policy, single_task_source(results, settings(config))) for config in configs.values()]
    published: Source = ("the paper's single-task runs", SINGLE_TASK)
    own = {
        name: next((s for policy, s in sources if policy == config.policy and _covers(s, tasks)), published)
        for name, config in configs.items()
    }
    chosen = dict.fromkeys(own, published) if published in own.values() else own
    if not all(_covers(source, tasks) for source in chosen.values()):
        return dict.fromkeys(own, Scale(source="neither this study nor the paper has an R* for every task"))
    return {name: hat_scale(*source, tasks) for name, source in chosen.items()}


def hat_scale(words: str, best: Mapping[str, float], tasks: tuple[str, ...]) -> Scale:
    """R̂ = return / R*."""
    return Scale("R̂", dict.fromkeys(tasks, 0.0), {task: best[task] for task in tasks}, words)


def _covers(source: Source, tasks: tuple[str, ...]) -> bool:
    """Whether there is an R* for every task; where it is not positive, dividing by it would turn better into worse."""
    return all(source[1].get(task, 0.0) > 0 for task in tasks)


def all_tables(analysis: Analysis) -> list[Table]:
    """Every table that has a row."""
    tables = [
        summary_table(analysis),
        *([claims_table(analysis)] if analysis.published else ()),
        single_task_table(analysis),
        multi_task_table(analysis),
        *extrema_tables(analysis),
        *((budgets_table(analysis), ranges_table(analysis.results)) if analysis.published else ()),
        runs_table(analysis),
    ]
    return [table for table in tables if table.rows]
