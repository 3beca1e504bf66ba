"""What `tune` varies, declared in a study's [search] table.

[search]
condition = "replay"                    # by default the first
order = "H>S>W"                         # by default the condition's first
seed = 1000                             # none of the study's own; by default one that no study of this base gets to
trials = 20

[search.space]                          # any fields of the config
sigma = { low = 0.02, high = 0.2, log = true }
pairs = { low = 32, high = 128, step = 32 }
optimizer.learning_rate = { low = 0.005, high = 0.1, log = true }
shaping = { choices = ["centered-ranks", "z-score"] }
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evergait.config import Config, config_from_data
from evergait.core.data import MOST_CELLS, MOST_TRIALS, from_data, require, to_data, within
from evergait.core.errors import EvergaitError, nearest
from evergait.studies.base import Study
from evergait.tasks import parse_stream

Number = int | float


@dataclass(frozen=True)
class Dimension:
    """One field and the values that it may take: choices, or a range."""

    field: str
    choices: tuple[Any, ...] = ()
    low: Number = 0
    high: Number = 0
    log: bool = False
    step: Number | None = None

    @property
    def ends(self) -> tuple[Any, ...]:
        """Values that must all be valid."""
        return self.choices or (self.low, self.high)


@dataclass(frozen=True)
class SearchOutline:
    """The plain fields of [search]."""

    condition: str = ""
    order: str = ""
    seed: int | None = None
    trials: int = 20


@dataclass(frozen=True)
class Search:
    """A checked search: a config on one order and the dimensions to vary."""

    config: Config
    n_trials: int
    dimensions: tuple[Dimension, ...]

    def config_with(self, values: Mapping[str, Any]) -> Config:
        """The config at a point of the space."""
        data: dict[str, Any] = {}
        for dotted, value in values.items():
            *parents, last = dotted.split(".")
            table = data
            for parent in parents:
                table = table.setdefault(parent, {})
            table[last] = value
        return config_from_data(data, "search.space", self.config)


def read_search(study: Study) -> Search:
    """The search that a study declares; everything is checked before any work."""
    data = dict(study.search)
    try:
        space = data.pop("space", {})
        outline = from_data(SearchOutline, data, "search")
        within(outline.trials, 1, MOST_TRIALS, "search.trials")
        condition = outline.condition or next(iter(study.conditions))
        if condition not in study.conditions:
            near = nearest(condition, study.conditions)
            raise EvergaitError(f"search.condition: there is no condition {condition!r}{near}")
        orders = study.orders(condition)
        order = parse_stream([outline.order]) if outline.order else orders[0]
        names = tuple(task.name for task in order)
        config = replace(study.condition_config(condition), stream=names, tasks=())
        first, last = config.seed, config.seed + study.outline.seeds - 1
        seed = first + MOST_CELLS if outline.seed is None else outline.seed
        right = f"no seed of the study's own, {first} to {last}: what is chosen on a seed is not judged by it"
        require(not first <= seed <= last, "search.seed", seed, right)
        config = replace(config, seed=seed)
        search = Search(config, outline.trials, tuple(_dimensions(space, "")))
        if not search.dimensions:
            raise EvergaitError("search.space: is missing; it says what to vary, such as sigma = { low = …, high = … }")
        for dimension in search.dimensions:
            for value in dimension.ends:
                search.config_with({dimension.field: value}).check()
        search = replace(search, dimensions=tuple(_fitting(search, dimension) for dimension in search.dimensions))
    except EvergaitError as error:
        raise EvergaitError(f"{study.where}: {error}") from error
    return search


KEYS = ("choices", "low", "high", "log", "step")


def _dimensions(table: Any, prefix: str) -> Iterator[Dimension]:
    if not isinstance(table, Mapping):
        where = f"search.space.{prefix}".rstrip(".")
        raise EvergaitError(f"{where}: is {table!r}; it must be a table such as {{ low = 0.01, high = 0.1 }}")
    for key, value in table.items():
        field = f"{prefix}{key}"
        if isinstance(value, Mapping) and not any(name in value for name in KEYS):
            yield from _dimensions(value, f"{field}.")
        else:
            yield _dimension(field, value)


def _dimension(field: str, value: Any) -> Dimension:
    where = f"search.space.{field}"
    if not isinstance(value, Mapping):
        raise EvergaitError(f"{where}: is {value!r}; it must be a table such as {{ low = 0.01, high = 0.1 }}")
    for key in value:
        if key not in KEYS:
            raise EvergaitError(f"{where}.{key}: unknown field{nearest(str(key), KEYS)}")
    choices = value.get("choices")
    if choices is not None:
        right = isinstance(choices, list) and bool(choices) and len(value) == 1
        require(right, f"{where}.choices", choices, "a list with a value in it, without low and high")
        return Dimension(field, tuple(choices))
    low: Any = value.get("low")
    high: Any = value.get("high")
    log, step = value.get("log", False), value.get("step")
    require(_is_number(low), f"{where}.low", low, "a number")
    require(_is_number(high) and high > low, f"{where}.high", high, "a number above low")
    require(isinstance(log, bool), f"{where}.log", log, "true or false")
    require(step is None or (_is_number(step) and step > 0 and not log), f"{where}.step", step, "above 0, without log")
    require(not log or low > 0, f"{where}.low", low, "above 0 with log")
    return Dimension(field, (), low, high, log, step)


def _fitting(search: Search, dimension: Dimension) -> Dimension:
    """A range of numbers of the field's own kind: whole ends do not make whole numbers of what has fractions."""
    if dimension.choices:
        return dimension
    field, low, high, step = dimension.field, dimension.low, dimension.high, dimension.step
    value = to_data(search.config_with({field: low}))
    for part in field.split("."):
        value = value[part]
    is_whole = isinstance(value, int)
    if step is not None:
        where = f"search.space.{field}.step"
        require(isinstance(step, int) or not is_whole, where, step, f"a whole number, as {field} is one")
        require(step * (1 - 1e-9) <= high - low, where, step, f"at most {high - low:g}, from low to high")
    if not is_whole and isinstance(low, int) and isinstance(high, int):
        return replace(dimension, low=float(low), high=float(high))
    return dimension


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
