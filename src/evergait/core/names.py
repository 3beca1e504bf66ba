"""Help with misspelt names, and names as people say them."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """End of an error message: the nearest known name, or all of them.

    >>> nearest("repaly", ["naive", "replay"])
    "; did you mean 'replay'?"
    """
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"


def short(task: str) -> str:
    """A task as people and the paper say it.

    >>> short("Hopper-v5@gravity=0.5")
    'Hopper@gravity=0.5'
    """
    return task.replace("-v5", "")
