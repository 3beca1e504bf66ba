"""Plug-ins: Python modules of other people that add methods, optimizers, engines and tasks by being imported.

A file never imports anything by itself. Whoever trains trusts the modules that the settings name, and packages that
declare an entry point in the group `evergait.plugins`; whoever only reads names modules with --import, or in the
environment variable EVERGAIT_TRUSTED_MODULES. What is trusted here is so in processes that are started from here.
"""

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import pickle
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np

from evergait.core.errors import EvergaitError, in_words

GROUP = "evergait.plugins"
TRUSTED = "EVERGAIT_TRUSTED_MODULES"
"""Environment variable with names of modules, between commas."""


def is_trusted(module: str) -> bool:
    """Whether a module is imported already, or someone other than a file has named it."""
    return module in sys.modules or module in os.environ.get(TRUSTED, "").split(",")


def trust(module: str) -> None:
    """Let files name this module, here and in processes that are started from now on."""
    count_current_folder()
    known = os.environ.get(TRUSTED, "").split(",")
    if module not in known:
        os.environ[TRUSTED] = ",".join(filter(None, (*known, module)))


def check_trust(module: str, where: str) -> None:
    """Raise EvergaitError for a module that only a file has named."""
    if not is_trusted(module):
        raise EvergaitError(
            f"{where}: would import the Python module {module!r}, which a file may not do by itself; "
            f"if you trust it, add --import {module} or set {TRUSTED}={module}"
        )


def count_current_folder() -> None:
    """Let trusted modules be in the current folder, after all other places."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def import_trusted(modules: Iterable[str], where: str) -> None:
    """Import modules that someone trusts; the current folder counts."""
    for module in modules:
        if not all(part.isidentifier() for part in module.split(".")):
            raise EvergaitError(f"{where}: {module!r} is not the name of a Python module")
        check_trust(module, where)
        if module in sys.modules:
            continue
        count_current_folder()
        try:
            with contextlib.redirect_stdout(sys.stderr):  # what it prints is no part of our answer
                importlib.import_module(module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit is one too: a module must not end us as if all were well
            raise EvergaitError(f"{where}: the module {module!r} cannot be imported: {in_words(error)}") from error


def import_installed() -> None:
    """Import what installed packages offer in our group of entry points."""
    for entry in metadata.entry_points(group=GROUP):
        trust(entry.module)
        import_trusted([entry.module], f"plug-in {entry.name}")


def plugin_of(part: object) -> str:
    """The module that must be imported for a part of someone else's to be there; empty for evergait's own."""
    module = str(getattr(part, "__module__", "")) if isinstance(part, type) else ""
    return "" if module.partition(".")[0] in ("", "evergait", "__main__") else module


def plugin_version(module: str) -> str:
    """The version of a module as this process has loaded it; until then, as it is now."""
    spec = importlib.util.find_spec(module)
    if module not in _loaded or _loaded[module][0] is not spec:  # a reload brings another one
        _loaded[module] = spec, code_version(module)
    return _loaded[module][1]


_loaded: dict[str, tuple[ModuleSpec | None, str]] = {}


def code_version(module: str) -> str:
    """What tells a module, as a new process would load it, from another: its package's version, or its files' digest.

    >>> code_version("numpy") == metadata.version("numpy")
    True
    """
    if version := _packaged(module.partition(".")[0]):
        return version
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin or not Path(spec.origin).is_file():
        return ""
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    files = [file for folder in folders for file in sorted(folder.rglob("*.py"))] or [Path(spec.origin)]
    found = [(file, file.stat()) for file in files]
    return _digest_of(tuple((file, look.st_ctime_ns, look.st_mtime_ns, look.st_size) for file, look in found))


@functools.lru_cache(64)
def _digest_of(looks: tuple[tuple[Path, int, int, int], ...]) -> str:
    """Of files that look like this: read once, for it is asked for many times."""
    return _digest(file.read_bytes() for file, *_ in looks)


@functools.cache
def _packaged(top: str) -> str:
    """The version of the installed package that a module is in, if there is one; to find it takes long."""
    packages = metadata.packages_distributions().get(top)
    return metadata.version(packages[0]) if packages else ""


def script_version(part: object) -> str:
    """A digest of the functions of a class that the program itself defines, a script or a notebook; empty for others.

    What they call beside the class is not in it.
    """
    if not isinstance(part, type) or part.__module__ != "__main__":
        return ""
    texts = []
    for kind in part.__mro__:
        for member in vars(kind).values() if kind.__module__ == "__main__" else ():
            with contextlib.suppress(TypeError, OSError):  # no function, or one that nobody wrote
                texts.append(inspect.getsource(getattr(member, "__func__", member)).encode())
    return _digest(texts)


def _digest(contents: Iterable[bytes]) -> str:
    total = hashlib.sha256()
    for part in contents:
        total.update(part)
    return total.hexdigest()[:12]


PLAIN = bool, int, float, str, tuple, list, dict, set, frozenset, np.ndarray
"""What of a class counts beside its functions."""


def content(value: Any, above: tuple[int, ...] = ()) -> Any:
    """What tells a value from others, for JSON: numbers and text as they are, code by what it does, others by digest.

    It is the same in every process; `above` are the values that this one is a part of.

    >>> content([1.5, {"gains": np.float32(2)}]) == content([1.5, {"gains": np.float32(3)}])
    False
    >>> content({"left", "right"}) == content({"right", "left"})
    True
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if id(value) in above:
        return "itself"
    part = functools.partial(content, above=(*above, id(value)))
    if isinstance(value, Mapping):
        plain = {key: part(item) for key, item in value.items()}
        is_plain = len(set(map(type, plain))) <= 1 and all(isinstance(key, str | int) for key in plain)
        return plain if is_plain else sorted(([part(key), item] for key, item in plain.items()), key=repr)
    if isinstance(value, list | tuple):
        return list(map(part, value))
    if isinstance(value, set | frozenset):
        return sorted(map(part, value), key=repr)
    if isinstance(value, functools.partial):
        return list(map(part, (value.func, value.args, value.keywords)))
    if inspect.ismodule(value):
        return value.__name__
    if inspect.iscode(value):
        return list(map(part, (value.co_code.hex(), value.co_names, value.co_consts)))
    if inspect.isfunction(value):
        closed = [cell.cell_contents for cell in value.__closure__ or ()]
        return list(map(part, (value.__code__, value.__defaults__, value.__kwdefaults__, closed)))
    if isinstance(value, type):
        members = {name: getattr(member, "__func__", member) for name, member in vars(value).items()}
        kept = {n: m for n, m in members.items() if inspect.isfunction(m) or (n[0] != "_" and isinstance(m, PLAIN))}
        return [value.__qualname__, part(kept)]
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return [str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()]
    if hasattr(value, "__dict__"):
        return [type(value).__qualname__, part(vars(value))]
    return [type(value).__qualname__, hashlib.sha256(pickle.dumps(value, 4)).hexdigest()]
