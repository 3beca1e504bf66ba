"""`evergait tune`: settings chosen on one order with Optuna."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import rich.box
import rich.console
import rich.table
import tyro

from evergait.commands.base import console, errors
from evergait.core.data import MOST_TRIALS, within
from evergait.core.files import read_json
from evergait.core.signals import Stop
from evergait.scores.scale import ScoreOptions
from evergait.studies.base import read_study
from evergait.studies.space import read_search
from evergait.studies.tune import tune_search
from evergait.training.run import check_threads


@dataclass(frozen=True)
class Tune:
    """Choose settings on one order with Optuna, as the study's [search] table says; resumable."""

    study: tyro.conf.Positional[Path]
    """TOML file of a study with a [search] table."""
    out: Path
    """Folder for the trials and best.toml."""
    scale: str = ""
    """One of the study's scales."""
    trials: int | None = None
    """Number of trials in all, if not the study's own."""
    threads: int | None = None
    """Threads; all processors if not given."""
    score: ScoreOptions = field(default_factory=ScoreOptions)

    def run(self) -> int:
        """Search and print where the best config is."""
        try:
            tune(
                self.study,
                self.out,
                scale=self.scale,
                trials=self.trials,
                threads=self.threads,
                references=self.score.references(),
            )
        except Stop as stop:
            errors.print("Stopped; run the same command again to go on.")
            return stop.exit_code
        return 0


def tune(
    path: str | Path,
    out: str | Path,
    *,
    scale: str = "",
    trials: int | None = None,
    threads: int | None = None,
    references: Mapping[str, float] | None = None,
    console: rich.console.Console = console,
) -> Path:
    """Search the space that a study declares, on one order; the best config is written as <out>/best.toml."""
    search = read_search(read_study(path).at_scale(scale))
    if trials is not None:
        within(trials, 1, MOST_TRIALS, "trials")
        search = replace(search, n_trials=trials)
    n_threads = check_threads(threads)
    _, value, measured = tune_search(search, Path(out), n_threads, references=references)
    best, n_trials = Path(out) / "best.toml", len(read_json(Path(out) / "trials.json")["trials"])
    words = f"best of {n_trials} trials: mean {measured.name} {value:.4f}, config in {best}. {measured.words}"
    console.print(words, markup=False, highlight=False, soft_wrap=True)
    return best
