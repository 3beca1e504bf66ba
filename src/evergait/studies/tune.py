"""Model selection as the paper did it: on one order, then fixed. Optuna proposes, phases of the store answer.

<out>/trials.json   every trial that has ended: what was proposed, and what came of it
      phases/       the store; a trial that was cut short goes on from its checkpoint
      best.toml     the config with the best values so far

Optuna keeps nothing on disk. Its proposals follow from the seed and the trials before, so that going on means to
propose again what was proposed before, and to find the answers in the store: a kill at any moment changes nothing.
A point that cannot be trained, or not to its end, is a trial without a score that keeps its reason; the search goes on.
"""

import contextlib
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evergait.config import Config
from evergait.core.data import require, to_data
from evergait.core.errors import EvergaitError
from evergait.core.files import locked, make_own_folder, read_json, write_atomically, write_json
from evergait.core.signals import stop_at_safe_points
from evergait.engines import engine_name
from evergait.scores.scale import Scale, scale_of
from evergait.store.ledger import Ledger, Record
from evergait.store.phases import PhaseFolder, PhaseStore
from evergait.studies.space import Dimension, Search
from evergait.training.evaluate import Evaluator
from evergait.training.observer import Observer, Position
from evergait.training.phases import Phase, PhaseTrainer, plan_phases
from evergait.workers import LocalWorkers, Workers

log = logging.getLogger("evergait")


def import_optuna() -> Any:
    """Optuna is an extra."""
    try:
        import optuna
    except ImportError as error:
        raise EvergaitError("tune: needs Optuna; install it with `pip install 'evergait[tune]'`") from error
    return optuna


def search_scale(config: Config, workers: Workers, references: Mapping[str, float]) -> Scale:
    """One scale for all trials: random policies of the config that the search starts from, and R*."""
    policy = config.build_policy()
    engines = {task: engine_name(config.engine, task) for task in policy.tasks}
    randoms = Evaluator(policy, engines, workers, config.evaluation, config.seed).random_policies()
    learning = tuple(dict.fromkeys(task.name for task in config.stream_tasks))
    return scale_of([Ledger(0, learning, tuple(task.name for task in policy.tasks), randoms)], references)


def score(scale: Scale, config: Config, record: Record) -> float:
    """Mean over the stream's tasks of their scores; of their returns where there is no R*."""
    tasks = dict.fromkeys(task.name for task in config.stream_tasks)
    return float(np.mean([scale.score_of(task, record.mean(task)) for task in tasks]))


OWN_FILES = {"trials.json", "best.toml", "phases", "lock"}


@dataclass
class _Report(Observer):
    """Hands every evaluation of a trial to Optuna, and ends the trial if others were better by then."""

    optuna: Any
    trial: Any
    config: Config
    scale: Scale
    values: dict[int, float] = field(default_factory=dict)
    """Thousandths of the stream → score."""

    def evaluated(self, at: Position, record: Record) -> None:
        """An evaluation of a phase that is being trained."""
        if at.generation:  # before the first one it is where the stage before ended
            self.report(at.stage.index, at.used, record)

    def found(self, phase: Phase, folder: PhaseFolder) -> None:
        """The evaluations that the store has of a phase already."""
        if not folder.is_done() and not folder.has_checkpoint:
            return
        spent = 0
        for record in folder.ledger().records:
            spent += sum(n for kind, n in record.steps.items() if kind != "evaluation")
            if record.generation:
                self.report(phase.stage.index, spent if self.config.steps else record.generation, record)

    def report(self, stage: int, used: int, record: Record) -> None:
        """Shares of the stream, for trials may differ in the length of a phase."""
        step = round(1000 * (stage + min(used / self.config.phase_length, 1.0)))
        value = score(self.scale, self.config, record)
        if step in self.values or not math.isfinite(value):
            return
        self.values[step] = value
        self.trial.report(value, step)
        if self.trial.should_prune():
            raise self.optuna.TrialPruned


def tune_search(
    search: Search,
    out: Path,
    n_threads: int,
    first: Sequence[Mapping[str, Any]] = (),
    references: Mapping[str, float] | None = None,
) -> tuple[Config, float, Scale]:
    """Run the trials that are missing, beginning with the points in `first`.

    Returns the best config, its score and what that means.
    """
    optuna = import_optuna()
    _open_folder(out)
    with locked(out / "lock", wait=False) as ours:
        if not ours:
            raise EvergaitError(f"out: another process is tuning in {out}; wait for it or stop it")
        space = [repr(search.dimensions), [dict(point) for point in first], optuna.__version__]
        workers = LocalWorkers(n_threads)
        try:
            scale = search_scale(search.config, workers, references or {})
            described = {"config": search.config.to_toml(), "space": space, "scale": to_data(scale)}
            trials = _read_trials(out, described)
            study = _new_study(optuna, search, first)
            with stop_at_safe_points():
                for number in range(max(search.n_trials, len(trials))):
                    before = trials[number] if number < len(trials) else None
                    ended = _run_trial(optuna, study, search, out, workers, scale, before)
                    if before is None:
                        trials.append(ended)
                        write_json(out / "trials.json", {"search": described, "trials": trials})
                        _write_best(trials, search, out)
                        if "reason" in ended:
                            log.warning("trial %d has no score: %s", number, ended["reason"])
        finally:
            workers.close()
        _write_best(trials, search, out)
    best = _best(trials)
    if best is None:
        raise EvergaitError(f"tune: no trial had a finite score; nothing can be chosen{_why(trials, out)}")
    return search.config_with(best["params"]), float(best["score"]), scale


def _why(trials: Sequence[Mapping[str, Any]], out: Path) -> str:
    """End of an error message: why trials failed, by the first of them that knows."""
    reasons = [str(trial["reason"]) for trial in trials if "reason" in trial]
    if not reasons:
        return ""
    return f" ({len(reasons)} of {len(trials)} failed; the first: {reasons[0]}; all reasons: {out / 'trials.json'})"


