"""The one exception that users see, and help with misspelt names at its end."""

import difflib
from collections.abc import Iterable


class EvergaitError(Exception):
    """A mistake that the user can correct; its text says where it is, what was given and what would be right."""


def nearest(word: str, known: Iterable[str]) -> str:
    """End of an error message: the nearest known name, or all of them.

    >>> nearest("repaly", ["naive", "replay"])
    "; did you mean 'replay'?"
    """
    known = list(known)
    close = difflib.get_close_matches(str(word), known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"
