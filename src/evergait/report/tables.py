"""The study's claims and tables as the page shows them: words only."""

from dataclasses import dataclass

from evergait.analysis.ranking import number
from evergait.analysis.study import Analysis
from evergait.core.table import Table, Value
from evergait.paper.claims import Claim, study_claims
from evergait.paper.study import all_tables


@dataclass(frozen=True)
class Verdict:
    """One of the paper's claims, as measured."""

    kind: str
    """holds, fails, or open."""
    verdict: str
    sentence: str
    detail: str


def claims_of(analysis: Analysis) -> list[Verdict]:
    """The paper's claims that this study can speak to."""
    found = []
    for claim in study_claims(analysis):
        if claim.is_measured:
            kind = {"holds": "holds", "does not hold": "fails"}.get(claim.verdict, "open")
            found.append(Verdict(kind, claim.verdict, claim.sentence, _detail(claim)))
    return found


def _detail(claim: Claim) -> str:
    between = f" [{number(claim.interval[0])}, {number(claim.interval[1])}]" if claim.interval else ""
    seeds = "one seed" if claim.n_seeds == 1 else f"{claim.n_seeds} seeds"
    least = f"; {number(claim.detectable)} would be found in 9 of 10 studies" if claim.detectable is not None else ""
    return f"{claim.statistic}: {number(claim.estimate or 0.0)}{between}, {seeds}{least}"


@dataclass(frozen=True)
class TextTable:
    """Rows of text under columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables_of(analysis: Analysis) -> list[TextTable]:
    """All tables of a study, without columns that have no value; the claims have a section of their own."""
    found = []
    for table in all_tables(analysis):
        if table.name == "claims":
            continue
        kept = [i for i in range(len(table.columns)) if any(row[i] is not None for row in table.rows)]
        rows = tuple(tuple(_text(table, row[i]) for i in kept) for row in table.rows)
        found.append(TextTable(table.caption, tuple(table.columns[i] for i in kept), rows))
    return found


def _text(table: Table, value: Value) -> str:
    text = table.text(value)
    return text.replace("-", "−") if isinstance(value, float) else text
