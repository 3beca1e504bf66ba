"""Compile an mjModel into the flat description that native/planar/model.h reads; refuse what does not fit, by name.

Everything is read off the pose at `qpos0`, where all joint angles are zero and every link's frame is parallel to the
world's: vectors in a link's frame are then plain differences of world positions. `flatten` lays numbers out by the
names of their fields, in the order that the native core asks for.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mujoco
import numpy as np

from evergait import _native
from evergait.core.arrays import Float64
from evergait.core.errors import EvergaitError
from evergait.engines.planar.contacts import TOLERANCE, Contacts, Row, find_contacts, softness, tilt
from evergait.engines.planar.subset import MAX_PAIRS, MAX_POINTS, check_untouched, name_of, reasons

SMALLEST_PIVOT = 1e-12
"""What must be left of a joint's inertia when the mass matrix at qpos0 is factorised."""


def flatten(part: str, row: Row) -> list[float]:
    """The numbers of one part of a description (`dof`, `point`, `rules` …), in the native core's order.

    >>> flatten("actuator", {"gain": 2, "dof": 3, "limited": True, "lower": -1, "upper": 1})
    [3.0, 2.0, 1.0, -1.0, 1.0]
    """
    names, found = _native.PLANAR_FIELDS[part], dict(_leaves(row))
    if wrong := set(names) ^ set(found):
        raise ValueError(f"{part}: {', '.join(sorted(wrong))}: missing, or not a field of the native core")
    return [float(found[name]) for name in names]


def _leaves(row: Row, prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        elif isinstance(value, Sequence):
            yield from ((f"{prefix}{name}.{i}", number) for i, number in enumerate(value))
        else:
            yield prefix + name, value


SLIDE_X, SLIDE_Z, HINGE = range(3)
_FLUID = "centre_x centre_z box_cos box_sin drag_linear drag_1 drag_2 drag_spin drag_spin_quadratic"
NO_FLUID: Row = {name: float(name == "box_cos") for name in _FLUID.split()}


@dataclass(frozen=True)
class PlanarModel:
    """A planar robot, ready for the native core."""

    description: Float64
    """The numbers, in the order of native/planar/description.h."""
    n_dofs: int
    n_actuators: int
    n_contacts: int
    """Points and pairs of capsules that may touch."""


class Frame:
    """The plane of motion: forward, up, and the normal about which angles count positive, from up to forward."""

    def __init__(self, model: Any, data: Any) -> None:
        hinges = [j for j in range(model.njnt) if model.jnt_type[j] == int(mujoco.mjtJoint.mjJNT_HINGE)]
        axis = np.abs(data.xaxis[hinges[0]]) if hinges else np.array([0.0, 1.0, 0.0])
        across = int(np.argmax(axis))
        if (off := tilt(axis, np.eye(3)[across])) > TOLERANCE:
            raise EvergaitError(f"{name_of(model, 'joint', hinges[0])}: its axis is not x, y or z ({off:.2g} rad off)")
        forward, up = [k for k in range(3) if k != across]
        self.forward, self.up = np.eye(3)[forward], np.eye(3)[up]
        self.normal = np.cross(self.up, self.forward)
        self.anchors = np.array([self.project(anchor) for anchor in data.xanchor]).reshape(-1, 2)
        self.model, self.data = model, data

    def project(self, vector: Float64) -> Float64:
        """(3,) in the world to (2,) in the plane."""
        return np.array([self.forward @ vector, self.up @ vector])

    def carrier(self, body: int) -> tuple[int, Float64]:
        """The last joint above a body and its anchor; −1 and the origin for the world."""
        body = int(self.model.body_weldid[body])
        if body == 0:
            return -1, np.zeros(2)
        dof = int(self.model.body_dofadr[body] + self.model.body_dofnum[body] - 1)
        return dof, self.anchors[dof]

    def kind(self, joint: int) -> tuple[int, float]:
        """Kind of a joint and the sign of its axis."""
        axis, name = self.data.xaxis[joint], name_of(self.model, "joint", joint)
        if self.model.jnt_type[joint] == int(mujoco.mjtJoint.mjJNT_HINGE):
            sign = math.copysign(1.0, axis @ self.normal)
            if (off := tilt(sign * axis, self.normal)) > TOLERANCE:
                raise EvergaitError(f"{name}: its axis is not normal to the plane of motion ({off:.2g} rad off)")
            return HINGE, sign
        kind = SLIDE_X if abs(axis @ self.forward) > abs(axis @ self.up) else SLIDE_Z
        along = (self.forward, self.up)[kind]
        sign = math.copysign(1.0, axis @ along)
        if (off := tilt(sign * axis, along)) > TOLERANCE:
            raise EvergaitError(f"{name}: it slides along neither axis of the plane of motion ({off:.2g} rad off)")
        return kind, sign


def compile_model(model: Any) -> PlanarModel:
    """Describe a compiled mjModel, or raise EvergaitError with the first reason why that cannot be."""
    for reason in reasons(model):
        raise EvergaitError(reason)
    check_untouched(model)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    frame = Frame(model, data)
    contacts = find_contacts(frame)
    for count, limit, what in (
        (len(contacts.points), MAX_POINTS, "points that may touch the floor"),
        (len(contacts.pairs), MAX_PAIRS, "pairs of capsules that may touch"),
    ):
        if count > limit:
            raise EvergaitError(f"{count} {what} are more than {limit}")
    dofs = _dofs(frame, contacts)
    _check_pivots(model, data)
    parent = model.dof_parentid
    dense = not all(_related(parent, *pair) for pair in contacts.pair_dofs)
    option = model.opt
    euler = option.integrator == int(mujoco.mjtIntegrator.mjINT_EULER)
    gravity = frame.project(option.gravity)
    parts: dict[str, list[Row]] = {
        "model": [
            {
                "n_dof": model.nv,
                "n_points": len(contacts.points),
                "n_pairs": len(contacts.pairs),
                "n_actuators": model.nu,
                "runge_kutta": not euler,
                "implicit_damping": euler and np.any(model.dof_damping > 0),
                "fluid": option.density > 0 or option.viscosity > 0,
                "dense": dense,
                "timestep": option.timestep,
                "gravity_x": gravity[0],
                "gravity_z": gravity[1],
            }
        ],
        "dof": dofs,
        "point": contacts.points,
        "pair": contacts.pairs,
        "actuator": _actuators(frame),
    }
    description = np.array([number for part, rows in parts.items() for row in rows for number in flatten(part, row)])
    if not np.isfinite(description).all():
        raise EvergaitError("the model has parameters that are not finite")
    return PlanarModel(description, int(model.nv), int(model.nu), len(contacts.points) + len(contacts.pairs))


def _check_pivots(model: Any, data: Any) -> None:
    """Refuse joints that nothing but rounding tells apart, such as two hinges in one place."""
    mujoco.mj_comPos(model, data)
    mujoco.mj_makeM(model, data)
    inertia = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, inertia)
    diagonal = np.diag(inertia).copy()
    for i in reversed(range(model.nv)):  # from the leaves, as the native core does
        pivot = inertia[i, i]
        if not pivot > SMALLEST_PIVOT * diagonal[i]:
            raise EvergaitError(
                f"{name_of(model, 'dof', i)}: the mass matrix is singular: {pivot:.2g} is left of its "
                f"inertia of {diagonal[i]:.2g} beside other joints; it must be more than {SMALLEST_PIVOT:g} of it"
            )
        inertia -= np.outer(inertia[:, i], inertia[i]) / pivot


