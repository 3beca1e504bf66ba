"""A phase, trained again from where it began, against what was recorded of it: the same bits, or where they part."""

import contextlib
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from evergait.core.files import read_bytes
from evergait.store.ledger import Ledger, Record, parse_ledger, record_line
from evergait.store.phases import PhaseFolder, PhaseStore
from evergait.training.observer import Observer, Position
from evergait.training.phases import PhaseTrainer, changed, plan_phases
from evergait.training.run import Run
from evergait.workers import Workers


@dataclass(frozen=True)
class Retrained:
    """What came of it."""

    n_generations: int
    """How far it was trained again."""
    n_evaluations: int
    """How many recorded evaluations were compared."""
    n_tensors: int
    """How many recorded tensors were compared: none if it was not trained to its end, or was kept without them."""
    differences: tuple[str, ...]
    """Where it is not what was recorded."""
    reasons: tuple[str, ...]
    """What it was trained with and would not be trained with now."""

    @property
    def agrees(self) -> bool:
        """Whether every bit that was compared is the same."""
        return not self.differences


class _EnoughError(Exception):
    """As many generations as were asked for are trained."""


class _Until(Observer):
    """Ends training when the evaluation at or after some generation is in the ledger."""

    def __init__(self, n_generations: int) -> None:
        self.n_generations, self.at = n_generations, 0

    def generation_done(self, at: Position, seen: object) -> None:
        """Note how far it is."""
        self.at = at.generation

    def evaluated(self, at: Position, record: Record) -> None:
        """Enough?"""
        self.at = at.generation
        if 0 < self.n_generations <= at.generation and at.used < at.length:
            raise _EnoughError


def retrain(run: Run, stage: int, workers: Workers, n_generations: int = 0) -> Retrained:
    """Train a phase of a run again, all of it or its first generations, and compare.

    It begins with the recorded θ of the phase before; where that was not kept, the phases before are trained, too.
    """
    run.config.check()  # whoever wrote the folder may have written anything into it
    recorded, until = run.phases[stage], _Until(n_generations)
    phases = plan_phases(run.config)[: stage + 1]
    with tempfile.TemporaryDirectory(prefix="evergait-retrain-") as folder:
        store, before = PhaseStore(Path(folder)), None
        if stage and run.phases[stage - 1].has_policy:
            before = run.phases[stage - 1]
        else:
            for phase in phases[:-1]:
                PhaseTrainer(run.config, store, workers).ensure(phase)
        with contextlib.suppress(_EnoughError):
            PhaseTrainer(run.config, store, workers, (until,), before=before).ensure(phases[-1])
        return _compared(recorded, store.folder(phases[-1].name), until.at)


def _compared(recorded: PhaseFolder, again: PhaseFolder, n_generations: int) -> Retrained:
    then = recorded.ledger()
    path = again.path / "ledger.jsonl"
    now = parse_ledger(read_bytes(path), path)
    differences = _ledgers(then, now)
    n_tensors = 0
    if again.is_done() and recorded.has_policy:
        (theirs, _), (ours, _) = recorded.result(), again.result()
        n_tensors = len(theirs)
        for name in sorted({*theirs, *ours}):
            one, other = theirs.get(name), ours.get(name)
            if one is None or other is None or one.dtype != other.dtype or one.tobytes() != other.tobytes():
                differences.append(f"the tensor {name!r} has other bits")
    if again.is_done() and len(then.records) != len(now.records):
        differences.append(f"{len(then.records)} evaluations were recorded and {len(now.records)} came")
    reasons = changed(recorded.identity(), again.identity())
    if recorded.name != again.name and not reasons:
        differences.append("the config that trained it is not the one that its folder has now")
    return Retrained(n_generations, len(now.records), n_tensors, tuple(differences), tuple(reasons))


def _ledgers(then: Ledger, now: Ledger) -> list[str]:
    """The first evaluation that differs; what the search was like on the way decides nothing and is not compared."""
    if (then.learning, then.tasks, then.stage) != (now.learning, now.tasks, now.stage):
        return ["the ledger is of another phase"]
    if {k: list(v) for k, v in then.random_returns.items()} != {k: list(v) for k, v in now.random_returns.items()}:
        return ["the returns of random policies differ"]
    for one, other in zip(then.records, now.records, strict=False):
        if record_line(replace(one, diagnostics={})) != record_line(replace(other, diagnostics={})):
            return [f"the evaluation after generation {other.generation} differs"]
    return []
