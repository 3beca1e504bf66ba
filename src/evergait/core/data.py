"""Frozen dataclasses to plain data and back, and plain data to TOML: strict in reading, canonical in writing.

A *family* is a base class whose subclasses are interchangeable parts (methods, optimizers, workers). Each subclass is
a frozen dataclass of its options and registers itself under its `name`; in TOML it is a table with that name in it.
How much is too much is known before work starts, and said with the number and the limit: the limits are at the end.
"""

import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self, TypeVar, cast

from evergait.core.errors import EvergaitError, nearest

T = TypeVar("T")


class Family:
    """Base of a family; direct subclasses open a family, their subclasses with a name join it."""

    name: ClassVar[str] = ""
    version: ClassVar[int] = 1
    """Raised when the same options give other bits than before."""
    members: ClassVar[dict[str, type[Any]]]

    def __init_subclass__(cls, name: str = "") -> None:
        if Family in cls.__bases__:
            cls.members = {}
        elif name:
            known = cls.members.get(name)
            if known and known.__module__.startswith("evergait.") and not cls.__module__.startswith("evergait."):
                raise EvergaitError(
                    f"{cls.__qualname__}: {name!r} is the name of a part of evergait; choose another one"
                )
            cls.name = name
            cls.members[name] = cls

    @classmethod
    def named(cls, name: str, where: str) -> type[Self]:
        """The member with that name, or an error that names the nearest."""
        if name not in cls.members:
            raise EvergaitError(f"{where}: there is no {where.split('.')[-1]} {name!r}{nearest(name, cls.members)}")
        member: type[Self] = cls.members[name]
        fields = [key for key, hint in vars(member).get("__annotations__", {}).items() if "ClassVar" not in str(hint)]
        if fields and "__dataclass_fields__" not in vars(member):
            raise EvergaitError(f"{where}: {name!r} has a field {fields[0]}, but is no @dataclass(frozen=True)")
        return member


def added(default: T) -> T:
    """The default of an option that came later: it is no part of an identity, and old names hold, unless it is used."""
    return dataclasses.field(default=default, metadata={"added": True})


def to_identity(value: Any) -> Any:
    """A dataclass as plain data, without options that came later and have their defaults.

    >>> @dataclasses.dataclass
    ... class Point:
    ...     at: int = 1
    ...     colour: str = added("red")
    >>> to_identity(Point()), to_identity(Point(colour="blue"))
    ({'at': 1}, {'at': 1, 'colour': 'blue'})
    """
    data = to_data(value)
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        if "added" in field.metadata and inner == field.default:
            del data[field.name]
        elif dataclasses.is_dataclass(inner):
            data[field.name] = to_identity(inner)
    return data


