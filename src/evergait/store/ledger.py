"""The ledger of a phase: every evaluation of the unperturbed policy, one JSON line each; all metrics come from it.

The first line tells what phase it is; in the first phase of a stream it also has the returns of random policies.
Then, per evaluation: {"generation": g, "evaluations": {task: {"returns": [...], "lengths": [...]}}, "steps": {...},
"diverged": n, "undefined": n, "diagnostics": {...}}, where steps are environment steps since the evaluation before, and
diagnostics (which older ledgers lack, and which decide nothing) are means over the generations since then; "horizon": n
if its episodes were cut. A return that is not finite is null, and "undefined" says how many there are, if any.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evergait.core.arrays import Float64
from evergait.core.errors import EvergaitError
from evergait.core.files import canonical_json, parse_json

FORMAT = 1
STEP_KINDS = ("training", "replay", "collection", "evaluation")


@dataclass(frozen=True)
class Record:
    """One evaluation of the unperturbed policy on every task."""

    generation: int
    returns: Mapping[str, Sequence[float]]
    """Task name → return of each episode; not a number (null in the file) where the episode had no finite one."""
    lengths: Mapping[str, Sequence[int]]
    """Task name → environment steps of each episode."""
    steps: Mapping[str, int]
    """Environment steps since the evaluation before, by kind: training, replay, collection (of observations that a
    method keeps), evaluation."""
    diverged: int = 0
    """Training episodes since the evaluation before whose physics diverged."""
    horizon: int = 0
    """Where the episodes were cut; 0 where each task's own limit is the only one."""
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    """Means over the generations since the evaluation before: fitness_mean, fitness_sd, fitness_best (of the population
    on what is being learnt), gradient_norm, step_norm, horizon."""

    def mean(self, task: str) -> float:
        """Mean return over the episodes; not a number if one of them has none: such an evaluation has no value."""
        return float(np.mean(self.returns[task]))

    @property
    def n_undefined(self) -> int:
        """Evaluation episodes without a finite return."""
        return sum(not math.isfinite(value) for values in self.returns.values() for value in values)


@dataclass(frozen=True)
class Ledger:
    """All evaluations of one phase."""

    stage: int
    learning: tuple[str, ...]
    """Names of the tasks that the phase learns."""
    tasks: tuple[str, ...]
    """Names of all tasks that are evaluated."""
    random_returns: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Task name → mean return of each random policy; only in the first phase of a stream."""
    records: tuple[Record, ...] = ()
    every_steps: int = 0
    """Where steps decide the length: the steps between evaluations."""

    @property
    def axis(self) -> list[float]:
        """What curves are drawn over: the generation of every evaluation, or, where a phase's length is in steps, the
        millions of steps after which it was due (it took place at the end of that generation)."""
        if not self.every_steps:
            return [float(generation) for generation in self.generations]
        return [i * self.every_steps / 1e6 for i in range(len(self.records))]

    @property
    def axis_label(self) -> str:
        """What the axis counts."""
        return "million steps" if self.every_steps else "generation"

    @property
    def generations(self) -> list[int]:
        """The generations at which the policy was evaluated."""
        return [record.generation for record in self.records]

    def curve(self, task: str) -> Float64:
        """(n_records,) mean returns on a task; not a number where an evaluation has no value."""
        return np.array([record.mean(task) for record in self.records])

    def best(self, task: str) -> float:
        """The greatest mean return on a task among the evaluations that have one; not a number if none has."""
        return best_of(self.curve(task))

    def worst(self, task: str) -> float:
        """The least one, in the same way."""
        return worst_of(self.curve(task))

    def total_steps(self) -> dict[str, int]:
        """Environment steps of the whole phase by kind."""
        return {kind: sum(record.steps.get(kind, 0) for record in self.records) for kind in STEP_KINDS}

    @property
    def n_diverged(self) -> int:
        """Episodes of training whose physics left the finite numbers."""
        return sum(record.diverged for record in self.records)


def best_of(values: Float64) -> float:
    """The greatest of the numbers among them, or not a number."""
    defined = values[np.isfinite(values)]
    return float(defined.max()) if defined.size else math.nan


def worst_of(values: Float64) -> float:
    """The least of the numbers among them, or not a number."""
    return -best_of(-values)


def mean_of(values: Sequence[float]) -> float:
    """The mean of the numbers among them, or not a number."""
    defined = np.array(values)[np.isfinite(values)]
    return float(defined.mean()) if defined.size else math.nan


def header_line(ledger: Ledger) -> bytes:
    """The first line of a ledger file."""
    head = {"ledger": FORMAT, "stage": ledger.stage, "learning": list(ledger.learning), "tasks": list(ledger.tasks)}
    if ledger.every_steps:
        head["every_steps"] = ledger.every_steps
    if ledger.random_returns:
        head["random_returns"] = {task: _or_null(values) for task, values in ledger.random_returns.items()}
    return f"{canonical_json(head)}\n".encode()


def record_line(record: Record) -> bytes:
    """A further line of a ledger file."""
    evaluations = {
        task: {"returns": _or_null(record.returns[task]), "lengths": list(record.lengths[task])}
        for task in record.returns
    }
    data = {"generation": record.generation, "evaluations": evaluations, "steps": dict(record.steps)}
    data["diverged"] = record.diverged
    if record.n_undefined:
        data["undefined"] = record.n_undefined
    if record.horizon:
        data["horizon"] = record.horizon
    if record.diagnostics:
        data["diagnostics"] = dict(record.diagnostics)
    return f"{canonical_json(data)}\n".encode()


def _or_null(values: Sequence[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]


def parse_ledger(content: bytes, path: object) -> Ledger:
    """Read a ledger file's content; an error names the file and line."""
    number = 1
    try:
        head, *lines = content.removesuffix(b"\n").split(b"\n")
        ledger = _parse_head(parse_json(head))
        records: list[Record] = []
        for line in lines:
            number += 1
            records.append(_parse_record(parse_json(line), ledger.tasks))
            if len(records) > 1 and records[-1].generation <= records[-2].generation:
                raise ValueError("generations must rise")
        if not records:
            raise ValueError("there is no evaluation")
        return replace(ledger, records=tuple(records))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise EvergaitError(
            f"{path}, line {number}: is not a ledger line ({error}); it was damaged or edited"
        ) from error


