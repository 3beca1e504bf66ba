"""`evergait verify`: recorded evaluations, played again in plain Gymnasium."""

from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from evergait.commands.base import console, errors, print_json, print_table
from evergait.commands.flags import Which, tell_edited
from evergait.commands.reproduce import print_retrained, retrained_row
from evergait.core.arrays import Float64
from evergait.core.data import require, within
from evergait.core.errors import EvergaitError
from evergait.core.signals import stop_at_safe_points
from evergait.engines import engine_name
from evergait.studies.folder import load_results
from evergait.studies.results import phase_label
from evergait.training.evaluate import Evaluator, as_recorded
from evergait.training.run import Run, check_threads
from evergait.workers import LocalWorkers


@dataclass(frozen=True)
class Verify:
    """Play recorded evaluations again with gymnasium.make(...).step and compare them with the ledger.

    Returns recorded by the mujoco and gymnasium engines must be equal to the last bit; those of the planar engine agree
    to rounding, which a long episode amplifies, so there the mean must agree within the tolerance.
    """

    folder: tyro.conf.Positional[Path]
    """Folder of a run or a study."""
    which: Annotated[Which, tyro.conf.arg(name="")] = field(default_factory=Which)
    episodes: int = 0
    """Episodes per task and phase; 0 plays all that were recorded."""
    tolerance: float = 0.01
    """What may differ on the planar engine, whose last bits grow in long episodes: this share of the recorded mean, and
    two standard errors of the episodes' own differences; of a single episode, two standard deviations of all recorded
    returns."""
    threads: int | None = None
    """Processes that play; as many as processors if not given."""
    json: bool = False
    """Print JSON, for programs."""
    train: bool = False
    """Train the phases again, from the recorded θ of the phase before, and compare every bit: θ, statistics, ledger."""
    generations: int = 0
    """With --train: how many generations of each phase at most, up to the next evaluation; 0 trains them whole."""
    phase: int = 0
    """Which phase of the stream, from 1; 0 is every one."""

    def run(self) -> int:
        """Compare the last evaluation of every finished phase; exit code 1 if any disagrees."""
        within(self.episodes, 0, 2**31 - 1, "episodes")
        require(0 <= self.tolerance < np.inf, "tolerance", self.tolerance, "at least 0 and finite")
        within(self.generations, 0, 2**32 - 1, "generations")
        require(self.train or not self.generations, "generations", self.generations, "0 without --train")
        entries = self.which.entries(load_results(self.folder, self.which.store))
        if not entries:
            raise EvergaitError(f"{self.folder}: no phase of this run is finished yet; there is nothing to verify")
        phases: dict[str, tuple[str, Run, int]] = {}  # runs of a study share phases
        for entry in entries:
            n_stages = len(entry.run.config.stages())
            for stage, phase in enumerate(entry.run.phases):
                label = phase_label(entry.condition, entry.order, entry.seed, stage, n_stages)
                if self.phase in (0, stage + 1):
                    phases.setdefault(phase.name, (label, entry.run, stage))
        require(bool(phases), "phase", self.phase, "that of a finished phase of the stream, from 1")
        if self.train:
            return self._retrain(phases)
        for run in {entry.order: entry.run for entry in entries}.values():
            tell_edited(run)
        with closing(LocalWorkers(check_threads(self.threads))) as workers:
            rows = [
                {"phase": name, **row}
                for name, run, stage in phases.values()
                for row in self._stage(name, run, stage, workers)
            ]
        agree = all(row["agrees"] for row in rows)
        if self.json:
            print_json({"agrees": agree, "rows": rows})
        else:
            columns = ["phase", "task", "engine", "recorded", "gymnasium", "equal episodes", "agrees"]
            cells = [[row[column] for column in columns] for row in rows]
            print_table("Recorded evaluations against plain Gymnasium", columns, cells, n_names=2)
            doubt = ", as far as single episodes can tell" if self.episodes == 1 else ""
            bad = "Some disagree: the recorded returns cannot be reproduced here."
            console.print(f"All agree{doubt}." if agree else bad)
        return 0 if agree else 1

    def _retrain(self, phases: dict[str, tuple[str, Run, int]]) -> int:
        with closing(LocalWorkers(check_threads(self.threads))) as workers, stop_at_safe_points():
            rows = [retrained_row(*found, workers, self.generations) for found in phases.values()]
        return print_retrained(rows, self.json)

    def _stage(self, name: str, run: Run, stage: int, workers: LocalWorkers) -> list[dict[str, object]]:
        state, record = run.state(stage), run.ledgers[stage].records[-1]
        engines = {task.name: engine_name(run.config.engine, task) for task in run.policy.tasks}
        engines |= run.phases[stage].identity().get("engine", {})
        evaluator = Evaluator(run.policy, {}, workers, run.config.evaluation, run.config.seed)
        rows: list[dict[str, object]] = []
        for task in run.policy.tasks:
            recorded = np.array(record.returns[task.name])
            n = min(self.episodes or len(recorded), len(recorded))
            errors.print(f"{name}: {task.name}, {n} episodes", style="dim", markup=False)
            request = evaluator.episodes(state.theta, task, state.statistics, len(recorded)).rows(slice(0, n))
            played = as_recorded(workers.run("gymnasium", replace(request, horizon=record.horizon)))
            defined = recorded[np.isfinite(recorded)]
            spread = float(defined.std()) if n == 1 and len(defined) else None
            compared = compare(recorded[:n], played, engines[task.name] == "planar", self.tolerance, spread)
            rows.append({"task": task.name, "engine": engines[task.name], **compared})
        return rows


def compare(
    recorded: Float64, played: Float64, is_planar: bool, tolerance: float, spread: float | None = None
) -> dict[str, object]:
    """Returns in the ledger against those in plain Gymnasium; an episode that had no finite one proves nothing.

    The spread is that of their differences, if none is given.
    """
    defined = np.isfinite(recorded)
    n_undefined, recorded, played = int((~defined).sum()), recorded[defined], played[defined]
    n, allowed = len(recorded), 0.0
    agrees = bool(np.array_equal(played, recorded))
    if is_planar and n:
        spread = float((played - recorded).std()) if spread is None else spread
        allowed = float(tolerance * (abs(recorded.mean()) + 1) + 2 * spread / np.sqrt(n))
        agrees = bool(abs(played.mean() - recorded.mean()) <= allowed)
    return {
        "recorded": float(recorded.mean()) if n else np.nan,
        "gymnasium": float(played.mean()) if n else np.nan,
        "equal episodes": f"{int((played == recorded).sum())}/{n}",
        "undefined episodes": n_undefined,
        "allowed": allowed,
        "largest difference": float(np.abs(played - recorded).max()) if n else np.nan,
        "agrees": agrees,
    }
