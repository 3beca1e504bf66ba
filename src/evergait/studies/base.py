"""A study is declared data: tasks, orders, conditions, seeds and scales, in a TOML file of about twenty lines.

title = "Does replay help?"
tasks = ["Hopper-v5", "Swimmer-v5"]
orders = "all"                          # or a list such as ["H>S", "Swimmer-v5 > Hopper-v5"]
seeds = 3

[base]                                  # any field of a config, or a preset
pairs = 64
generations = 100

[conditions.naive]
method = "naive"

[conditions.replay]
orders = ["H>S"]                        # instead of the study's orders
method = { name = "replay", budget = 32 }

[scales.mini]                           # what --scale mini changes
generations = 20
conditions.replay.method.budget = 16
"""

import importlib.resources
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from evergait.config import Config, config_from_data, named_plugins
from evergait.core.data import MOST_CELLS, MOST_TASKS, check_count, from_data, require, to_data, to_toml
from evergait.core.errors import EvergaitError, nearest
from evergait.core.files import TOML_LIMIT, parse_toml, read_bytes
from evergait.core.plugins import import_installed, trust
from evergait.core.table import file_name
from evergait.tasks import Task, all_orders, parse_stream, parse_task

SHIPPED = importlib.resources.files("evergait") / "studies"
SINGLE = "single"
"""The condition of single-task baselines; no other may be called so."""

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Outline:
    """What a study says of itself besides its settings."""

    title: str
    description: str = ""
    tasks: tuple[str, ...] = ()
    """What every policy of the study knows and is evaluated on; by default all tasks of the orders."""
    orders: tuple[str, ...] = ("all",)
    """Streams that every condition is trained on, unless it has its own; `all` stands for every order of the tasks."""
    baselines: bool = True
    """Whether every task is also trained on its own, which gives R*."""
    seeds: int = 1
    """How many seeds: that of the base config and the ones after it."""
    scale: str = ""
    """Which scale has been applied."""
    scores: Literal["", "paper"] = ""
    """`paper`: measured as the paper does, by R̂ = return / R*, with its numbers and claims beside ours."""


@dataclass(frozen=True)
class Study:
    """A declared study. `base`, `conditions` and `scales` are tables of config fields, as they stand in the file."""

    outline: Outline
    base: Settings
    conditions: Mapping[str, Settings]
    scales: Mapping[str, Settings] = field(default_factory=dict)
    search: Settings = field(default_factory=dict)
    """What `tune` varies; see tune.py."""
    where: str = "study"
    """The file it comes from, for errors."""

    def base_config(self) -> Config:
        """The settings that all conditions start from."""
        return config_from_data(self.base, f"{self.where}: base").with_plugins()

    def tasks(self) -> tuple[Task, ...]:
        """The study's set of tasks."""
        check_count(f"{self.where}: tasks", len(self.outline.tasks), MOST_TASKS)
        if self.outline.tasks:
            return tuple(dict.fromkeys(map(parse_task, self.outline.tasks)))
        spellings = [self.outline.orders, *(orders_of(table) or () for table in self.conditions.values())]
        words = [word for spelling in spellings for word in spelling if word != "all"]
        if not words:
            raise EvergaitError(f"{self.where}: tasks: is missing; without it `orders` must list streams")
        return tuple(dict.fromkeys(task for word in words for task in parse_stream([word])))

    def orders(self, condition: str) -> tuple[tuple[Task, ...], ...]:
        """The streams that a condition is trained on."""
        tasks = self.tasks()
        streams: list[tuple[Task, ...]] = []
        for word in orders_of(self.conditions[condition]) or self.outline.orders:
            streams += all_orders(tasks) if word == "all" else [parse_stream([word])]
        for task in (task for stream in streams for task in stream):
            if task not in tasks:
                known = ", ".join(task.name for task in tasks)
                raise EvergaitError(f"{self.where}: orders: {task.name!r} is not one of the study's tasks ({known})")
        return tuple(dict.fromkeys(streams))

    def check_counts(self) -> None:
        """Refuse more runs than a study may have, before they are written out."""
        n_tasks = len(self.tasks())
        check_count(f"{self.where}: tasks", n_tasks, MOST_TASKS)
        n_runs = n_tasks if self.outline.baselines else 0
        for table in self.conditions.values():
            for word in orders_of(table) or self.outline.orders:
                n_runs += math.factorial(n_tasks) if word == "all" else 1
        what = f"{self.where}: runs (orders × conditions × seeds, and baselines)"
        check_count(what, n_runs * self.outline.seeds, MOST_CELLS)

    def check_seeds(self) -> None:
        """Refuse seeds after the last one that there is."""
        for config in (self.base_config(), *map(self.condition_config, self.conditions)):
            n_left = 2**64 - config.seed
            right = f"at most {n_left}, as the first one is {config.seed}"
            require(self.outline.seeds <= n_left, f"{self.where}: seeds", self.outline.seeds, right)

    def condition_config(self, condition: str) -> Config:
        """The base config with what a condition changes."""
        changes = {key: value for key, value in self.conditions[condition].items() if key != "orders"}
        return config_from_data(changes, f"{self.where}: conditions.{condition}", self.base_config()).with_plugins()

    def at_scale(self, scale: str) -> "Study":
        """The study with the changes of a scale; an empty name changes nothing."""
        if not scale:
            return self
        if scale not in self.scales:
            known = nearest(scale, self.scales) if self.scales else "; it has no scales"
            raise EvergaitError(f"scale: {self.where} has no scale {scale!r}{known}")
        changes = dict(self.scales[scale])
        conditions = changes.pop("conditions", {})
        return replace(
            self,
            outline=replace(self.outline, scale=scale),
            base=_rescaled(self.base, changes),
            conditions={name: _rescaled(table, conditions.get(name, {})) for name, table in self.conditions.items()},
            scales={},
            where=f"{self.where}: scales.{scale}",
        )

    def with_seeds(self, n_seeds: int) -> "Study":
        """The study with another number of seeds."""
        require(n_seeds >= 1, "seeds", n_seeds, "at least 1")
        study = replace(self, outline=replace(self.outline, seeds=n_seeds))
        study.check_counts()
        study.check_seeds()
        return study

    def to_toml(self) -> str:
        """This study as a file that reads back as the same study."""
        tables = {"base": self.base, "conditions": self.conditions, "scales": self.scales, "search": self.search}
        return to_toml({**to_data(self.outline), **{name: table for name, table in tables.items() if table}})


