"""Messages between us and a process that runs other people's code: whole, or refused.

That code may write into any file descriptor, ours too; so every message says what it is, how long it is and what its
digest is, and whoever reads one waits no longer than told.
"""

import hashlib
import pickle
import select
import socket
import time
from typing import Any

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
