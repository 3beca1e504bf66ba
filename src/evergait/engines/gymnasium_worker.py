"""A process that simulates rows for `GymnasiumEngine`: requests come in by a pipe, one answer per row goes back.

The process ends when the pipe does, and is ended by the kernel when its parent dies even if the environment hangs.
"""

import contextlib
import fcntl
import os
import pickle
import select
import signal
from multiprocessing.connection import Connection

import gymnasium

from evergait.engines.base import Episodes
from evergait.engines.gymnasium_episode import READY, Episode, Row
from evergait.tasks import Task, trust
from evergait.types import EvergaitError


def main(pipe: int, lifeline: int) -> None:
    """Serve until the other end of the pipe is closed; both arguments are file descriptors."""
    _die_with(lifeline)
    connection: Connection = Connection(pipe)
    environments: dict[Task, Episode] = {}
    with contextlib.suppress(EOFError, OSError):
        while True:
            # First what to simulate, then some of its rows, until something else is to be simulated.
            message = connection.recv()
            if isinstance(message, tuple):
                episodes, spec = message
                _register(episodes.task.id, spec)
                message = [READY]
            for row in message:
                connection.send((row, _answer(environments, episodes, row)))


def _answer(environments: dict[Task, Episode], episodes: Episodes, row: int) -> Row | str | None:
    """The outcome of a row, nothing if it is READY, or what the environment's user must read."""
    try:
        if episodes.task not in environments:
            environments[episodes.task] = Episode(episodes.task)
        return None if row == READY else environments[episodes.task].run(episodes, row)
    except EvergaitError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _die_with(lifeline: int) -> None:
    """Let the kernel end this process when the other end of the lifeline closes, that is when the parent dies.

    Not PR_SET_PDEATHSIG: that would also fire when merely the parent's thread that started this process ends.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:  # closed before the kernel was asked to tell
        os._exit(1)


def _register(name: str, spec: bytes) -> None:
    """Make an environment known that the parent registered by itself, or whose module it trusts."""
    trust(Task(name))
    with contextlib.suppress(Exception):
        gymnasium.registry.setdefault(name, pickle.loads(spec))  # noqa: S301 - from our own parent
