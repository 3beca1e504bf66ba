"""What this process runs on: the versions that decide bits, and what else might be asked for."""

import platform
from collections.abc import Mapping
from importlib import metadata

from evergait import _native

PACKAGES = ("evergait", "mujoco", "numpy", "gymnasium")


def own_versions() -> dict[str, str]:
    """Versions of all that decides bits in this process."""
    return {**{name: metadata.version(name) for name in PACKAGES}, "Python": platform.python_version()}


def difference(here: Mapping[str, str], there: Mapping[str, str], where: str) -> str:
    """What differs between two installations, in words; empty if nothing does.

    >>> difference({"numpy": "2.1"}, {"numpy": "2.2"}, "node7")
    'numpy is 2.1 here and 2.2 on node7'
    """
    names = [name for name in here if there.get(name) != here[name]]
    return ", ".join(f"{name} is {here[name]} here and {there.get(name, 'missing')} on {where}" for name in names)


def versions() -> dict[str, str]:
    """Versions of all that decides bits, the platform, and the vector instructions in use."""
    return {
        **own_versions(),
        "platform": f"{platform.system()} {platform.machine()}",
        "instructions": _native.ISA,
    }


def in_words(found: Mapping[str, str]) -> str:
    """One line.

    >>> in_words({"mujoco": "4.0.0", "Python": "3.11.2", "platform": "Linux x86_64", "instructions": "avx2"})
    'mujoco 4.0.0, Python 3.11.2, Linux x86_64, avx2'
    """
    bare = ("platform", "instructions")
    return ", ".join(value if name in bare else f"{name} {value}" for name, value in found.items())
