"""What this process runs on, in words: those versions that decide bits, and those that might be asked for."""

import platform
from collections.abc import Mapping
from importlib import metadata

from evergait import _native

PACKAGES = ("evergait", "mujoco", "numpy", "gymnasium")


def versions() -> dict[str, str]:
    """Name → version of packages and Python, the platform, and the vector instructions in use."""
    return {
        **{name: metadata.version(name) for name in PACKAGES},
        "Python": platform.python_version(),
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
