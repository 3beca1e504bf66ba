"""Keeps MuJoCo from printing warnings and from writing MUJOCO_LOG.TXT into the user's folder."""

import contextlib
import ctypes
import functools
import threading
from collections.abc import Iterator
from pathlib import Path

import gymnasium

from evergait.tasks.base import Task
from evergait.tasks.robot_file import is_robot_file


class _LogConfig(ctypes.Structure):
    _fields_ = [
        ("console", ctypes.c_bool),
        ("file", ctypes.c_bool),
        ("path", ctypes.c_char * 1024),
        ("topics", ctypes.c_int),
    ]


@functools.cache
def mujoco_library() -> ctypes.CDLL:
    """The shared library that the mujoco package has loaded already."""
    import mujoco

    library = ctypes.CDLL(str(next(Path(mujoco.__file__).parent.glob("libmujoco.*"))))
    library.mju_getLogConfig.restype = _LogConfig
    library.mju_setLogConfig.argtypes, library.mju_setLogConfig.restype = [_LogConfig], None
    return library


_lock = threading.Lock()
_n_users = 0
_before = _LogConfig()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No output from MuJoCo within this context; for when a candidate diverges, its row says so."""
    global _n_users, _before
    library = mujoco_library()
    with _lock:
        _n_users += 1
        if _n_users == 1:
            _before = library.mju_getLogConfig()
            library.mju_setLogConfig(_LogConfig(False, False, _before.path, _before.topics))
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if _n_users == 0:
                library.mju_setLogConfig(_before)


def hushed(task: Task) -> contextlib.AbstractContextManager[None]:
    """Keep MuJoCo quiet for tasks that use it, and keep it from being imported for those that do not."""
    spec = gymnasium.registry.get(task.id)
    if is_robot_file(task):
        return quiet()
    if spec is None or "mujoco" not in str(spec.entry_point):
        return contextlib.nullcontext()
    return quiet()