def orders_of(table: Settings) -> tuple[str, ...] | None:
    """The orders that a condition has of its own."""
    orders = table.get("orders")
    return None if orders is None else tuple(orders)


def merge(table: Settings, changes: Settings) -> dict[str, Any]:
    """Nested tables with changes on top; a method or optimizer given by its name alone is a table with that name.

    >>> merge({"method": "replay", "pairs": 4}, {"method": {"budget": 2}})
    {'method': {'name': 'replay', 'budget': 2}, 'pairs': 4}
    """
    merged = dict(table)
    for key, value in changes.items():
        before = merged.get(key)
        before = {"name": before} if isinstance(before, str) else before
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            other = value.get("name", before.get("name")) != before.get("name")  # another method: nothing to keep
            merged[key] = dict(value) if other else merge(before, value)
        else:
            merged[key] = value
    return merged


def _rescaled(table: Settings, changes: Settings) -> dict[str, Any]:
    """Both, merged; a length in generations takes the place of one in steps.

    >>> _rescaled({"steps": 64, "evaluation": {"every_steps": 8, "episodes": 3}}, {"generations": 2})
    {'evaluation': {'episodes': 3}, 'generations': 2}
    """
    if "generations" in changes and not changes.get("steps"):
        table = {key: value for key, value in table.items() if key != "steps"}
        if isinstance(evaluation := table.get("evaluation"), Mapping):
            table["evaluation"] = {key: value for key, value in evaluation.items() if key != "every_steps"}
    return merge(table, changes)


def shipped_studies() -> list[str]:
    """Names of the studies that come with the package."""
    return sorted(file.name.removesuffix(".toml") for file in SHIPPED.iterdir() if file.name.endswith(".toml"))


def read_study(name_or_path: str | Path, trusted: bool = False) -> Study:
    """A shipped study by its name, or a user's by the path of its TOML file, checked down to every config.

    Whoever trains it trusts it: then its tasks may import the modules that they name.
    """
    text = str(name_or_path)
    if text in shipped_studies():
        return parse_study((SHIPPED / f"{text}.toml").read_bytes(), text)
    import_installed()
    path = Path(name_or_path)
    if path.suffix != ".toml" and not path.exists():
        raise EvergaitError(
            f"study: there is no study {text!r}{nearest(text, shipped_studies())} (or give the path of a .toml file)"
        )
    content = read_bytes(path, TOML_LIMIT)
    for module in named_plugins(_table(parse_toml(content, text).get("base", {}), "base")) if trusted else ():
        trust(module)
    return parse_study(content, text, trusted)


