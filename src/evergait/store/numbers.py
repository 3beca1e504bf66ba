"""Lists of numbers out of JSON text, and back to the same bytes."""

import math
import re
from typing import Any

from evergait.core.arrays import Float64, Int64

_LIST = re.compile(rb"\[(-?\d[\d.e+-]*(?:,-?\d[\d.e+-]*)*)\]")
_MARK = re.compile(rb"\[([fi])(\d{1,9})\]")


def take_numbers(text: bytes) -> tuple[bytes, list[float], list[int]]:
    """Text without its lists of numbers, and these; what would not come back as it was stays.

    >>> take_numbers(b'{"a":[1,2],"b":[0.5,-3.0],"c":[1,2.0],"d":[007]}')
    (b'{"a":[i2],"b":[f2],"c":[1,2.0],"d":[007]}', [0.5, -3.0], [1, 2])
    """
    floats: list[float] = []
    ints: list[int] = []
    if _MARK.search(text):  # in a name
        return text, floats, ints

    def take(found: re.Match[bytes]) -> bytes:
        words = found[1].decode().split(",")
        for kind, column, convert in (("i", ints, _int), ("f", floats, _float)):
            values = [convert(word) for word in words]
            if None not in values:
                column.extend(values)  # type: ignore[arg-type]
                return f"[{kind}{len(words)}]".encode()
        return found[0]

    return _LIST.sub(take, text), floats, ints


def _int(word: str) -> int | None:
    return int(word) if word.isdigit() and len(word) < 19 and str(int(word)) == word else None


def _float(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) and repr(value) == word else None


def put_numbers(text: bytes, floats: Float64, ints: Int64) -> bytes:
    """Text with its lists of numbers again.

    >>> put_numbers(*take_numbers(b'{"a":[1,2],"b":[0.5,-3.0]}'))
    b'{"a":[1,2],"b":[0.5,-3.0]}'
    """
    if not len(floats) and not len(ints):
        return text
    columns: dict[bytes, list[Any]] = {b"f": list(map(float, floats)), b"i": list(map(int, ints))}
    used = dict.fromkeys(columns, 0)

    def put(found: re.Match[bytes]) -> bytes:
        kind, n = found[1], int(found[2])
        words = map(repr, columns[kind][used[kind] : used[kind] + n])
        used[kind] += n
        return f"[{','.join(words)}]".encode()

    whole = _MARK.sub(put, text)
    if used != {kind: len(column) for kind, column in columns.items()}:
        raise ValueError("another number of numbers than it tells")
    return whole