def _parse_head(data: Any) -> Ledger:
    if _whole(data["ledger"]) > FORMAT:
        raise ValueError(f"it has format {data['ledger']}, this evergait reads up to {FORMAT}")
    learning, tasks = (tuple(map(_text, data[name])) for name in ("learning", "tasks"))
    if not learning or not set(learning) <= set(tasks):
        raise ValueError("what it learns is not among its tasks")
    random_returns = {_text(task): _returns(values) for task, values in data.get("random_returns", {}).items()}
    every_steps = _whole(data.get("every_steps", 0))
    return Ledger(_whole(data["stage"]), learning, tasks, random_returns, every_steps=every_steps)


def _parse_record(data: Any, tasks: Sequence[str]) -> Record:
    evaluations = data["evaluations"]
    record = Record(
        _whole(data["generation"]),
        {task: _returns(evaluations[task]["returns"]) for task in tasks},
        {task: [_whole(n) for n in evaluations[task]["lengths"]] for task in tasks},
        {_text(kind): _whole(n) for kind, n in data["steps"].items()},
        _whole(data["diverged"]),
        _whole(data.get("horizon", 0)),
        _named_numbers(data.get("diagnostics", {})),
    )
    for task in tasks:
        n_returns, n_lengths = len(record.returns[task]), len(record.lengths[task])
        if n_returns != n_lengths:
            raise ValueError(f"it has {n_returns} returns and {n_lengths} lengths of {task}")
    if record.n_undefined != _whole(data.get("undefined", 0)):
        raise ValueError("the count of undefined returns is not that of its nulls")
    return record


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a name is not text")
    return value


def _named_numbers(values: Any) -> dict[str, float]:
    return dict(zip(map(_text, values), _numbers(list(values.values())), strict=True)) if values else {}


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError("a count is not a whole number")
    return value


def _returns(values: Any) -> list[float]:
    if not isinstance(values, list) or not values:
        raise ValueError("returns must be a list of numbers")
    defined = iter(_numbers([value for value in values if value is not None] or [0.0]))
    return [math.nan if value is None else next(defined) for value in values]


def _numbers(values: Any) -> list[float]:
    if not isinstance(values, list) or not values or not all(type(value) in (int, float) for value in values):
        raise ValueError("returns must be a list of numbers")
    return [float(value) for value in values]