def to_data(value: Any) -> Any:
    """A dataclass as nested dictionaries, lists and scalars.

    >>> @dataclasses.dataclass
    ... class Point:
    ...     at: tuple[int, ...] = (1, 2)
    >>> to_data(Point())
    {'at': [1, 2]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: to_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"name": value.name, **fields} if isinstance(value, Family) else fields
    if isinstance(value, tuple | list):
        return [to_data(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_data(item) for key, item in sorted(value.items())}
    return value


def from_data(cls: type[T], data: object, where: str = "", base: T | None = None) -> T:
    """Build a dataclass from plain data; absent fields come from `base`, or else from the class.

    Raises EvergaitError naming the field, its value and what would be right.
    """
    if not isinstance(data, Mapping):
        raise EvergaitError(f"{where or 'config'}: is {data!r}; it must be a table")
    data = dict(data)
    if issubclass(cls, Family):
        if "name" in data:
            chosen = cls.named(str(data.pop("name")), where)
            base = base if type(base) is chosen else None
            cls = cast("type[T]", chosen)
        elif base is not None:
            cls = type(base)
        elif not cls.name:
            raise EvergaitError(f"{where}.name: is missing; it must be one of {', '.join(cls.members)}")
    hints = _hints(cast("Any", cls))
    fields = [field.name for field in dataclasses.fields(cast("Any", cls))]
    values = {name: getattr(base, name) for name in fields} if base is not None else {}
    for key, value in data.items():
        path = f"{where}.{key}" if where else str(key)
        if key not in fields:
            known = nearest(str(key), fields) if fields else f"; {getattr(cls, 'name', cls.__name__)} has none"
            raise EvergaitError(f"{path}: unknown field{known}")
        values[key] = _convert(hints[key], value, path, values.get(key))
    try:
        return cls(**values)
    except TypeError as error:
        optional = {f.name for f in dataclasses.fields(cast("Any", cls)) if is_optional(f)}
        missing = [name for name in fields if name not in values and name not in optional]
        words = f"needs {', '.join(missing)}" if missing else str(error)
        raise EvergaitError(f"{where or 'config'}: {words}") from error


def settled(value: Any, where: str = "") -> dict[str, Any]:
    """The fields of a dataclass, each of its kind as if read from a file: a list becomes a tuple, 1 becomes 1.0.

    Type hints stop nobody at run time. Raises EvergaitError naming the field, its value and what would be right.

    >>> @dataclasses.dataclass
    ... class Point:
    ...     at: float = 1.0
    >>> settled(Point(at=2))
    {'at': 2.0}
    >>> settled(Point(at="far"))
    Traceback (most recent call last):
    evergait.core.errors.EvergaitError: at: is 'far'; it must be a number
    """
    fields, hints = {}, _hints(cast("Any", type(value)))
    for name, hint in ((field.name, hints[field.name]) for field in dataclasses.fields(value)):
        path, given = f"{where}.{name}" if where else name, getattr(value, name)
        if not isinstance(hint, type) or not dataclasses.is_dataclass(hint):
            fields[name] = _convert(hint, given, path, None)
        elif isinstance(given, hint) and not (isinstance(given, Family) and not given.name):
            fields[name] = dataclasses.replace(cast("Any", given), **settled(given, path))
        elif isinstance(given, hint) and type(given).__name__ != hint.__name__:
            mine = type(given).__name__
            raise EvergaitError(
                f"{path}: {mine} has no name; write class {mine}({hint.__name__}, name={mine.lower()!r})"
            )
        else:
            example = next(iter(hint.members.values())) if issubclass(hint, Family) else hint
            raise EvergaitError(f"{path}: is {given!r}; it must be a {hint.__name__}, such as {example.__name__}()")
    return fields


def is_optional(field: dataclasses.Field[Any]) -> bool:
    """Whether a field has a default."""
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _convert(hint: Any, value: Any, path: str, base: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        value = value.tolist()
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _convert(arguments[0], value, path, base)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        if isinstance(value, str) and issubclass(hint, Family):
            value = {"name": value}
        return from_data(hint, value, path, base)
    if origin is Literal:
        if not isinstance(value, str) or value not in arguments:
            raise EvergaitError(f"{path}: is {value!r}{nearest(str(value), map(str, arguments))}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise EvergaitError(f"{path}: is {value!r}; it must be a list")
        return tuple(_convert(arguments[0], item, f"{path}[{i}]", None) for i, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, Mapping):
            raise EvergaitError(f"{path}: is {value!r}; it must be a table")
        return {str(key): _convert(arguments[1], item, f"{path}.{key}", None) for key, item in value.items()}
    return _scalar(hint, value, path)


_WORDS: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}


def _scalar(hint: Any, value: Any, path: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if value.bit_length() < 1000 else math.inf
    if type(value) is not hint:
        raise EvergaitError(f"{path}: is {value!r}; it must be {_WORDS.get(hint, str(hint))}")
    if hint is float and not math.isfinite(value):
        raise EvergaitError(f"{path}: is {value!r}; it must be finite")
    return value


def require(holds: bool, where: str, value: object, right: str) -> None:
    """Raise an EvergaitError in the one form that all checks share, unless the condition holds.

    >>> require(-1 > 0, "sigma", -1, "above 0")
    Traceback (most recent call last):
    evergait.core.errors.EvergaitError: sigma: is -1; it must be above 0
    """
    if not holds:
        raise EvergaitError(f"{where}: is {value!r}; it must be {right}")


def to_toml(data: Mapping[str, Any]) -> str:
    """Write plain data as TOML, scalars first, one table per nested mapping.

    >>> print(to_toml({"a": 1, "b": {"c": [True, "x"]}}), end="")
    a = 1
    <BLANKLINE>
    [b]
    c = [true, "x"]
    """
    lines: list[str] = []
    _write_table(data, "", lines.append)
    return "\n".join(lines).lstrip("\n") + "\n"


def _write_table(data: Mapping[str, Any], prefix: str, put: Callable[[str], None]) -> None:
    for key, value in data.items():
        if not isinstance(value, Mapping):
            put(f"{_key(key)} = {_value(value)}")
    for key, value in data.items():
        if isinstance(value, Mapping):
            put(f"\n[{prefix}{_key(key)}]")
            _write_table(value, f"{prefix}{_key(key)}.", put)


def _key(key: str) -> str:
    return key if key and all(c.isascii() and (c.isalnum() or c in "-_") for c in key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


MOST_ROWS = 1 << 22
"""Episodes of one generation: what is kept of them fits in memory."""
MOST_TASKS = 1000
"""Different tasks that one policy knows."""
MOST_PHASES = 10_000
"""Phases of one stream."""
MOST_CELLS = 10_000
"""Runs of one study; its study.json must be read again."""
MOST_THREADS = 1024
MOST_TRIALS = 10_000
"""Trials of one search."""
NUMBER_BYTES = 36
"""What an episode takes in a ledger, at most: a return of 24 characters, a length of 10, commas."""


def within(value: int, low: int, high: int, where: str) -> None:
    """Refuse what is no whole number, or outside a range."""
    whole = hasattr(value, "__index__") and not isinstance(value, bool)  # NumPy's count
    require(whole, where, value, "a whole number")
    require(value >= low, where, value, f"at least {low:,}")
    require(value <= high, where, value, f"at most {high:,}")


def is_finite(value: object) -> bool:
    """Whether something that a caller has passed is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def check_finite(data: Any, where: str = "") -> None:
    """Refuse numbers that are not finite, anywhere in plain data, by the name of their field."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            check_finite(value, f"{where}.{key}".removeprefix("."))
    elif isinstance(data, list | tuple):
        for i, value in enumerate(data):
            check_finite(value, f"{where}[{i}]")
    elif isinstance(data, float) and not math.isfinite(data):
        raise EvergaitError(f"{where}: is {data!r}; it must be finite")


def check_count(what: str, n: int, most: int) -> None:
    """Refuse what would take too long to write out, before it is written out."""
    if n > most:
        raise EvergaitError(f"{what}: there would be {n:,}; at most {most:,} are taken")
