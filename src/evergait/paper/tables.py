"""All tables of a study, the paper's own among them where it is the paper's study."""

from evergait.analysis.study import Analysis
from evergait.analysis.tables import extrema_tables, multi_task_table, runs_table, single_task_table, summary_table
from evergait.core.table import Table
from evergait.paper.charts import budgets_table
from evergait.paper.claims import claims_table
from evergait.paper.ranges import ranges_table


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
