"""Hands in several processes, each of which trains one phase at a time.

Processes are started afresh (spawned), so they share nothing with this one but a pipe. A process that dies fails its
phase and is replaced. When this process stops, it asks the others to; when it dies without a word, they notice, save
and end: no process stays behind.
"""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from evergait.config import config_from_data
from evergait.core.data import to_data
from evergait.core.errors import EvergaitError
from evergait.core.signals import HANDLED, Stop, interruptible, stop_at_safe_points
from evergait.studies.cells import Node
from evergait.studies.scheduler import Care, Ended, Watcher, train_node
from evergait.training.phases import changed, plan_phases
from evergait.workers import Workers, WorkersChoice

SECONDS_TO_SAVE = 30.0
"""How long a process that was asked to stop may take before it is killed; its last checkpoint is whole in any case."""
SECONDS_BETWEEN_NEWS = 0.5


class Pool:
    """Trains up to `n_jobs` phases at once."""

    def __init__(self, care: Care, n_jobs: int, n_threads: int, workers: WorkersChoice) -> None:
        self.care, self.n_jobs, self.workers = care, n_jobs, workers
        self.n_threads = max(1, n_threads // n_jobs)
        self._idle: list[tuple[BaseProcess, Connection]] = []
        self._busy: dict[Connection, tuple[BaseProcess, Node]] = {}

    def is_free(self) -> bool:
        """Whether fewer phases than jobs are being trained."""
        return len(self._busy) < self.n_jobs

    def start(self, node: Node) -> None:
        """Hand a phase to an idle process, or to a new one; those that died while they were idle are forgotten."""
        order = dict(node.phase.identity), to_data(node.config), node.phase.stage.index, node.label
        while self._idle:
            process, connection = self._idle.pop()
            with contextlib.suppress(OSError):  # it died just now
                if process.is_alive():
                    connection.send(order)
                    self._busy[connection] = process, node
                    return
            connection.close()  # ends it, should it live after all
            process.join()
        process, connection = self._spawn()
        self._busy[connection] = process, node
        with contextlib.suppress(ConnectionError):  # if it has died already, `wait` hears of it and the phase fails
            connection.send(order)

    def _spawn(self) -> tuple[BaseProcess, Connection]:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_serve,
            args=(theirs, self.care, self.n_threads, self.workers),
            daemon=True,
        )
        # Ctrl-C reaches the whole group of processes: one that is still starting must not see it before it can heed it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()  # or the pipe would stay open when the process dies
        return process, ours

    def wait(self, watcher: Watcher) -> Sequence[Ended]:
        """Pass on news until a phase has ended."""
        ended: list[Ended] = []
        while not ended:
            with interruptible():
                ready = multiprocessing.connection.wait(list(self._busy))
            for connection in ready:
                if isinstance(connection, Connection):
                    ended += self._hear(connection, watcher)
        return ended

    def _hear(self, connection: Connection, watcher: Watcher) -> list[Ended]:
        process, node = self._busy[connection]
        try:
            kind, value = connection.recv()
        except (EOFError, ConnectionError):
            del self._busy[connection]
            process.join()
            return [Ended(node, f"its process died ({_how(process.exitcode)}); what was saved before is intact")]
        if kind == "used":
            watcher.advanced(node, value)
            return []
        del self._busy[connection]
        self._idle.append((process, connection))
        return [Ended(node, value)]

    def close(self) -> None:
        """Ask every process to save and end; kill those that take too long."""
        everyone = [process for process, _ in self._idle] + [process for process, _ in self._busy.values()]
        for process in everyone:
            process.terminate()
        deadline = time.monotonic() + SECONDS_TO_SAVE
        for process in everyone:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        self._idle.clear()
        self._busy.clear()


def _how(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"by {signal.Signals(-exit_code).name}; was there enough memory?"
    return f"exit code {exit_code}"


class _Messenger(Watcher):
    """Sends a word home now and then."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._last = connection, 0.0

    def advanced(self, node: Node, used: int) -> None:
        """Tell how far it is, not too often."""
        now = time.monotonic()
        if now - self._last < SECONDS_BETWEEN_NEWS:
            return
        self._last = now
        with contextlib.suppress(OSError):  # nobody listens: see `_stop_with_parent`
            self._connection.send(("used", used))


def _serve(connection: Connection, care: Care, n_threads: int, choice: WorkersChoice) -> None:
    """What a process of the pool does: receive a phase, train it, tell how it ended, again."""
    try:
        with stop_at_safe_points():
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
            threading.Thread(target=_stop_with_parent, daemon=True).start()
            _work(connection, care, n_threads, choice)
    except (Stop, EOFError, OSError):
        pass


def _stop_with_parent() -> None:
    """Ask this process to stop when its parent is gone; that surfaces where the phase can be saved."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _work(connection: Connection, care: Care, n_threads: int, choice: WorkersChoice) -> None:
    workers: Workers | None = None
    try:
        while True:
            with interruptible():
                order = connection.recv()
                try:
                    node = _node(*order)
                    workers = workers or choice.start(n_threads)
                except EvergaitError as error:
                    connection.send(("ended", str(error)))
                    continue
            ended = train_node(node, care, workers, _Messenger(connection))
            connection.send(("ended", ended.reason))
    finally:
        if workers:
            workers.close()


def _node(planned: dict[str, Any], data: dict[str, Any], index: int, label: str) -> Node:
    config = config_from_data(data, "study")
    node = Node(plan_phases(config)[index], config, label)
    if node.phase.identity != planned:
        words = "; ".join(changed(planned, node.phase.identity)) or "the phase before it"
        raise EvergaitError(f"changed since this training was planned: {words}; run the same command again")
    return node
