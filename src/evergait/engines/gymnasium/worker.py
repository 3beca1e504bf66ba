"""A process that simulates rows for `GymnasiumEngine`: requests come in by a pipe, one answer per row goes back.

The process ends when the pipe does, and is ended by the kernel when its parent dies even if the environment hangs.
"""

import contextlib
import os
import socket

from evergait.core.errors import EvergaitError
from evergait.engines.base import Episodes
from evergait.engines.gymnasium.episode import READY, Episode, Row
from evergait.tasks import Task
from evergait.tasks.channel import Channel
from evergait.tasks.process import die_with, end_forks, in_words, register


def main(pipe: int, lifeline: int) -> None:
    """Serve until the other end of the pipe is closed; both arguments are file descriptors."""
    die_with(lifeline)
    connection, us = Channel(socket.socket(fileno=pipe)), os.getpid()
    environments: dict[Task, Episode] = {}
    with contextlib.suppress(EOFError, OSError):
        while True:
            # First what to simulate, then some of its rows, until something else is to be simulated.
            message = connection.recv()
            if isinstance(message, tuple):
                episodes, spec = message
                register(episodes.task, spec)
                message = [READY]
            for row in message:
                answer = _answer(environments, episodes, row)
                end_forks(us)
                connection.send((row, answer))


def _answer(environments: dict[Task, Episode], episodes: Episodes, row: int) -> Row | str | None:
    """The outcome of a row, nothing if it is READY, or what the environment's user must read."""
    try:
        if episodes.task not in environments:
            environments[episodes.task] = Episode(episodes.task)
        return None if row == READY else environments[episodes.task].run(episodes, row)
    except EvergaitError as error:
        return str(error)
    except BaseException as error:  # also SystemExit and KeyboardInterrupt: this process ends by its pipe alone
        return in_words(error)