def parse_study(content: bytes, where: str, trusted: bool = False) -> Study:
    """A study from the content of its file; strict, and checked before any work."""
    data = parse_toml(content, where)
    try:
        study = _from_tables(data, where)
    except EvergaitError as error:
        raise EvergaitError(str(error) if str(error).startswith(f"{where}: ") else f"{where}: {error}") from error
    check(study, trusted)
    return study


def _from_tables(data: dict[str, Any], where: str) -> Study:
    tables = {name: _table(data.pop(name, {}), name) for name in ("base", "conditions", "scales", "search")}
    _without_streams(tables["base"], "base")
    conditions = {name: _with_orders(table, f"conditions.{name}") for name, table in tables["conditions"].items()}
    scales = {name: _table(table, f"scales.{name}") for name, table in tables["scales"].items()}
    if not conditions:
        raise EvergaitError("conditions: there is none; a study needs at least one, such as [conditions.naive]")
    if SINGLE in conditions:
        raise EvergaitError(f"conditions.{SINGLE}: is the name of the single-task baselines; choose another")
    files: dict[str, str] = {}
    for name in conditions:
        _without_streams(conditions[name], f"conditions.{name}")
        if (other := files.setdefault(file_name(name), name)) != name:
            raise EvergaitError(f"conditions.{name}: its files would overwrite those of {other!r}; rename one of them")
    for name, scale in scales.items():
        _without_streams(scale, f"scales.{name}")
        for condition, table in _table(scale.get("conditions", {}), f"scales.{name}.conditions").items():
            if condition not in conditions:
                near = nearest(condition, conditions)
                raise EvergaitError(f"scales.{name}.conditions.{condition}: there is no such condition{near}")
            place = f"scales.{name}.conditions.{condition}"
            _without_streams(_with_orders(table, place), place)
    if "format" in data and data.pop("format") != 1:
        raise EvergaitError("format: this evergait reads studies of format 1")
    known = [*Outline.__dataclass_fields__, *tables]
    for key in data:
        if key not in known:  # here, because the tables' names would be missing among the suggestions
            raise EvergaitError(f"{key}: unknown field{nearest(key, known)}")
    outline = from_data(Outline, _with_orders(data, ""))
    require(outline.seeds >= 1, "seeds", outline.seeds, "at least 1")
    return Study(outline, tables["base"], conditions, scales, tables["search"], where)


def _without_streams(table: Settings, where: str) -> None:
    """Refuse what a run of its own has, and a study would pass over."""
    for name in ("stream", "tasks"):
        if name in table:
            words = "a study has `tasks` and `orders` at its top, and a condition may have `orders`"
            raise EvergaitError(f"{where}.{name}: does not belong there; {words}")


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise EvergaitError(f"{where}: is {value!r}; it must be a table")
    return value


def _with_orders(value: Any, where: str) -> dict[str, Any]:
    """A table whose `orders`, if any, is a list; `orders = "all"` is short for a list of one."""
    table = dict(_table(value, where))
    orders = table.get("orders")
    if isinstance(orders, str):
        table["orders"] = [orders]
    elif orders is not None and not (orders and isinstance(orders, list) and all(isinstance(o, str) for o in orders)):
        field_name = f"{where}.orders".removeprefix(".")
        raise EvergaitError(f"{field_name}: is {orders!r}; it must be 'all' or a list of streams such as 'H>S>W'")
    return table


def check(study: Study, trusted: bool = False) -> None:
    """Raise EvergaitError for the first thing that cannot work, at any scale, before any work starts."""
    for scale in ("", *study.scales):
        scaled = study.at_scale(scale)
        scaled.check_counts()
        scaled.base_config()
        for condition in scaled.conditions:
            config = scaled.condition_config(condition)
            for stream in scaled.orders(condition):
                try:
                    config = replace(config, stream=tuple(task.name for task in stream))
                    if trusted:
                        config.trust()
                    config.check()
                except EvergaitError as error:
                    raise EvergaitError(f"{scaled.where}: conditions.{condition}: {error}") from error
        scaled.check_seeds()