def dot(one: Float64, other: Float64) -> float:
    """Σ one · other, each term rounded once: as BLAS does on processors with fused multiply-adds, and this on all.

    >>> dot(np.array([1.0, 1e-17]), np.array([1.0, 1.0]))
    1.0
    """
    total = 0.0
    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        total = float(Fraction(a) * Fraction(b) + Fraction(total))
    return total


def _related(parent: Any, a: int, b: int) -> bool:
    """Whether one joint is above the other (or either is the world)."""
    low, high = min(a, b), max(a, b)
    while high > low:
        high = int(parent[high])
    return low in (-1, high)


def _dofs(frame: Frame, contacts: Contacts) -> list[Row]:
    model, n = frame.model, frame.model.nv
    kinds = [frame.kind(int(model.dof_jntid[i])) for i in range(n)]
    parent = [int(p) for p in model.dof_parentid]
    for i in range(n):
        if kinds[i][0] != HINGE and parent[i] >= 0 and kinds[parent[i]][0] == HINGE:
            raise EvergaitError(f"{name_of(model, 'dof', i)}: a slide below a hinge is not supported")
    arm = [frame.anchors[i] - (frame.anchors[parent[i]] if parent[i] >= 0 else 0.0) for i in range(n)]
    mass, moment, inertia, fluid = _carried(frame, [kind for kind, _ in kinds])
    for i in reversed(range(n)):
        if (p := parent[i]) >= 0:
            mass[p] += mass[i]
            moment[p] += mass[i] * arm[i]
            inertia[p] += mass[i] * dot(arm[i], arm[i])
    rows: list[Row] = []
    for i in range(n):
        joint = int(model.dof_jntid[i])
        kind, sign = kinds[i]
        lower, upper = sorted(sign * model.jnt_range[joint]) if model.jnt_limited[joint] else (0.0, 0.0)
        margin, where = float(model.jnt_margin[joint]), name_of(model, "joint", joint)
        if model.jnt_limited[joint] and upper - lower <= 2 * margin:
            raise EvergaitError(f"{where}: both ends of its range can be active at once")
        weight = float(model.dof_invweight0[i])
        soft = softness(model, model.jnt_solref[joint], model.jnt_solimp[joint], margin, weight, where)
        points = [k for k, dof in enumerate(contacts.point_dofs) if dof == i]
        rows.append(
            {
                "kind": kind,
                "parent": parent[i],
                "sign": sign,
                "reference": sign * model.qpos0[i],
                "anchor_x": arm[i][0],
                "anchor_z": arm[i][1],
                "subtree_mass": mass[i],
                "moment_x": moment[i][0],
                "moment_z": moment[i][1],
                "inertia": inertia[i],
                "armature": model.dof_armature[i],
                "damping": model.dof_damping[i],
                "stiffness": model.jnt_stiffness[joint],
                "spring_reference": sign * model.qpos_spring[i],
                "limited": model.jnt_limited[joint],
                "lower": lower,
                "upper": upper,
                "limit": soft,
                **fluid[i],
                "first_point": points[0] if points else 0,
                "n_points": len(points),
            }
        )
    return rows


