"""The phases of all cells as one tree: what two cells have in common is one node, trained once."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from evergait.config import Config
from evergait.studies.cells import Cell
from evergait.studies.results import phase_label
from evergait.training.phases import Phase


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
        found: list[str] = []
        for child in self.children[name]:
            found += [child, *self.descendants(child)]
        return found