def _open_folder(out: Path) -> None:
    """Make or reopen it; links and foreign files are refused."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        foreign = [path.name for path in out.iterdir() if path.name not in OWN_FILES and path.name[0] != "."]
        if foreign:
            raise EvergaitError(f"out: {out} holds {foreign[0]!r}, which is not of this search; choose another folder")
        make_own_folder(out / "phases")
    except OSError as error:
        raise EvergaitError(f"out: {out} cannot be made a folder: {error.strerror}") from error


def _read_trials(out: Path, described: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The trials that have ended, as far as their file is one of ours; their scores are checked against the store."""
    path = out / "trials.json"
    if not path.exists() and not path.is_symlink():
        return []
    data = read_json(path)
    if data.get("search") != described:
        raise EvergaitError(f"out: {out} holds another search, or one of another Optuna; choose another folder")
    trials = data.get("trials")
    if not isinstance(trials, list) or not all(isinstance(trial, dict) for trial in trials):
        raise EvergaitError(f"{path}: `trials` must be a list of tables; it was damaged or edited")
    return trials


def _new_study(optuna: Any, search: Search, first: Sequence[Mapping[str, Any]]) -> Any:
    """Optuna's study, in memory alone."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=search.config.seed % 2**32),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=100),
    )
    for point in first:
        study.enqueue_trial(dict(point))
    return study


def _suggest(trial: Any, dimension: Dimension) -> Any:
    name, low, high = dimension.field, dimension.low, dimension.high
    if dimension.choices:
        return trial.suggest_categorical(name, dimension.choices)
    if isinstance(low, int) and isinstance(high, int):  # so is the field: see space.py
        return trial.suggest_int(name, low, high, step=dimension.step or 1, log=dimension.log)
    return trial.suggest_float(name, low, high, step=dimension.step, log=dimension.log)


def _run_trial(
    optuna: Any, study: Any, search: Search, out: Path, workers: Workers, scale: Scale, before: dict[str, Any] | None
) -> dict[str, Any]:
    """Train one proposal on the stream, phase by phase, unless it is pruned on the way; or find it in the store."""
    trial, path = study.ask(), out / "trials.json"
    params = {d.field: _suggest(trial, d) for d in search.dimensions}
    if before is not None and before.get("params") != params:
        raise EvergaitError(f"{path}: trial {trial.number} is not what was proposed; it was damaged or edited")
    values: dict[int, float] = {}
    ended: dict[str, Any] = {"params": params, "state": "pruned", "score": None}
    try:
        if before is not None and (before.get("state") == "pruned" or "reason" in before):
            ended |= _report_again(trial, values, before, path)
        else:
            config = _config_at(search, params)
            value = _train(config, PhaseStore.inside(out), workers, _Report(optuna, trial, config, scale, values))
            ended |= {"state": "complete", "score": value} if math.isfinite(value) else {"state": "undefined"}
    except optuna.TrialPruned:
        pass
    except _FailedError as error:
        if before is not None:  # it did not fail before: something else is wrong, and it can be mended
            raise
        ended |= {"state": "undefined", "reason": str(error)}
    ended["values"] = {str(step): value for step, value in values.items()}
    if before is not None and before != ended:
        raise EvergaitError(f"{path}: trial {trial.number} is not what its phases say; it was damaged or edited")
    if ended["state"] == "complete":
        study.tell(trial, ended["score"])
    else:
        states = optuna.trial.TrialState
        study.tell(trial, state=states.PRUNED if ended["state"] == "pruned" else states.FAIL)
    return ended


class _FailedError(EvergaitError):
    """The fault of one point, which ends its trial but not the search."""


@contextlib.contextmanager
def _faults_of_the_point() -> Iterator[None]:
    try:
        yield
    except EvergaitError as error:
        raise _FailedError(str(error)) from error


def _config_at(search: Search, params: Mapping[str, Any]) -> Config:
    """Between ends that are all right, a point may still be wrong: an odd number, or two fields that do not fit."""
    with _faults_of_the_point():
        config = search.config_with(params)
        config.check()
    return config


def _train(config: Config, store: PhaseStore, workers: Workers, report: _Report) -> float:
    """The score of a config, from phases that the store has or gets."""
    trainer = PhaseTrainer(config, store, workers, (report,))
    folder = None
    for phase in plan_phases(config):
        report.found(phase, store.folder(phase.name))
        with _faults_of_the_point():
            folder = trainer.ensure(phase)
    assert folder  # noqa: S101 - a stream has a phase
    return score(report.scale, config, folder.ledger().records[-1])


def _report_again(trial: Any, values: dict[int, float], before: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """What a pruned or failed trial had reported, and why it failed: its last phase has no end that could be asked."""
    stored = before.get("values")
    right = isinstance(stored, dict) and all(isinstance(value, float) for value in stored.values())
    require(right, f"{path}: values", stored, "a table of numbers; it was damaged or edited")
    for step, value in dict(stored or {}).items():
        values[int(step)] = value
        trial.report(value, int(step))
    if "reason" not in before:
        return {}
    require(isinstance(before["reason"], str), f"{path}: reason", before["reason"], "a text; it was damaged or edited")
    return {"state": "undefined", "reason": before["reason"]}


def _best(trials: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    complete = [trial for trial in trials if trial["state"] == "complete"]
    return max(complete, key=lambda trial: float(trial["score"])) if complete else None


def _write_best(trials: Sequence[dict[str, Any]], search: Search, out: Path) -> None:
    if best := _best(trials):
        write_atomically(out / "best.toml", search.config_with(best["params"]).to_toml().encode())
