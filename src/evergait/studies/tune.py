"""Model selection as the paper did it: on one order, then fixed. Optuna proposes, phases of the store answer.

<out>/tune.jsonl   Optuna's journal: every trial, appended
      phases/      the store; a trial that was cut short goes on from its checkpoint
      best.toml    the config with the best values so far
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evergait.config import Config
from evergait.core.errors import EvergaitError
from evergait.core.files import locked, write_atomically
from evergait.core.signals import stop_at_safe_points
from evergait.scores.reference import paper_single_task
from evergait.store.ledger import Record
from evergait.store.phases import PhaseStore
from evergait.studies.space import Dimension, Search
from evergait.training.observer import Observer, Position
from evergait.training.phases import PhaseTrainer, plan_phases
from evergait.workers import LocalWorkers, Workers


def import_optuna() -> Any:
    """Optuna is an extra."""
    try:
        import optuna
    except ImportError as error:
        raise EvergaitError("tune: needs Optuna; install it with `pip install 'evergait[tune]'`") from error
    return optuna


def score(config: Config, record: Record) -> float:
    """Mean over the stream's tasks of return / R*: the paper's, and so the same for all trials; 1 for other tasks."""
    best = paper_single_task()
    tasks = dict.fromkeys(task.name for task in config.stream_tasks)
    return float(np.mean([record.mean(task) / best.get(task, 1.0) for task in tasks]))


@dataclass
class _Pruner(Observer):
    """Reports every evaluation of a trial, and ends the trial if others were better by then."""

    optuna: Any
    trial: Any
    config: Config

    def evaluated(self, at: Position, record: Record) -> None:
        """Later stages count on from the earlier ones."""
        if not at.generation:
            return  # where the stage before ended
        # Shares of the stream, for trials may differ in the length of a phase.
        done = at.stage.index + min(at.used / at.length, 1.0)
        self.trial.report(score(self.config, record), round(1000 * done))
        if self.trial.should_prune():
            raise self.optuna.TrialPruned


def tune_search(search: Search, out: Path, n_threads: int) -> tuple[Config, float]:
    """Run the trials that are missing; returns the best config and its score."""
    optuna = import_optuna()
    try:
        (out / "phases").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvergaitError(f"out: {out} cannot be made a folder: {error.strerror}") from error
    workers = LocalWorkers(n_threads)
    with locked(out / "lock", wait=False) as ours:
        if not ours:
            raise EvergaitError(f"out: another process is tuning in {out}; wait for it or stop it")
        study = _open_journal(optuna, out, search)
        try:
            with stop_at_safe_points():
                while _n_ended(optuna, study) < search.n_trials:
                    _run_trial(optuna, study, search, out, workers)
                    _write_best(study, search, out)
        finally:
            workers.close()
    return search.config_with(study.best_params), float(study.best_value)


class _FolderLock:
    """For Optuna: we hold the folder's lock, which dies with the process; its own would outlive it and time out."""

    def acquire(self) -> bool:
        """Ours already."""
        return True

    def release(self) -> None:
        """With the folder's."""


def _open_journal(optuna: Any, out: Path, search: Search) -> Any:
    """Optuna's study from its journal; trials that a kill left unfinished are put first in the queue."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = out / "tune.jsonl"
    if path.exists() and not (content := path.read_bytes()).endswith(b"\n"):
        write_atomically(path, content[: content.rfind(b"\n") + 1])  # a kill cut the last line short
    backend = optuna.storages.journal.JournalFileBackend(str(path), lock_obj=_FolderLock())
    storage = optuna.storages.JournalStorage(backend)
    n_before = path.read_bytes().count(b"\n") if path.exists() else 0
    study = optuna.create_study(
        storage=storage,
        study_name="evergait",
        direction="maximize",
        load_if_exists=True,
        sampler=optuna.samplers.TPESampler(seed=(search.config.seed + n_before) % 2**32),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=100),
    )
    described = {"config": search.config.to_toml(), "space": repr(search.dimensions)}
    if "search" not in study.user_attrs:
        study.set_user_attr("search", described)
    elif study.user_attrs["search"] != described:
        raise EvergaitError(f"out: {out} holds another search; choose another folder")
    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        study.enqueue_trial(trial.params)
    return study


def _n_ended(optuna: Any, study: Any) -> int:
    states = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    return len(study.get_trials(deepcopy=False, states=states))


def _suggest(trial: Any, dimension: Dimension) -> Any:
    name, low, high = dimension.field, dimension.low, dimension.high
    if dimension.choices:
        return trial.suggest_categorical(name, dimension.choices)
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(name, low, high, step=dimension.step or 1, log=dimension.log)
    return trial.suggest_float(name, low, high, step=dimension.step, log=dimension.log)


def _run_trial(optuna: Any, study: Any, search: Search, out: Path, workers: Workers) -> None:
    """Train one proposal on the stream, phase by phase, unless it is pruned on the way."""
    trial = study.ask()
    config = search.config_with({d.field: _suggest(trial, d) for d in search.dimensions})
    config.check()
    store = PhaseStore(out / "phases")
    try:
        trainer = PhaseTrainer(config, store, workers, (_Pruner(optuna, trial, config),))
        folder = None
        for phase in plan_phases(config):
            folder = trainer.ensure(phase)
    except optuna.TrialPruned:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        return
    if folder:
        study.tell(trial, score(config, folder.ledger().records[-1]))


def _write_best(study: Any, search: Search, out: Path) -> None:
    if any(trial.state.name == "COMPLETE" for trial in study.get_trials(deepcopy=False)):
        write_atomically(out / "best.toml", search.config_with(study.best_params).to_toml().encode())
