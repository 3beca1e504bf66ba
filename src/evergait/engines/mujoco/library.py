"""The parts of MuJoCo's C library that its Python package does not offer, by ctypes.

`mujoco.batch` steps simulations but cannot call `mj_rnePostConstraint` on them, which Gymnasium does after every step
and which computes `cfrc_ext`. The C API of the batch can run a function on every simulation's own data, so
`ContactBatch` is a `mujoco.batch.Batch` of a few methods on top of it.
"""

import ctypes
import functools
import weakref
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import SimulationError

from evergait.core.arrays import Array, Bool, Float64, Int32
from evergait.core.errors import EvergaitError
from evergait.tasks.quiet import mujoco_library

HUGE = 1e10
"""What MuJoCo holds for a diverged number (mjMAXVAL)."""

_FIRST_BAD, _LAST_BAD = int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADQACC)


def was_reset(n_warnings: Array) -> Bool:
    """Whether MuJoCo reset a diverged simulation, from counts of its warnings (..., mjNWARNING)."""
    return np.asarray(n_warnings[..., _FIRST_BAD : _LAST_BAD + 1].any(axis=-1))


class _BatchConfig(ctypes.Structure):
    _fields_ = [("nthread", ctypes.c_int), ("persistent", ctypes.c_bool)]


@functools.cache
def library() -> ctypes.CDLL:
    """MuJoCo's shared library, with the signatures of its batches."""
    lib = mujoco_library()
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    lib.mjb_makeBatch.restype, lib.mjb_makeBatch.argtypes = pointer, [pointer, integer, pointer, pointer, integer]
    lib.mjb_deleteBatch.argtypes, lib.mjb_deleteBatch.restype = [pointer], None
    lib.mjb_nstate.argtypes = [pointer]
    lib.mjb_state.restype, lib.mjb_state.argtypes = pointer, [pointer]
    lib.mjb_status.restype, lib.mjb_status.argtypes = pointer, [pointer]
    lib.mjb_warning.restype, lib.mjb_warning.argtypes = pointer, [pointer]
    lib.mjb_stateComponent.restype, lib.mjb_stateComponent.argtypes = pointer, [pointer, integer, pointer]
    lib.mjb_output.restype, lib.mjb_output.argtypes = pointer, [pointer, ctypes.c_char_p, pointer, pointer]
    lib.mjb_step.argtypes = [pointer, pointer, integer, integer, integer]
    lib.mjb_forward.argtypes = [pointer, pointer, integer, integer]
    lib.mjb_reset.argtypes = [pointer, pointer, integer, pointer, integer]
    lib.mjb_apply.argtypes = [pointer, pointer, integer, pointer, pointer, integer]
    return lib


class ContactBatch:
    """What the engine uses of `mujoco.batch.Batch`, with `cfrc_ext` as Gymnasium computes it after a step."""

    def __init__(self, model: mujoco.MjModel, nsim: int, nthread: int) -> None:
        lib, error = library(), ctypes.create_string_buffer(1000)
        # Persistent, because the contacts of a step must still be there when the forces are computed.
        config = _BatchConfig(nthread, True)
        handle = lib.mjb_makeBatch(model._address, nsim, ctypes.byref(config), error, len(error))
        if not handle:
            raise EvergaitError(f"MuJoCo cannot make a batch of {nsim} simulations: {error.value.decode()}")
        self._finalizer = weakref.finalize(self, lib.mjb_deleteBatch, handle)
        self._handle, self._n = handle, nsim
        self._data = mujoco.MjData(model)
        self.state: Float64 = _array(lib.mjb_state(handle), (nsim, lib.mjb_nstate(handle)), np.float64)
        self.warning: Int32 = _array(lib.mjb_warning(handle), (nsim, int(mujoco.mjtWarning.mjNWARNING), 2), np.int32)
        self.status: Int32 = _array(lib.mjb_status(handle), (nsim,), np.int32)

    def never_delete(self) -> None:
        """Keep MuJoCo's part for as long as the process lives."""
        self._finalizer.detach()

    def bind(self, name: str) -> Float64:
        """A live (nsim, ...) array over a field of MjData."""
        shape = getattr(self._data, name).shape
        component = getattr(mujoco.mjtState, f"mjSTATE_{name.upper()}", None)
        if component is None:
            return _array(library().mjb_output(self._handle, name.encode(), None, None), (self._n, *shape), np.float64)
        address = library().mjb_stateComponent(self._handle, int(component), None)
        begin = (address - self.state.ctypes.data) // self.state.itemsize
        return self.state[:, begin : begin + shape[0]]

    def step(self, ids: Int32 | None, nstep: int) -> None:
        """Advance by `nstep` calls of mj_step, then compute contact forces."""
        lib, which = library(), _ids(ids)
        n_failed = lib.mjb_step(self._handle, *which, nstep, 0)
        failed = np.flatnonzero(self.status) if n_failed else None
        # Called with four arguments and reading its two: sound under every C calling convention that MuJoCo runs on.
        lib.mjb_apply(self._handle, *which, lib.mj_rnePostConstraint, None, 0)
        # mjb_apply does not copy outputs; a call that computes no stage does nothing else.
        lib.mjb_forward(self._handle, *which, int(mujoco.mjtStage.mjSTAGE_NONE))
        if failed is not None:
            raise SimulationError(failed, "mj_step failed")

    def forward(self, ids: Int32) -> None:
        """Run mj_forward."""
        library().mjb_forward(self._handle, *_ids(ids), int(mujoco.mjtStage.mjSTAGE_ACC))

    def reset(self, ids: Int32, stage: int) -> None:
        """Run mj_resetData, then the stages up to `stage`."""
        library().mjb_reset(self._handle, *_ids(ids), None, stage)


def _ids(ids: Int32 | None) -> tuple[int | None, int]:
    return (None, 0) if ids is None else (ids.ctypes.data, len(ids))


def _array(address: int, shape: tuple[int, ...], dtype: type[Any]) -> Array:
    raw = (ctypes.c_char * (int(np.prod(shape)) * np.dtype(dtype).itemsize)).from_address(address)
    return np.ndarray(shape, dtype, memoryview(raw))
