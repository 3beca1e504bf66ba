"""A table as data, and as CSV, Markdown and LaTeX; names from users' files are escaped in each of them."""

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass

Value = str | float | int | None


def number(value: float) -> str:
    """Two decimals, none beyond a hundred, with a real minus sign; a dash for what is not defined.

    >>> number(-0.004), number(-0.31), number(-1392.3), number(float("nan"))
    ('0.00', '−0.31', '−1392', '–')
    """
    if not math.isfinite(value):
        return "–"
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return text.removeprefix("-") if not float(text) else text.replace("-", "−")


@dataclass(frozen=True)
class Table:
    """Rows under columns."""

    name: str
    """Of its files."""
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    digits: int = 2
    """Decimals in Markdown and LaTeX; CSV has all of them."""

    def text(self, value: Value) -> str:
        """A value as people read it."""
        if not _is_defined(value):
            return "–"
        return f"{value:.{self.digits}f}" if isinstance(value, float) else str(value)

    def to_csv(self) -> str:
        """Comma-separated, with every digit."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        for row in (self.columns, *self.rows):
            writer.writerow([_csv_cell(value) for value in row])
        return out.getvalue()

    def to_markdown(self) -> str:
        """A pipe table under its caption."""
        align = [":--" if self._is_text(i) else "--:" for i in range(len(self.columns))]
        rows = [[escape_markdown(self.text(value)) for value in row] for row in (self.columns, *self.rows)]
        rows.insert(1, align)
        lines = [f"| {' | '.join(row)} |" for row in rows]
        return "\n".join([escape_markdown(self.caption), "", *lines, ""])

    def to_latex(self) -> str:
        """A table environment; it needs the package booktabs."""
        align = "".join("l" if self._is_text(i) else "r" for i in range(len(self.columns)))
        rows = [" & ".join(escape_latex(self.text(value)) for value in row) + r" \\" for row in self.rows]
        head = " & ".join(escape_latex(column) for column in self.columns) + r" \\"
        return "\n".join(
            [
                r"\begin{table}[t]",
                rf"\caption{{{escape_latex(self.caption)}}}",
                rf"\label{{tab:{self.name}}}",
                r"\centering",
                rf"\begin{{tabular}}{{{align}}}",
                r"\toprule",
                head,
                r"\midrule",
                *rows,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def _is_text(self, column: int) -> bool:
        return any(isinstance(row[column], str) for row in self.rows)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Names and contents of the three files."""
        for ending, content in (("csv", self.to_csv()), ("md", self.to_markdown()), ("tex", self.to_latex())):
            yield f"{self.name}.{ending}", content.encode()


def _is_defined(value: Value) -> bool:
    """Whether a cell has something to say."""
    return value is not None and (not isinstance(value, float) or math.isfinite(value))


def _csv_cell(value: Value) -> str:
    """Text that a spreadsheet would run as a formula is marked as text."""
    if not _is_defined(value):
        return ""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return repr(value) if isinstance(value, float) else str(value)


def escape_markdown(text: str) -> str:
    r"""Text that Markdown shows as it is.

    >>> escape_markdown("a|b *c* <d>")
    'a\\|b \\*c\\* &lt;d&gt;'
    """
    text = " ".join(text.split()).replace("&", "&amp;").replace("\\", "\\\\")
    for special in "`*_[]|~$":
        text = text.replace(special, f"\\{special}")
    return text.replace("<", "&lt;").replace(">", "&gt;")


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "→": r"$\rightarrow$",
    "←": r"$\leftarrow$",
    "–": "--",
    "−": "$-$",
    "R̂": r"$\hat{R}$",
    "R*": r"$R^*$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{special: f"\\{special}" for special in "&%$#_{}"},
}


def escape_latex(text: str) -> str:
    r"""Text that LaTeX shows as it is.

    >>> escape_latex(r"50% \x_1")
    '50\\% \\textbackslash{}x\\_1'
    """
    text = " ".join(text.split())
    out, i = "", 0
    while i < len(text):
        two, one = text[i : i + 2], text[i]
        known = two if two in _LATEX else one
        out += _LATEX.get(known, known if known == one else "")
        i += len(known)
    return out


def file_name(text: str) -> str:
    """A name that is safe in any file system.

    >>> file_name("Hopper > Swimmer/../x")
    'hopper-swimmer-x'
    """
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split()
    return "-".join(words)[:80] or "unnamed"
