"""Trains the tree of a study: parents first, as many phases at once as there are hands.

Everything that is known lies in the store, so stopping at any moment and starting again is the same as never stopping.
A phase that fails is told at once and kept in failures.json; the phases that need it are blocked, all others go on.
"""

import contextlib
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from evergait.core.errors import EvergaitError
from evergait.core.files import write_json
from evergait.store.phases import PhaseStore
from evergait.studies.cells import Node, Tree
from evergait.training.logs import LogName, make_log
from evergait.training.observer import Diagnostics, Observer, Position
from evergait.training.phases import PhaseTrainer
from evergait.workers import Workers

FAILURES = "failures.json"


class Watcher:
    """Is told how the study goes; subclasses write what they want to know."""

    def begin(self, n_phases: int, n_done: int) -> None:
        """So many phases in all, so many of them done before."""

    def started(self, node: Node) -> None:
        """A phase is being trained, from its start or from its checkpoint."""

    def advanced(self, node: Node, used: int) -> None:
        """A phase in training has come so far."""

    def finished(self, node: Node) -> None:
        """A phase is done."""

    def failed(self, node: Node, reason: str, n_blocked: int) -> None:
        """A phase has failed, and so many others need it."""


@dataclass(frozen=True)
class Ended:
    """How the training of a phase ended."""

    node: Node
    reason: str = ""
    """Why it failed; empty if it is done."""


class Hands(Protocol):
    """What trains phases."""

    def is_free(self) -> bool:
        """Whether another phase can be started."""

    def start(self, node: Node) -> None:
        """Begin a phase."""

    def wait(self, watcher: Watcher) -> Sequence[Ended]:
        """Pass on news until at least one phase has ended; `Stop` comes out of here."""

    def close(self) -> None:
        """Stop everything that was started."""


@dataclass
class Scheduler:
    """One pass over a tree."""

    tree: Tree
    path: Path
    """The study's folder."""
    hands: Hands
    watcher: Watcher
    failures: dict[str, str] = field(default_factory=dict)
    blocked: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Train everything that is missing."""
        store = PhaseStore.inside(self.path)
        done = {name for name in self.tree.nodes if store.folder(name).is_done()}
        for name in done:
            store.folder(name).tidy()
        waiting = [node for name, node in self.tree.nodes.items() if name not in done]
        n_running = 0
        self.write_failures()
        self.watcher.begin(len(self.tree.nodes), len(done))
        while waiting or n_running:
            for node in [node for node in waiting if not node.phase.parent or node.phase.parent in done]:
                if not self.hands.is_free():
                    break
                waiting.remove(node)
                self.watcher.started(node)
                self.hands.start(node)
                n_running += 1
            for ended in self.hands.wait(self.watcher):
                n_running -= 1
                if ended.reason:
                    self.fail(ended)
                    waiting = [node for node in waiting if node.name not in self.blocked]
                else:
                    done.add(ended.node.name)
                    self.watcher.finished(ended.node)

    def fail(self, ended: Ended) -> None:
        """Keep the reason, block what needs the phase, tell."""
        self.failures[ended.node.name] = ended.reason
        descendants = self.tree.descendants(ended.node.name)
        self.blocked += descendants
        self.write_failures()
        self.watcher.failed(ended.node, ended.reason, len(descendants))

    def write_failures(self) -> None:
        """Reasons by hash, for `status`; no file where there is none."""
        path = self.path / FAILURES
        if self.failures:
            write_json(path, dict(sorted(self.failures.items())))
        else:
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Care:
    """What goes with the training of every phase of a study."""

    path: Path
    """The study's folder."""
    checkpoint_seconds: float = 30.0
    logs: tuple[LogName, ...] = ()
    """Dashboards to feed: one log per phase, under the phase's label."""


def train_node(node: Node, care: Care, workers: Workers, watcher: Watcher) -> Ended:
    """Train one phase in this process; whatever goes wrong, except for `Stop`, becomes a reason."""
    path = care.path
    try:
        with contextlib.ExitStack() as stack:
            observers: list[Observer] = [_Observer(node, watcher)]
            for name in care.logs:
                log = make_log(name, node.config, path / "logs" / folder_name(node.label), node.label)
                stack.callback(log.close)
                observers.append(log)
            store = PhaseStore.inside(path)
            PhaseTrainer(node.config, store, workers, observers, care.checkpoint_seconds).ensure(node.phase)
    except EvergaitError as error:
        return Ended(node, str(error))
    except OSError as error:
        return Ended(node, f"{error.filename or path}: {error.strerror or error}; what was saved before is intact")
    except Exception:
        return Ended(node, f"a fault in evergait, please report it:\n{traceback.format_exc()}")
    return Ended(node)


def folder_name(label: str) -> str:
    """A phase's label as the name of a folder.

    >>> folder_name("replay, Hopper > Swimmer, seed 0")
    'replay_Hopper-Swimmer_seed0'
    """
    tidy = label.replace(" > ", "-").replace(", ", "_").replace(" ", "")
    return "".join(c if c.isalnum() or c in "-_+=@." else "_" for c in tidy)


@dataclass(frozen=True)
class _Observer(Observer):
    """Passes a trainer's news on to a watcher."""

    node: Node
    watcher: Watcher

    def phase_started(self, at: Position) -> None:
        """Where it goes on from."""
        self.watcher.advanced(self.node, at.used)

    def generation_done(self, at: Position, seen: Diagnostics) -> None:
        """One more."""
        self.watcher.advanced(self.node, at.used)


class ThisProcess:
    """Hands that train one phase at a time, right here."""

    def __init__(self, care: Care, workers: Workers) -> None:
        self.care, self.workers = care, workers
        self._node: Node | None = None

    def is_free(self) -> bool:
        """Whether nothing has been started."""
        return self._node is None

    def start(self, node: Node) -> None:
        """Take note; the work is done in `wait`."""
        self._node = node

    def wait(self, watcher: Watcher) -> Sequence[Ended]:
        """Train what was started."""
        node, self._node = self._node, None
        return [train_node(node, self.care, self.workers, watcher)] if node else []

    def close(self) -> None:
        """Nothing is left running."""
