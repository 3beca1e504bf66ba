"""Tables as the page shows them: a title, columns and rows of text, whoever made them."""

from collections.abc import Sequence
from dataclasses import dataclass

from evergait.report.groups import Band
from evergait.report.summary import number
from evergait.studies.claims import study_claims
from evergait.studies.results import Results

NAMES = {
    "average_performance": "R̂ at the end",
    "average_backward_transfer": "avg BWT",
    "average_forward_transfer": "avg FWT",
    "maximum_forgetting": "max forgetting",
    "gem_backward_transfer": "BWT (GEM)",
    "gem_forward_transfer": "FWT (GEM)",
}


@dataclass(frozen=True)
class Table:
    """What a page or a file can show as a table."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


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


def tables_of(results: Results) -> list[Table]:
    """All tables of a study, as text."""
    from evergait.studies.artifacts import all_tables  # here, for it brings matplotlib along

    return [
        Table(table.caption, table.columns, tuple(tuple(map(table.text, row)) for row in table.rows))
        for table in all_tables(results)
    ]


def measures_table(measures: Sequence[tuple[str, dict[str, Band]]]) -> Table | None:
    """Every measure of every condition, over its orders and seeds."""
    names = [name for name in NAMES if any(name in values for _, values in measures)]
    if not names:
        return None
    rows = tuple((condition, *(_cell(values.get(name)) for name in names)) for condition, values in measures)
    many = any(band.n_seeds > 1 for _, values in measures for band in values.values())
    note = "interquartile means over orders and seeds, 95 % bootstrap intervals" if many else "one run each"
    return Table("Measures of every condition", ("condition", *(NAMES[name] for name in names)), rows, note)


def _cell(band: Band | None) -> str:
    if band is None:
        return "–"
    interval = f" [{number(float(band.low))}, {number(float(band.high))}]" if band.n_seeds > 1 else ""
    return f"{number(float(band.middle))}{interval}"
