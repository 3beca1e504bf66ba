"""Cells of a study (one run each, of a condition on an order with a seed) and the tree that their phases form."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from evergait.config import Config
from evergait.core.errors import EvergaitError, nearest
from evergait.methods import Naive
from evergait.studies.base import SINGLE, Study
from evergait.studies.results import phase_label
from evergait.tasks import Task, parse_stream
from evergait.training.frame import order_name
from evergait.training.phases import Phase, plan_phases


@dataclass(frozen=True)
class Cell:
    """One run of a study."""

    condition: str
    config: Config

    @property
    def order(self) -> str:
        """The stream as tables write it."""
        return order_name(self.config.stream)

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.config.seed

    @property
    def name(self) -> str:
        """How progress and errors call it."""
        return f"{self.condition}, {self.order}, seed {self.seed}"

    @cached_property
    def phases(self) -> list[Phase]:
        """Its phases, in order; cells that begin alike share the first ones."""
        return plan_phases(self.config)


def study_cells(study: Study) -> list[Cell]:
    """All cells, seed by seed, so that the first seed is complete before the next one begins."""
    base, tasks = study.base_config(), study.tasks()
    # All policies know all tasks: then the first phase of a baseline is the first phase of every stream.
    names = tuple(task.name for task in tasks)
    runs: list[tuple[str, Config, tuple[Task, ...]]] = []
    if study.outline.baselines:
        runs += [(SINGLE, replace(base, method=Naive()), (task,)) for task in tasks]
    for condition in study.conditions:
        config = study.condition_config(condition)
        runs += [(condition, config, stream) for stream in study.orders(condition)]
    return [
        Cell(condition, replace(config, stream=tuple(t.name for t in stream), tasks=names, seed=config.seed + i))
        for i in range(study.outline.seeds)
        for condition, config, stream in runs
    ]


def seeds_of(runs: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Condition → its seeds in rising order; one may begin with a seed of its own.

    >>> seeds_of([("naive", 1), ("naive", 0), ("other", 50)])
    {'naive': [0, 1], 'other': [50]}
    """
    seeds: dict[str, set[int]] = {}
    for condition, seed in runs:
        seeds.setdefault(condition, set()).add(seed)
    return {condition: sorted(found) for condition, found in seeds.items()}


def select_cells(
    cells: list[Cell], only: tuple[str, ...] = (), n_seeds: int | None = None, conditions: tuple[str, ...] = ()
) -> list[Cell]:
    """The cells of some orders (with the baselines of their tasks), of the first seeds, and of some conditions."""
    known = dict.fromkeys(cell.condition for cell in cells)
    for name in conditions:
        if name not in known:
            raise EvergaitError(f"conditions: the study has no condition {name!r}{nearest(name, known)}")
    if only:
        streams = [[task.name for task in parse_stream([word])] for word in only]
        orders, tasks = list(map(order_name, streams)), {order_name([task]) for stream in streams for task in stream}
        for word, order in zip(only, orders, strict=True):
            if order not in {cell.order for cell in cells}:
                there = ", ".join(dict.fromkeys(repr(cell.order) for cell in cells if cell.condition != SINGLE))
                raise EvergaitError(f"only: the study has no order {word!r}; it has {there}")
        cells = [cell for cell in cells if cell.order in orders or (cell.condition == SINGLE and cell.order in tasks)]
    if n_seeds is not None:
        seeds = seeds_of((cell.condition, cell.seed) for cell in cells)
        cells = [cell for cell in cells if cell.seed in seeds[cell.condition][:n_seeds]]
    return [cell for cell in cells if not conditions or cell.condition in conditions]


@dataclass(frozen=True)
class Node:
    """A phase to train, with a config that leads to it."""

    phase: Phase
    config: Config
    """Of the first cell that has this phase; any other one's gives the same bits."""
    label: str
    """For people: the condition, and the stream up to this phase."""

    @property
    def name(self) -> str:
        """The phase's hash."""
        return self.phase.name


@dataclass(frozen=True)
class Tree:
    """All phases of a study, parents before their children."""

    nodes: dict[str, Node]

    @staticmethod
    def build(cells: Iterable[Cell]) -> "Tree":
        """The union of the cells' phases."""
        nodes: dict[str, Node] = {}
        for cell in cells:
            for i, phase in enumerate(cell.phases):
                name = phase.name
                if name not in nodes:
                    label = phase_label(cell.condition, cell.order, cell.seed, i, len(cell.phases))
                    nodes[name] = Node(phase, cell.config, label)
        return Tree(nodes)

    @cached_property
    def children(self) -> dict[str, list[str]]:
        """Hash → hashes of the phases that start from it."""
        children: dict[str, list[str]] = {name: [] for name in self.nodes}
        for name, node in self.nodes.items():
            if node.phase.parent:
                children[node.phase.parent].append(name)
        return children

    def descendants(self, name: str) -> list[str]:
        """All phases that cannot be trained without this one."""
        found = list(self.children[name])
        for child in found:  # grows as it goes
            found += self.children[child]
        return found
