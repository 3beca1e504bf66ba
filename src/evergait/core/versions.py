"""What this process runs on: versions that decide bits, and what elementary functions give here, to the last bit.

MuJoCo, NumPy and other people's environments call the C library's sin, cos, pow …, NumPy's own vectorised ones and
BLAS. All of these choose their code by the processor and differ in the last bit: a run on the `mujoco` or `gymnasium`
engine has the same bits only where they do.
"""

import ctypes
import functools
import hashlib
import platform
from collections.abc import Mapping
from importlib import metadata

import numpy as np

from evergait import _native
from evergait.core.arrays import Float64

PACKAGES = ("evergait", "mujoco", "numpy", "gymnasium")


@functools.cache
def version_of(package: str) -> str:
    """Of an installed package; looking it up takes longer than reading a phase."""
    return metadata.version(package)


def own_versions() -> dict[str, str]:
    """Versions of all that decides bits in this process."""
    return {**{name: version_of(name) for name in PACKAGES}, "Python": platform.python_version()}


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


MACHINE_ENGINES = frozenset(("mujoco", "gymnasium"))
"""Engines whose bits depend on what is fingerprinted here."""
ONE = ("sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "cbrt", "tanh")
"""Functions of the C library of one number; MuJoCo imports all but `atan` and `tanh`."""
TWO = ("atan2", "pow")
N = 4096
"""Inputs of each: the variants for different processors disagree on seven in ten thousand."""


def _inputs(low: float, high: float) -> Float64:
    """Numbers all over a range, by integer arithmetic and one product: the same everywhere."""
    scattered = np.arange(1, N + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)
    return low + (high - low) * (scattered.astype(np.float64) / 2.0**53)


def _of_library() -> Float64:
    """The C library's functions, as every shared object of this process finds them."""
    library = ctypes.CDLL(None)
    found: list[float] = []
    for name in ONE:
        function = getattr(library, name)
        function.argtypes, function.restype = [ctypes.c_double], ctypes.c_double
        found += map(function, _inputs(-1, 1) if name in ("asin", "acos") else _inputs(1e-3, 12))
    for name in TWO:
        function = getattr(library, name)
        function.argtypes, function.restype = [ctypes.c_double] * 2, ctypes.c_double
        found += map(function, _inputs(1e-3, 12), _inputs(-5, 5))
    return np.array(found)


def _of_numpy() -> list[bytes]:
    """NumPy's vectorised functions, its sums, and BLAS."""
    x, y = _inputs(1e-3, 12), _inputs(-5, 5)
    functions = (np.sin, np.cos, np.tan, np.exp, np.log, np.tanh, np.arctan, np.cbrt)
    found = [function(part).tobytes() for part in (x, x.astype(np.float32)) for function in functions]
    found += [np.arctan2(x, y).tobytes(), np.power(x, y).tobytes(), np.sum(x * y).tobytes()]
    for size in (2, 3, 7, 16, 64, 376):  # as long as the vectors of the tasks
        found += [np.dot(x[:size], y[:size]).tobytes(), np.linalg.norm(y[:size]).tobytes()]
        found.append(np.einsum("b,nbj->nj", x[:size], np.resize(y, (4, size, 3))).tobytes())
    return [*found, (x[:256].reshape(16, 16) @ y[:256].reshape(16, 16)).tobytes()]


@functools.cache
def libm_fingerprint() -> str:
    """A digest of them on fixed inputs: equal where the `mujoco` and `gymnasium` engines give the same bits."""
    digest = hashlib.sha256(_of_library().tobytes())
    for part in _of_numpy():
        digest.update(part)
    return digest.hexdigest()[:16]
