"""What the planar engine can simulate; everything else is refused by name, in one sentence per reason."""

import copy
from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

from evergait import _native
from evergait.core.errors import EvergaitError
from evergait.tasks.quiet import quiet

_DEFAULTS = mujoco.MjOption()
MAX_DOFS, MAX_POINTS, MAX_PAIRS, MAX_ACTUATORS = _native.PLANAR_LIMITS

# Fields of mjModel that must be zero, what a non-zero one means, and whose name to give.
_ZERO = {
    "dof_frictionloss": ("dry joint friction", "dof"),
    "dof_dampingpoly": ("nonlinear damping", "dof"),
    "jnt_stiffnesspoly": ("a nonlinear spring", "joint"),
    "jnt_springyield": ("a plastic spring", "joint"),
    "jnt_actfrclimited": ("a limit on actuator force", "joint"),
    "jnt_actgravcomp": ("gravity compensation by an actuator", "joint"),
    "body_gravcomp": ("gravity compensation", "body"),
    "geom_adhesion": ("adhesion", "geom"),
    "geom_surfacevel": ("a moving surface", "geom"),
    "geom_gap": ("a contact gap", "geom"),
    "actuator_armature": ("armature of an actuator", "actuator"),
    "actuator_damping": ("damping of an actuator", "actuator"),
    "actuator_dampingpoly": ("damping of an actuator", "actuator"),
    "actuator_delay": ("a delay", "actuator"),
    "actuator_forcelimited": ("a force limit", "actuator"),
    "actuator_dyntype": ("an activation state", "actuator"),
    "actuator_gaintype": ("a gain that is not fixed", "actuator"),
    "actuator_biastype": ("a bias force", "actuator"),
    "actuator_trntype": ("a transmission that is not a joint", "actuator"),
}
_COUNTS = {
    "neq": "equality constraints",
    "ntendon": "tendons",
    "nflex": "flexible bodies",
    "nplugin": "plugins",
    "nmocap": "mocap bodies",
    "na": "actuator states",
}


def name_of(model: Any, kind: str, index: int) -> str:
    """What messages call a part of a model; a degree of freedom by its joint."""
    if kind == "dof":
        kind, index = "joint", int(model.dof_jntid[index])
    return f"{kind} {getattr(model, kind)(index).name or index!r}"


def reasons(model: Any) -> Iterator[str]:
    """Why a model lies outside the subset, as far as that can be told without its geometry."""
    for field, what in _COUNTS.items():
        if getattr(model, field):
            yield f"{what} are not supported"
    for field, (what, kind) in _ZERO.items():
        bad = np.flatnonzero(np.atleast_2d(np.asarray(getattr(model, field)).T != 0).any(axis=0))
        if bad.size:
            yield f"{name_of(model, kind, int(bad[0]))}: {what} is not supported"
    option = model.opt
    if option.integrator not in (int(mujoco.mjtIntegrator.mjINT_EULER), int(mujoco.mjtIntegrator.mjINT_RK4)):
        yield f"integrator {mujoco.mjtIntegrator(option.integrator).name[6:]} is not supported (only Euler and RK4)"
    if option.solver != int(mujoco.mjtSolver.mjSOL_NEWTON):
        solver = mujoco.mjtSolver(option.solver).name[6:]
        yield f"solver {solver} is not supported: it stops before it converges (only Newton)"
    for field in ("iterations", "ls_iterations"):
        given, least = getattr(option, field), getattr(_DEFAULTS, field)
        if given < least:
            yield f"{field} {given} is not supported: the solver stops before it converges (at least {least})"
    if option.tolerance > _DEFAULTS.tolerance:
        yield (
            f"tolerance {option.tolerance:g} is not supported: the solver stops before it converges "
            f"(at most {_DEFAULTS.tolerance:g})"
        )
    if option.noslip_iterations:
        yield "noslip iterations are not supported"
    if option.disableflags:
        yield f"disable flags {option.disableflags:#x} are not supported"
    if option.enableflags & ~int(mujoco.mjtEnableBit.mjENBL_ENERGY):
        yield f"enable flags {option.enableflags:#x} are not supported"
    if option.disableactuator:
        yield f"disabled groups of actuators (actuatorgroupdisable, {option.disableactuator:#x}) are not supported"
    if np.any(option.wind):
        yield "wind is not supported"
    if (option.density or option.viscosity) and np.any(np.asarray(model.geom_fluid)):
        yield "the ellipsoid fluid model is not supported"
    if model.nv == 0:
        yield "it has no joints"
    if model.nv > MAX_DOFS:
        yield f"{model.nv} degrees of freedom are more than {MAX_DOFS}"
    if model.nu > MAX_ACTUATORS:
        yield f"{model.nu} actuators are more than {MAX_ACTUATORS}"
    for joint in range(model.njnt):
        if int(model.jnt_type[joint]) not in (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE)):
            kind = mujoco.mjtJoint(int(model.jnt_type[joint])).name[6:].lower()
            yield f"{name_of(model, 'joint', joint)}: {kind} joints are not supported"


_CONSTANTS = ("dof_M0", "body_subtreemass", "body_invweight0", "dof_invweight0")
"""What MuJoCo computes when it compiles a model, and then takes for granted."""


def check_untouched(model: Any) -> None:
    """Raise EvergaitError for a model that was edited, but not what MuJoCo derives of it and simulates with."""
    fresh = copy.copy(model)
    try:
        with quiet():
            mujoco.mj_setConst(fresh, mujoco.MjData(fresh))
    except mujoco.FatalError as error:
        raise EvergaitError(f"model: MuJoCo does not take it: {error}") from error
    for field in _CONSTANTS:
        if not np.allclose(getattr(model, field), getattr(fresh, field), rtol=1e-9, atol=0.0):
            raise EvergaitError(
                f"model: {field} does not follow from the rest, which was edited; "
                "call mujoco.mj_setConst(model, mujoco.MjData(model))"
            )
    for field in ("contype", "conaffinity"):
        of_geoms = np.zeros(model.nbody, int)
        np.bitwise_or.at(of_geoms, model.geom_bodyid, getattr(model, f"geom_{field}"))
        if (lacking := np.flatnonzero(of_geoms & ~getattr(model, f"body_{field}"))).size:
            name = name_of(model, "body", int(lacking[0]))
            raise EvergaitError(
                f"{name}: a {field} of its geoms was edited, and MuJoCo does not see it; set body_{field} too, or "
                "compile the model anew"
            )
