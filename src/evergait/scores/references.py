"""R* where a study has no single-task phases: what the user gives, else what ships with the package."""

import csv
import functools
import importlib.resources
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from evergait.core.errors import EvergaitError
from evergait.core.names import nearest
from evergait.scores.scale import Scale, Source, choose_scale, learnt_tasks, random_returns
from evergait.store.ledger import Ledger


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
                found[task] = float(text)
            except ValueError:
                equals = ""
            if not equals or not task or not math.isfinite(found[task]):
                raise EvergaitError(f"score.reference: is {word!r}; it must be TASK=RETURN, such as Pendulum-v1=-150")
        if learnt:
            _check(found, learnt, learnt, {})
        return found


@functools.cache
def shipped() -> Mapping[str, tuple[float, str]]:
    """Task → R* and where it is from; the same for every policy, and for no variant of a task."""
    text = (importlib.resources.files("evergait.scores") / "references.csv").read_text()
    return {row["task"]: (float(row["return"]), row["source"]) for row in csv.DictReader(text.splitlines())}


def shipped_source(tasks: Collection[str]) -> Source:
    """The shipped references of some tasks, named by where they are from."""
    found = {task: shipped()[task] for task in tasks if task in shipped()}
    origins = dict.fromkeys(source for _, source in found.values())
    words = [f"{o} ({', '.join(t for t in found if found[t][1] == o)})" if len(origins) > 1 else o for o in origins]
    return f"shipped references ({'; '.join(words)})", {task: value for task, (value, _) in found.items()}


def scale_of(ledgers: Sequence[Ledger], given: Mapping[str, float], own: Source | None = None) -> Scale:
    """Scores of some runs: by the study's own single-task phases, else what the user gives, else what ships."""
    tasks, random = learnt_tasks(ledgers), random_returns(ledgers)
    known = tuple(dict.fromkeys(task for ledger in ledgers for task in ledger.tasks))
    _check(given, tasks, known, random)
    return choose_scale(tasks, random, [*([own] if own else []), ("--score.reference", given), shipped_source(tasks)])


def _check(
    given: Mapping[str, float], tasks: Collection[str], known: Collection[str], random: Mapping[str, float]
) -> None:
    for task, value in given.items():
        if task not in known:
            raise EvergaitError(f"score.reference: there is no task {task!r} here{nearest(task, known)}")
        if task in random and value <= random[task]:
            words = f"it must be above the return of random policies, {random[task]:g}"
            raise EvergaitError(f"score.reference: {task} is {value:g}; {words}")
    if given and (missing := [task for task in tasks if task not in given]):
        raise EvergaitError(f"score.reference: has no return for {missing[0]}; give one for every task that is learnt")
