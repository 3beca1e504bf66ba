"""`evergait reproduce`: a published phase, trained again here: the same bits, or a difference with its name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from evergait.commands.base import console, errors, print_json, print_table
from evergait.core.data import require, within
from evergait.core.errors import EvergaitError
from evergait.core.signals import stop_at_safe_points
from evergait.studies.folder import is_study, load_results
from evergait.studies.results import phase_label
from evergait.training.retrain import retrain
from evergait.training.run import Run, check_threads
from evergait.workers import LocalWorkers


@dataclass(frozen=True)
class Reproduce:
    """Train a published phase again, and say whether its bits are the same or what differs and why."""

    phase: tyro.conf.Positional[str]
    """Hash of the phase, or how it begins: the name of its folder."""
    results: Path = Path("results")
    """Folder of a study or a run that has it, or a folder of such folders."""
    generations: int = 0
    """Generations to train at most, up to the next evaluation; 0 trains the whole phase."""
    threads: int | None = None
    """Threads; all processors if not given."""
    json: bool = False
    """Print JSON, for programs."""

    def run(self) -> int:
        """Find, train, compare; exit code 1 if a bit differs."""
        within(self.generations, 0, 2**32 - 1, "generations")
        n_threads = check_threads(self.threads)
        found = find(self.phase, self.results)
        workers = LocalWorkers(n_threads)
        try:
            with stop_at_safe_points():
                row = retrained_row(*found, workers, self.generations)
        finally:
            workers.close()
        return print_retrained([row], self.json)


def find(phase: str, results: Path) -> tuple[str, Run, int]:
    """The label, the run and the stage of a phase by the beginning of its hash."""
    require(len(phase) >= 4 and phase.isalnum(), "phase", phase, "a hash, or its first four characters at least")
    folders = [results, *sorted(path for path in results.glob("*") if path.is_dir() and not path.is_symlink())]
    found: dict[str, tuple[str, Run, int]] = {}
    for folder in folders:
        if not (is_study(folder) or (folder / "run.json").exists()):
            continue
        for entry in load_results(folder).entries:
            for stage, candidate in enumerate(entry.run.phases):
                if candidate.name.startswith(phase):
                    n_stages = len(entry.run.config.stages())
                    label = phase_label(entry.condition, entry.order, entry.seed, stage, n_stages)
                    found.setdefault(candidate.name, (label, entry.run, stage))
    if len(found) != 1:
        known = f"{len(found)} phases begin so" if found else "no finished phase there begins so"
        raise EvergaitError(f"phase: is {phase!r}; {known} in {results}")
    return next(iter(found.values()))


def retrained_row(label: str, run: Run, stage: int, workers: LocalWorkers, n_generations: int) -> dict[str, object]:
    """What came of training a phase again, as plain data."""
    length, unit = run.config.phase_length, run.config.unit
    errors.print(f"{label}: {run.phases[stage].name}, {length} {unit}", style="dim")
    again = retrain(run, stage, workers, n_generations)
    return {
        "phase": label,
        "hash": run.phases[stage].name,
        "generations": again.n_generations,
        "evaluations": again.n_evaluations,
        "tensors": again.n_tensors,
        "agrees": again.agrees,
        "differences": list(again.differences),
        "trained with": list(again.reasons),
    }


def print_retrained(rows: Sequence[dict[str, object]], as_json: bool) -> int:
    """The rows, and one sentence; the exit code."""
    agree = all(row["agrees"] for row in rows)
    if as_json:
        print_json({"agrees": agree, "rows": list(rows)})
        return 0 if agree else 1
    columns = ["phase", "hash", "generations", "evaluations", "tensors", "agrees"]
    print_table("Trained again", columns, [[row[column] for column in columns] for row in rows])
    for row in rows:
        for what in _list(row["differences"]):
            console.print(f"{row['phase']}: {what}.")
        for reason in _list(row["trained with"]):
            console.print(f"{row['phase']}: it was trained with {reason}.", style="dim")
    console.print("The same bits." if agree else "The bits differ.")
    return 0 if agree else 1


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []
