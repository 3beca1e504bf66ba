"""Processes for other people's environments: there they may hang or die, and they die with us.

That code may write into any file descriptor, ours too; so every message between us says what it is, how long it is and
what its digest is, and whoever reads one waits no longer than told. A message is whole, or refused.
"""

import contextlib
import fcntl
import hashlib
import importlib
import inspect
import json
import logging
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium

from evergait.core import plugins
from evergait.core.errors import EvergaitError, in_words
from evergait.tasks.base import Task
from evergait.tasks.robot_file import is_robot_file, read_robot

MARK = b"evergait"
HEAD = len(MARK) + 8 + 8
LARGEST = 1 << 30
"""Bytes of a message; what a method keeps of a task is far smaller."""

LONGEST = 1e6
"""Seconds of waiting; the kernel counts milliseconds in 32 bits."""


class Garbled(Exception):  # noqa: N818 - what it is, not what it does
    """Something other than our own code wrote into the channel."""


class Channel:
    """One end. Closing it, or the death of its process, ends the other end's `recv` with EOFError."""

    def __init__(self, ours: socket.socket) -> None:
        self._socket = ours
        ours.setblocking(False)

    @staticmethod
    def pair() -> tuple["Channel", socket.socket]:
        """Our end, and the socket of the other one."""
        ours, theirs = socket.socketpair()
        return Channel(ours), theirs

    def fileno(self) -> int:
        """For `select` and the like."""
        return self._socket.fileno()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def send(self, message: Any) -> None:
        """Write a whole message."""
        content = pickle.dumps(message)
        head = MARK + len(content).to_bytes(8, "little") + hashlib.sha256(content).digest()[:8]
        left = memoryview(head + content)
        while left:
            self._wait(select.POLLOUT, None)
            left = left[self._socket.send(left) :]

    def recv(self, seconds: float | None = None) -> Any:
        """Read a whole message; TimeoutError if it does not come in time, Garbled if it is not one of ours."""
        deadline = None if seconds is None else time.monotonic() + seconds
        head = self._read(HEAD, deadline, MARK)
        n = int.from_bytes(head[len(MARK) : len(MARK) + 8], "little")
        if n > LARGEST:
            raise Garbled
        content = self._read(n, deadline)
        if hashlib.sha256(content).digest()[:8] != head[-8:]:
            raise Garbled
        return pickle.loads(content)  # noqa: S301 - from a process that runs code which we run too

    def _read(self, n: int, deadline: float | None, beginning: bytes = b"") -> bytes:
        found = bytearray()
        while len(found) < n:
            if not self._wait(select.POLLIN, deadline):
                raise TimeoutError
            part = self._socket.recv(min(n - len(found), 1 << 20))
            if not part:
                raise EOFError
            found += part
            if not beginning.startswith(found[: len(beginning)]):
                raise Garbled
        return bytes(found)

    def _wait(self, event: int, deadline: float | None) -> bool:
        return is_ready(self.fileno(), event, None if deadline is None else deadline - time.monotonic())


def is_ready(descriptor: int, event: int, seconds: float | None) -> bool:
    """Whether something happens in that time; `select.select` would know no descriptor above 1023."""
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(None if seconds is None else 1000 * min(max(seconds, 0.0), LONGEST)))


log = logging.getLogger("evergait")

SCRIBBLED = "wrote into a file descriptor that is not its own"
SECONDS_TO_EXIT = 2.0
"""How long a process may take to leave by itself when asked to."""


class Limits(NamedTuple):
    """Seconds after which other people's code is held to hang."""

    episode: float = 600.0
    making: float = 120.0


_limits = Limits()


def limits() -> Limits:
    """What is in force where an environment is asked or recorded, and not trained on."""
    return _limits


def set_limits(limits: Limits) -> None:
    """Whoever starts workers sets theirs."""
    global _limits
    _limits = limits


@dataclass
class Process:
    """A process, our end of its pipe, and a pipe whose closing, by our death or by us, ends it."""

    popen: subprocess.Popen[bytes]
    pipe: Channel
    lifeline: int

    @staticmethod
    def start(module: str) -> "Process":
        """Call `main(pipe, lifeline)` of a module of ours in a new process; both are file descriptors."""
        ours, theirs = Channel.pair()
        listening, lifeline = os.pipe()
        code = f"from {module} import main; main({theirs.fileno()}, {listening})"
        # One thread each: the processes already fill the machine, and sums must not depend on how many there are.
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        popen = subprocess.Popen(  # noqa: S603 - our own interpreter on our own module
            [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"],
            stdin=subprocess.DEVNULL,
            stdout=2 if is_open(2) else subprocess.DEVNULL,  # what an environment prints is no result of ours
            pass_fds=(theirs.fileno(), listening),
            env={**os.environ, **threads},
            process_group=0,  # Ctrl-C is for the parent, which then ends us
        )
        theirs.close()
        os.close(listening)
        return Process(popen, ours, lifeline)

    def end(self, seconds: float) -> int:
        """Its exit code; it is killed if it takes longer, and so is in any case whatever it has started."""
        deadline = time.monotonic() + seconds
        if self.popen.returncode is None:
            while not os.waitid(os.P_PID, self.popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.005)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.popen.pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
        return self.popen.wait()


def stop(processes: Sequence[Process], patience: float = SECONDS_TO_EXIT) -> None:
    """Ask processes to end; kill those that take too long."""
    for process in processes:
        process.pipe.close()
    deadline = time.monotonic() + patience
    for process in processes:
        process.end(max(0.0, deadline - time.monotonic()))
        os.close(process.lifeline)


def die_with(lifeline: int) -> None:
    """Let the kernel end this process, and those that it starts, when the lifeline's other end closes: the parent died.

    Not PR_SET_PDEATHSIG: that would also fire when merely the parent's thread that started this process ends.
    """
    if sys.platform == "linux":
        _signal_on_close(lifeline)
    else:
        _watch(lifeline)


def _watch(lifeline: int) -> None:
    """Where pipes send no signal (macOS): a process of our group that waits for the end, and then ends the group."""
    if os.fork():
        return
    os.closerange(0, lifeline)  # or whoever reads from this process would wait for the watcher, too
    os.closerange(lifeline + 1, os.sysconf("SC_OPEN_MAX"))
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)


def _signal_on_close(lifeline: int) -> None:
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if is_ready(lifeline, select.POLLIN, 0.0):  # closed before the kernel was asked to tell
        os._exit(1)


def is_open(descriptor: int) -> bool:
    """Whether a file descriptor leads anywhere."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def is_foreign(task: Task) -> bool:
    """Whether the environment is someone else's: neither Gymnasium's own nor a class of this very program."""
    if is_robot_file(task):
        return bool(module_of(task))
    if ":" in task.id and task.id not in gymnasium.registry:
        return True  # a module that is yet to be imported
    try:
        spec = gymnasium.spec(task.id)  # knows the newest version of an id without one
    except gymnasium.error.Error:
        return False  # there is no such environment
    return isinstance(spec.entry_point, str) and not spec.entry_point.startswith("gymnasium.")


def module_of(task: Task) -> str:
    """The Python module that a task makes us import: `my_robots` of `my_robots:Walker-v0`; empty if there is none."""
    if is_robot_file(task):
        return read_robot(task).reward.function.partition(":")[0] if Path(task.id).is_file() else ""
    module, colon, _ = task.id.partition(":")
    return module if colon else ""


def code_of(task: Task) -> str:
    """The module with the code of someone else's environment, as far as it is known without importing it."""
    spec = gymnasium.registry.get(task.id)
    place: Any = spec.entry_point if spec else None
    if callable(place):  # a class, or what makes one
        return str(getattr(place, "__module__", ""))
    return place.partition(":")[0] if place and is_foreign(task) else module_of(task)


def made_by(task: Task) -> tuple[str, bytes]:
    """The code and the registration of someone else's environment: either may change under its name."""
    module = code_of(task)
    if module in ("", "__main__"):
        return "", b""
    version = ""
    with contextlib.suppress(Exception):  # finding a module imports the packages that it is in
        version = plugins.code_version(module) if plugins.is_trusted(module) else ""
    return version, spec_of(task)


