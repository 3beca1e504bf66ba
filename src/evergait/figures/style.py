"""How figures look: Okabe-Ito colours, which colour-blind readers can tell apart, one per task wherever it appears."""

import io
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
KNOWN = {"Hopper-v5": 0, "Swimmer-v5": 1, "Walker2d-v5": 2, "HalfCheetah-v5": 3}
"""The paper's tasks have the same colour in every study."""

SETTINGS: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "pdf.fonttype": 42,
    "text.parse_math": False,  # names from users' files may have dollar signs
    "savefig.dpi": 150,
    "svg.hashsalt": "evergait",  # the same data, the same names within
}


def task_colours(tasks: Iterable[str]) -> dict[str, str]:
    """Task name → colour; other tasks take the colours that are left, in the order of their names."""
    tasks = sorted(set(tasks))
    taken = {KNOWN[task] for task in tasks if task in KNOWN}
    left = [i for i in range(len(OKABE_ITO)) if i not in taken] or [6]
    others = iter(range(len(tasks)))
    return {task: OKABE_ITO[KNOWN[task] if task in KNOWN else left[next(others) % len(left)]] for task in tasks}


def condition_colours(conditions: Iterable[str]) -> dict[str, str]:
    """Condition → colour, in the order of the study; the tasks' colours come last."""
    ranked = (4, 5, 6, 3, 0, 1, 2, 7)
    return {name: OKABE_ITO[ranked[i % len(ranked)]] for i, name in enumerate(conditions)}


@dataclass(frozen=True)
class Picture:
    """A figure with its file name and caption."""

    name: str
    caption: str
    figure: Figure

    def files(self) -> Iterator[tuple[str, bytes]]:
        """PNG and PDF, without the time of writing, so that the same data give the same bytes."""
        FigureCanvasAgg(self.figure)
        yield f"{self.name}.png", self._drawn("png", {"Software": None})
        FigureCanvasPdf(self.figure)
        yield f"{self.name}.pdf", self._drawn("pdf", {"CreationDate": None})

    def svg(self) -> bytes:
        """For pages: a third of the PNG, and sharp at any size."""
        return self._drawn("svg", {"Date": None})

    def _drawn(self, ending: str, metadata: dict[str, None]) -> bytes:
        out = io.BytesIO()
        with mpl.rc_context(SETTINGS), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")  # a user's names may be in any script
            self.figure.savefig(out, format=ending, metadata=metadata)
        return out.getvalue()


def panels(n_rows: int, n_columns: int, width: float = 3.2, height: float = 2.0) -> tuple[Figure, list[Axes]]:
    """A grid of axes, row by row."""
    figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    return figure, list(axes.flat)


def legend_below(figure: Figure, axes: Axes) -> None:
    """One legend for all panels, where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 4))
