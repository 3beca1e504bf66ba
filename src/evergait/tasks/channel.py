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
            select.select([], [self._socket], [])
            left = left[self._socket.send(left) :]

    def recv(self, seconds: float | None = None) -> Any:
        """Read a whole message; TimeoutError if it does not come in time, Garbled if it is not one of ours."""
        deadline = None if seconds is None else time.monotonic() + seconds
        head = self._read(HEAD, deadline)
        n = int.from_bytes(head[len(MARK) : len(MARK) + 8], "little")
        if not head.startswith(MARK) or n > LARGEST:
            raise Garbled
        content = self._read(n, deadline)
        if hashlib.sha256(content).digest()[:8] != head[-8:]:
            raise Garbled
        return pickle.loads(content)  # noqa: S301 - from a process that runs code which we run too

    def _read(self, n: int, deadline: float | None) -> bytes:
        found = bytearray()
        while len(found) < n:
            patience = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._socket], [], [], patience)[0]:
                raise TimeoutError
            part = self._socket.recv(min(n - len(found), 1 << 20))
            if not part:
                raise EOFError
            found += part
            if not MARK.startswith(found[: len(MARK)]) and n == HEAD:
                raise Garbled
        return bytes(found)
