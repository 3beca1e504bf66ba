"""A study, analysed: the one object that the page, figures, tables and commands draw from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from evergait.analysis.groups import Group, Measure, Values, group_entries, table_of, without_unfinished
from evergait.config import Config
from evergait.scores.metrics import Metrics
from evergait.scores.scale import Scale
from evergait.studies.results import Entry, Results


class Published(Protocol):
    """Numbers that somebody else published for the same runs, to stand beside ours."""

    def single_task(self, task: str) -> float | None:
        """Best evaluation of single-task training."""

    def multi_task(self, config: Config, task: str) -> float | None:
        """Best evaluation of multi-task training."""

    def extremum(self, config: Config, order: str, step: int, task: str, which: str) -> float | None:
        """Best (`max`) or worst (`min`) evaluation of a task in a phase, steps counted from 1."""


@dataclass(frozen=True)
class Analysis:
    """Everything that is computed from results goes through this."""

    results: Results
    scales: Mapping[str, Scale]
    """By condition; the same one for all, unless the study asks for the paper's R̂."""
    published: Published | None = None
    """Only in a study that is somebody's published one."""

    @cached_property
    def _metrics(self) -> dict[int, Metrics]:
        return {id(e): Metrics(e.run.ledgers, self.scales[e.condition]) for e in self.results.entries}

    def metrics(self, entry: Entry) -> Metrics:
        """The measures of one run."""
        return self._metrics[id(entry)]

    @property
    def scale(self) -> Scale:
        """What values of the study are called and whether they are shares; conditions differ in R* at most."""
        return next(iter(self.scales.values()), Scale(source="nothing is finished"))

    @cached_property
    def scale_words(self) -> str:
        """What values mean, and where R* comes from."""
        told = {scale.words: scale for scale in self.scales.values()}
        if len(told) == 1:
            return next(iter(told))
        parts = []
        for words, scale in told.items():
            names = ", ".join(name for name, other in self.scales.items() if other.words == words)
            parts.append(f"For {names}: {words.removeprefix(scale.meaning).strip()}")
        return " ".join([self.scale.meaning, *parts])

    @cached_property
    def all_groups(self) -> list[Group]:
        """Every condition on every order, over its seeds."""
        return group_entries(self.results.entries, self.metrics)

    @cached_property
    def groups(self) -> list[Group]:
        """Those that are shown: unfinished streams only where there is nothing else."""
        return without_unfinished(self.all_groups)

    @cached_property
    def streams(self) -> list[Group]:
        """Those without single-task baselines, unless there is nothing else."""
        return [group for group in self.groups if group.condition != "single"] or self.groups

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Every task, in the order in which streams learn them: its place decides its colour everywhere."""
        learnt = [task for group in self.groups for learning in group.learning for task in learning]
        return tuple(dict.fromkeys([*learnt, *(task for group in self.groups for task in group.tasks)]))

    def finished(self, condition: str) -> list[Entry]:
        """The entries of a condition whose streams are trained to the end."""
        return [entry for entry in self.results.entries if entry.condition == condition and entry.run.is_done]

    def config(self, condition: str) -> Config:
        """The settings of a condition, in its first run."""
        return next(entry.run.config for entry in self.results.entries if entry.condition == condition)

    def gather(self, condition: str, measure: Measure, orders: Sequence[str] = ()) -> Values:
        """A measure of every finished run of a condition."""
        chosen = [entry for entry in self.finished(condition) if not orders or entry.order in orders]
        return table_of({(entry.seed, entry.order): measure(self.metrics(entry)) for entry in chosen})

    def orders(self, condition: str) -> list[str]:
        """The orders on which a condition has finished runs."""
        return list(dict.fromkeys(entry.order for entry in self.finished(condition)))
