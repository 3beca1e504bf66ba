"""The study's claims and tables as the page shows them: words only."""

from dataclasses import dataclass

from evergait.analysis.summary import number
from evergait.analysis.tables import extrema_tables, multi_task_table, runs_table, single_task_table, summary_table
from evergait.core.table import Table, Value
from evergait.paper.claims import study_claims
from evergait.studies.results import Results


@dataclass(frozen=True)
class Verdict:
    """One of the paper's claims, as measured."""

    kind: str
    """holds, fails, or open."""
    verdict: str
    sentence: str
    detail: str


def claims_of(results: Results) -> list[Verdict]:
    """The paper's claims that this study can speak to."""
    found = []
    for claim in study_claims(results):
        if claim.estimate is None:
            continue
        kind = {"holds": "holds", "does not hold": "fails"}.get(claim.verdict, "open")
        between = f" [{number(claim.interval[0])}, {number(claim.interval[1])}]" if claim.interval else ""
        seeds = "one seed" if claim.n_seeds == 1 else f"{claim.n_seeds} seeds"
        detail = f"{claim.statistic}: {number(claim.estimate)}{between}, {seeds}"
        found.append(Verdict(kind, claim.verdict, claim.sentence, detail))
    return found


@dataclass(frozen=True)
class TextTable:
    """Rows of text under columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables_of(results: Results) -> list[TextTable]:
    """All tables of a study, without columns that have no value; the claims have a section of their own."""
    tables = [
        summary_table(results),
        single_task_table(results),
        multi_task_table(results),
        *extrema_tables(results),
        runs_table(results),
    ]
    found = []
    for table in tables:
        if not table.rows:
            continue
        kept = [i for i in range(len(table.columns)) if any(row[i] is not None for row in table.rows)]
        rows = tuple(tuple(_text(table, row[i]) for i in kept) for row in table.rows)
        found.append(TextTable(table.caption, tuple(table.columns[i] for i in kept), rows))
    return found


def _text(table: Table, value: Value) -> str:
    text = table.text(value)
    return text.replace("-", "−") if isinstance(value, float) else text
