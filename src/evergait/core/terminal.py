"""Standard streams that cannot stop a command, and words from files that cannot command a terminal."""

import contextlib
import io
import os
import re
import sys
import unicodedata
from typing import Any, TextIO

LOUD = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
"""Kinds of characters that do something other than to be seen: controls, directions, what is no character."""


def inert(text: str) -> str:
    r"""The text with every character that could command a terminal spelt out.

    >>> inert("a\x1b[31mb\tc")
    'a\\x1b[31mb\tc'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelt(c) if unicodedata.category(c) in LOUD and c not in "\n\t" else c for c in text)


def _spelt(character: str) -> str:
    return character.encode("unicode_escape").decode() if character.isascii() else f"\\u{ord(character):04x}"


def inert_json(text: str) -> str:
    """The same for JSON, where such characters have a spelling of their own; ASCII's are spelt already."""
    return re.sub(r"[^\x00-\x7e\w]", lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    if unicodedata.category(character) not in LOUD:
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


class Unbreakable(io.TextIOBase):
    """A stream for messages: when its reader goes away, they are lost and nothing else is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """As far as someone reads."""
        try:
            self._stream.write(text)
        except (OSError, ValueError):
            self._let_go()
        return len(text)

    def flush(self) -> None:
        """As far as someone reads."""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._let_go()

    def _let_go(self) -> None:
        """Lead what is still held back, and all that follows, nowhere: or Python would fail on it in the end."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def fileno(self) -> int:
        """The descriptor behind it."""
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Whether it is a terminal's."""
        try:
            return self._stream.isatty()
        except ValueError:
            return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def guard_streams() -> None:
    """For a program: give it the standard streams that it was started without, and let no message stop it.

    Where a descriptor below 3 is closed, the next file that is opened would get it, and messages would go into that.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123 - as long as the process
    for stream in (sys.stdout, sys.stderr):  # no name of a file and no terminal's encoding may stop a message
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.stderr = Unbreakable(sys.stderr)