def registration(task: Task) -> str:
    """A digest of class, options and time limit that a program has registered; empty for Gymnasium's own."""
    spec = gymnasium.registry.get(task.id)
    # Gymnasium registers its own by statements of this module; nothing else tells them from a program's.
    if spec is None or f'id="{spec.id}"' in inspect.getsource(gymnasium.envs):
        return ""
    place, wrappers = spec.entry_point, [(w.name, w.entry_point, w.kwargs) for w in spec.additional_wrappers]
    named = place if isinstance(place, str) else getattr(place, "__qualname__", "") or plugins.content(place)
    try:
        said = [named, plugins.content(spec.kwargs), spec.max_episode_steps, plugins.content(wrappers)]
    except Exception as error:  # whatever other people's objects raise
        raise EvergaitError(
            f"task {task.name!r}: an option that it was registered with cannot be told from another one "
            f"({in_words(error)}); register it with numbers, text, arrays or code"
        ) from error
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:12]


def trust(task: Task) -> None:
    """Let the task import the module that it names, here and in processes that are started from now on."""
    if module := module_of(task):
        if module not in os.environ.get(plugins.TRUSTED, "").split(","):
            log.warning("task %r imports the Python module %r", task.name, module)
        plugins.trust(module)


def spec_of(task: Task) -> bytes:
    """What this process knows of the environment, or nothing: then another process must know it by itself."""
    try:
        return pickle.dumps(gymnasium.registry[task.id])
    except (KeyError, pickle.PicklingError, AttributeError, TypeError):
        return b""


def register(task: Task, spec: bytes) -> None:
    """Make an environment known that the parent registered by itself, or whose module it trusts."""
    trust(task)
    with contextlib.suppress(Exception):
        gymnasium.registry[task.id] = pickle.loads(spec)  # noqa: S301 - from our own parent


Beat = Callable[[], None]
"""To be called when an episode is over, so that the next one has its time, too."""


def ask(task: Task, function: str, arguments: tuple[Any, ...], what: str) -> Any:
    """What `module:function` of ours answers in a process of its own, where the task's environment cannot harm us.

    It is called with the arguments and a Beat. Until its first beat it may take the time of making an environment, and
    from then on that of an episode.
    """
    process = Process.start("evergait.tasks.process")
    answer: tuple[Any, ...] = ()
    setting, seconds = "making_seconds", limits().making
    try:
        process.pipe.send((function, task, spec_of(task), arguments))
        while not answer:
            answer = process.pipe.recv(seconds)
            setting, seconds = "episode_seconds", limits().episode
    except TimeoutError as error:
        raise EvergaitError(
            f"task {task.name!r}: {what} has taken more than {seconds:g} s; "
            f"the environment hangs, or workers.{setting} must be longer"
        ) from error
    except Garbled as error:
        raise EvergaitError(f"task {task.name!r}: {what} {SCRIBBLED}") from error
    except (EOFError, OSError) as error:
        code = process.end(SECONDS_TO_EXIT)
        raise EvergaitError(f"task {task.name!r}: {what} ended its process (exit code {code})") from error
    finally:
        stop([process], patience=SECONDS_TO_EXIT if answer else 0.0)
    result, words = answer
    if words:
        raise EvergaitError(words)
    return result


def end_forks(us: int) -> None:
    """Only the process that was asked may answer; a copy of it that an environment has made may not."""
    if os.getpid() != us:
        os._exit(0)


def main(pipe: int, lifeline: int) -> None:
    """The other end of `ask`."""
    die_with(lifeline)
    connection, us = Channel(socket.socket(fileno=pipe)), os.getpid()
    with contextlib.suppress(EOFError, OSError):
        function, task, spec, arguments = connection.recv()
        register(task, spec)
        module, _, name = function.partition(":")
        try:
            answer = getattr(importlib.import_module(module), name)(*arguments, lambda: connection.send(()))
            words = ""
        except EvergaitError as error:
            answer, words = None, str(error)
        except BaseException as error:
            answer, words = None, f"task {task.name!r}: {in_words(error)}"
        end_forks(us)
        connection.send((answer, words))
