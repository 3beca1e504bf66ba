"""What a return is worth: the one place where returns become scores.

score = (return − random) / (R* − random): 0 is a random policy and 1 is R*, whatever the signs. The paper's R̂, which is
return / R*, has 0 in the place of random. Without an R* for every task there is no score: returns stay as they are.
R* comes from a study's single-task phases; where it has none, from the user, else from what ships with the package.
"""

import csv
import functools
import importlib.resources
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evergait.core.arrays import Float64
from evergait.core.data import is_finite
from evergait.core.errors import EvergaitError, nearest
from evergait.store.ledger import Ledger, mean_of
from evergait.tasks.base import parse_task, short

Source = tuple[str, Mapping[str, float]]
"""Where R* comes from, in words, and its value on each task."""


@dataclass(frozen=True)
class Scale:
    """The returns that count as 0 and as 1 on every task; without them it leaves returns as they are."""

    name: str = "return"
    """What a value is called: score, R̂ or return."""
    zero: Mapping[str, float] = field(default_factory=dict)
    one: Mapping[str, float] = field(default_factory=dict)
    """R*, by task."""
    source: str = ""
    """Where R* comes from; or, of plain returns, why there is none."""

    @property
    def is_share(self) -> bool:
        """Whether values are shares of R*, which can be averaged over tasks."""
        return bool(self.one)

    def score(self, task: str, returns: Float64) -> Float64:
        """Returns on a task as scores; NaN where the task has no R*."""
        if not self.is_share:
            return returns
        zero, one = self.zero.get(task, np.nan), self.one.get(task, np.nan)
        scores: Float64 = (returns - zero) / (one - zero)
        return scores

    def score_of(self, task: str, value: float) -> float:
        """The same for one return."""
        return float(self.score(task, np.array(value)))

    @property
    def words(self) -> str:
        """What a value means and where R* comes from, in sentences."""
        if not self.is_share:
            return f"Values are plain returns: {self.source}."
        best = ", ".join(f"{short(task)} {value:,.4g}" for task, value in self.one.items())
        return f"{self.meaning} R* comes from {self.source}: {best}."

    @property
    def meaning(self) -> str:
        """What a value is, in a sentence."""
        if not self.is_share:
            return "Values are plain returns."
        if self.name == "score":
            return "The score is (return − random) / (R* − random): 0 is a random policy, 1 is R*."
        return "R̂ is return / R*, as in the paper."


def choose_scale(tasks: Iterable[str], random: Mapping[str, float], sources: Sequence[Source]) -> Scale:
    """Scores by the first source that has an R* above random for every task: one table never mixes sources."""
    tasks, reason = tuple(dict.fromkeys(tasks)), "there is no R*"
    if missing := [task for task in tasks if not np.isfinite(random.get(task, np.nan))]:
        return Scale(source=f"random policies were not evaluated on {_names(missing)}")
    for words, best in sources:
        missing = [task for task in tasks if task not in best]
        low = [task for task in tasks if task in best and not best[task] > random[task]]
        if tasks and not missing and not low:
            return Scale("score", {t: random[t] for t in tasks}, {t: best[t] for t in tasks}, words)
        if missing and (best or "there is no R*" in reason):
            reason = f"there is no R* for {_names(missing)} (--score.reference {missing[0]}=RETURN gives one)"
        elif low:
            reason = f"{words} are no better than random policies on {_names(low)}"
    return Scale(source=reason)


def random_returns(ledgers: Iterable[Ledger]) -> dict[str, float]:
    """Task → mean return of all random policies that the first phases among some ledgers have."""
    found: dict[str, list[float]] = {}
    for ledger in ledgers:
        for task, values in ledger.random_returns.items():
            found.setdefault(task, []).extend(values)
    return {task: mean_of(values) for task, values in found.items()}


def learnt_tasks(ledgers: Iterable[Ledger]) -> tuple[str, ...]:
    """The tasks that some phases learn, in the order of learning."""
    return tuple(dict.fromkeys(task for ledger in ledgers for task in ledger.learning))


def _names(tasks: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(tasks[:-1]), tasks[-1])))


@dataclass(frozen=True)
class ScoreOptions:
    """How returns become scores; only what is shown depends on it."""

    reference: tuple[str, ...] = ()
    """R*, the return that counts as 1, where a study has no single-task phases: TASK=RETURN for every task learnt."""

    def references(self, learnt: Collection[str] = ()) -> dict[str, float]:
        """Task → R*; told what will be learnt, it refuses other tasks, and gaps, before anything is trained."""
        found = {}
        for word in self.reference:
            task, equals, text = word.rpartition("=")
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            if not equals or not task or not math.isfinite(value):
                raise EvergaitError(f"score.reference: is {word!r}; it must be TASK=RETURN, such as Pendulum-v1=-150")
            found[parse_task(task).name] = value
        if learnt:
            _check(found, learnt, learnt, {})
        return found


@functools.cache
def shipped() -> tuple[Source, ...]:
    """References that ship, by where they are from; the same for every policy, and for no variant of a task."""
    text = (importlib.resources.files("evergait.scores") / "references.csv").read_text()
    found: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(text.splitlines()):
        found.setdefault(row["source"], {})[row["task"]] = float(row["return"])
    return tuple((f"shipped references ({origin})", best) for origin, best in found.items())


def scale_of(ledgers: Sequence[Ledger], given: Mapping[str, float], own: Source | None = None) -> Scale:
    """Scores of some runs: by the study's own single-task phases, else what the user gives, else what ships."""
    tasks, random = learnt_tasks(ledgers), random_returns(ledgers)
    known = tuple(dict.fromkeys(task for ledger in ledgers for task in ledger.tasks))
    _check(given, tasks, known, random)
    ours = [(words, {task: best[task] for task in tasks if task in best}) for words, best in shipped()]
    return choose_scale(tasks, random, [*([own] if own else []), ("--score.reference", given), *ours])


def _check(
    given: Mapping[str, float], tasks: Collection[str], known: Collection[str], random: Mapping[str, float]
) -> None:
    for task, value in given.items():
        if task not in known:
            raise EvergaitError(f"score.reference: there is no task {task!r} here{nearest(task, known)}")
        if not is_finite(value):
            raise EvergaitError(f"score.reference: {task} is {value!r}; it must be a finite number")
        if task in random and value <= random[task]:
            words = f"it must be above the return of random policies, {random[task]:g}"
            raise EvergaitError(f"score.reference: {task} is {value:g}; {words}")
    if given and (missing := [task for task in tasks if task not in given]):
        raise EvergaitError(f"score.reference: has no return for {missing[0]}; give one for every task that is learnt")
