"""Same bits need the same software: what is compared between machines."""

import platform
from collections.abc import Mapping
from importlib import metadata

PACKAGES = ("evergait", "mujoco", "numpy", "gymnasium")


def own_versions() -> dict[str, str]:
    """Versions of all that decides bits in this process."""
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}}


def difference(here: Mapping[str, str], there: Mapping[str, str], where: str) -> str:
    """What differs between two installations, in words; empty if nothing does.

    >>> difference({"numpy": "2.1"}, {"numpy": "2.2"}, "node7")
    'numpy is 2.1 here and 2.2 on node7'
    """
    names = [name for name in here if there.get(name) != here[name]]
    return ", ".join(f"{name} is {here[name]} here and {there.get(name, 'missing')} on {where}" for name in names)