def _carried(frame: Frame, kinds: Sequence[int]) -> tuple[Float64, Float64, Float64, list[Row]]:
    """Mass, first moment, inertia and fluid of the bodies that each joint carries by itself."""
    model, data, n = frame.model, frame.data, frame.model.nv
    mass, moment, inertia = np.zeros(n), np.zeros((n, 2)), np.zeros(n)
    fluid: list[Row] = [NO_FLUID] * n
    for body in range(1, model.nbody):
        dof, anchor = frame.carrier(body)
        if dof < 0:
            continue
        centre = frame.project(data.xipos[body]) - anchor
        axes = data.ximat[body].reshape(3, 3)
        spin = frame.normal @ axes
        mass[dof] += model.body_mass[body]
        moment[dof] += model.body_mass[body] * centre
        inertia[dof] += dot(spin * spin, model.body_inertia[body]) + model.body_mass[body] * dot(centre, centre)
        if model.opt.density > 0 or model.opt.viscosity > 0:
            if model.body_weldid[body] != body or kinds[dof] != HINGE:
                raise EvergaitError(f"{name_of(model, 'body', body)}: a fluid needs a hinge of its own on every body")
            fluid[dof] = _fluid(frame, body, centre, axes)
    return mass, moment, inertia, fluid


def _fluid(frame: Frame, body: int, centre: Float64, axes: Float64) -> Row:
    """MuJoCo's inertia-box model: linear and quadratic drag of a box with the body's mass and inertia."""
    model = frame.model
    inertia, mass = model.body_inertia[body], float(model.body_mass[body])
    if mass == 0.0:
        return NO_FLUID
    box = np.sqrt(np.maximum(1e-15, inertia.sum() - 2 * inertia) / mass * 6.0)
    across = int(np.argmax(np.abs(frame.normal @ axes)))
    angle = tilt(axes[:, across], frame.normal)
    if (off := min(angle, math.pi - angle)) > TOLERANCE:
        name = name_of(model, "body", body)
        raise EvergaitError(f"{name}: no axis of its inertia is normal to the plane of motion ({off:.2g} rad off)")
    one, two = [k for k in range(3) if k != across]
    direction = frame.project(axes[:, one])
    diameter = float(box.sum()) / 3.0
    density, viscosity = model.opt.density, model.opt.viscosity
    return {
        "centre_x": centre[0],
        "centre_z": centre[1],
        "box_cos": direction[0],
        "box_sin": direction[1],
        "drag_linear": 3.0 * math.pi * diameter * viscosity,
        "drag_1": 0.5 * density * box[two] * box[across],
        "drag_2": 0.5 * density * box[one] * box[across],
        "drag_spin": math.pi * diameter**3 * viscosity,
        "drag_spin_quadratic": density * box[across] * (box[one] ** 4 + box[two] ** 4) / 64.0,
    }


def _actuators(frame: Frame) -> list[Row]:
    model, rows = frame.model, list[Row]()
    for a in range(model.nu):
        joint = int(model.actuator_trnid[a, 0])
        _, sign = frame.kind(joint)
        gain = sign * float(model.actuator_gear[a, 0]) * float(model.actuator_gainprm[a, 0])
        limited = bool(model.actuator_ctrllimited[a])
        low, high = model.actuator_ctrlrange[a] if limited else (0.0, 0.0)
        dof = int(model.jnt_dofadr[joint])
        rows.append({"dof": dof, "gain": gain, "limited": limited, "lower": low, "upper": high})
    return rows
