"""Numbers by name, laid out flat in the order that the native core asks for."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evergait import _native

Row = Mapping[str, Any]
"""Field → number, several numbers, or the fields of a part within."""


def flatten(part: str, row: Row) -> list[float]:
    """The numbers of one part of a description (`dof`, `point`, `rules` …), in the native core's order.

    >>> flatten("actuator", {"gain": 2, "dof": 3, "limited": True, "lower": -1, "upper": 1})
    [3.0, 2.0, 1.0, -1.0, 1.0]
    """
    names, found = _native.PLANAR_FIELDS[part], dict(_leaves(row))
    if wrong := set(names) ^ set(found):
        raise ValueError(f"{part}: {', '.join(sorted(wrong))}: missing, or not a field of the native core")
    return [float(found[name]) for name in names]


def _leaves(row: Row, prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        elif isinstance(value, Sequence):
            yield from ((f"{prefix}{name}.{i}", number) for i, number in enumerate(value))
        else:
            yield prefix + name, value
