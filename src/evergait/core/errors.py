"""The one exception that users see, other people's in words, and help with misspelt names."""

import difflib
from collections.abc import Iterable


class EvergaitError(Exception):
    """A mistake that the user can correct; its text says where it is, what was given and what would be right."""


def in_words(error: BaseException) -> str:
    """What an exception of other people's code says of itself, if it can."""
    try:
        words = str(error)[:2000]
    except Exception:
        words = ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def nearest(word: str, known: Iterable[str]) -> str:
    """End of an error message: the nearest known name, or all of them.

    >>> nearest("repaly", ["naive", "replay"])
    "; did you mean 'replay'?"
    """
    known = list(known)
    close = difflib.get_close_matches(str(word), known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"
