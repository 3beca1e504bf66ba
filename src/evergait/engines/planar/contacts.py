"""Which geoms may touch, where, and how softly: MuJoCo's filters and parameter mixing, evaluated once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from evergait.core.arrays import Float64
from evergait.core.errors import EvergaitError
from evergait.engines.planar.subset import name_of

MIN_VALUE, MIN_FRICTION = 1e-15, 1e-5  # MuJoCo's mjMINVAL, mjMINMU
MIN_IMPEDANCE, MAX_IMPEDANCE = 1e-4, 0.9999  # mjMINIMP, mjMAXIMP
TOLERANCE = 1e-10
"""Radians, or metres, that count as none."""
STIFFEST = 1e4
"""Largest impratio / friction² · impedance / (1 − impedance). Up to here a step of links that weigh alike is right to
1e-9; beyond, the solver loses a digit for each factor of ten."""

PLANE, SPHERE, CAPSULE = (int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}")) for name in ("PLANE", "SPHERE", "CAPSULE"))

Row = Mapping[str, Any]
"""Field → number, several numbers, or the fields of a part within."""


def softness(model: Any, solref: Float64, solimp: Float64, margin: float, weight: float, where: str) -> Row:
    """Margin, K, B, the impedance curve and the row's weight: struct Softness of native/planar/model.h."""
    d0, d1 = (float(np.clip(d, MIN_IMPEDANCE, MAX_IMPEDANCE)) for d in solimp[:2])
    width, middle, power = max(0.0, solimp[2]), float(np.clip(solimp[3], MIN_IMPEDANCE, MAX_IMPEDANCE)), solimp[4]
    time, ratio = (0.02, 1.0) if (solref[0] > 0) != (solref[1] > 0) else (float(solref[0]), float(solref[1]))
    if time > 0:
        time = max(time, 2 * model.opt.timestep)
        stiffness = 1 / max(MIN_VALUE, d1 * d1 * time * time * ratio * ratio)
        damping = 2 / max(MIN_VALUE, d1 * time)
    else:
        stiffness = -time / max(MIN_VALUE, d1 * d1)
        damping = -ratio / max(MIN_VALUE, d1)
    if d0 == d1 or width <= MIN_VALUE:
        d0, width, power = 0.5 * (d0 + d1), 0.0, 1.0
    power = max(1.0, float(power))
    if power not in (1.0, 2.0):
        raise EvergaitError(f"{where}: solimp power {power:g} is not supported (only 1 and 2)")
    curve = {"d_min": d0, "d_max": d1, "width": width, "midpoint": middle, "power": power}
    return {"margin": margin, "stiffness": stiffness, "damping": damping, **curve, "weight": weight}


@dataclass(frozen=True)
class Mixed:
    """Parameters of a contact between two geoms."""

    dimension: int
    friction: float
    solref: Float64
    solimp: Float64
    margin: float


def mix(model: Any, first: int, second: int) -> Mixed:
    """MuJoCo's rules: higher priority decides; among equals the larger condim and friction count, the rest blends."""
    margin = float(model.geom_margin[first] + model.geom_margin[second])
    priority = model.geom_priority[first], model.geom_priority[second]
    if priority[0] != priority[1]:
        one = first if priority[0] > priority[1] else second
        return Mixed(
            int(model.geom_condim[one]),
            max(MIN_FRICTION, float(model.geom_friction[one, 0])),
            model.geom_solref[one],
            model.geom_solimp[one],
            margin,
        )
    a, b = float(model.geom_solmix[first]), float(model.geom_solmix[second])
    if a >= MIN_VALUE and b >= MIN_VALUE:
        share = a / (a + b)
    else:
        share = 0.5 if max(a, b) < MIN_VALUE else float(a >= MIN_VALUE)
    ref1, ref2 = model.geom_solref[first], model.geom_solref[second]
    standard = ref1[0] > 0 and ref2[0] > 0
    return Mixed(
        int(max(model.geom_condim[first], model.geom_condim[second])),
        max(MIN_FRICTION, float(max(model.geom_friction[first, 0], model.geom_friction[second, 0]))),
        share * ref1 + (1 - share) * ref2 if standard else np.minimum(ref1, ref2),
        share * model.geom_solimp[first] + (1 - share) * model.geom_solimp[second],
        margin,
    )


def may_touch(model: Any, first: int, second: int) -> bool:
    """MuJoCo's filters: bit masks, same body, parent and child, declared exclusions."""
    if not (
        model.geom_contype[first] & model.geom_conaffinity[second]
        or model.geom_contype[second] & model.geom_conaffinity[first]
    ):
        return False
    bodies = sorted((int(model.geom_bodyid[first]), int(model.geom_bodyid[second])))
    if (bodies[0] << 16) + bodies[1] in np.asarray(model.exclude_signature):
        return False
    weld = [int(model.body_weldid[body]) for body in bodies]
    if weld[0] == weld[1] or not any(model.body_dofnum[body] for body in weld):
        return False
    parent = [int(model.body_weldid[model.body_parentid[body]]) for body in weld]
    return 0 in weld or (weld[0] != parent[1] and weld[1] != parent[0])


@dataclass
class Contacts:
    """Rows of native/planar/model.h: points by joint, and pairs."""

    points: list[Row] = field(default_factory=list)
    point_dofs: list[int] = field(default_factory=list)
    pairs: list[Row] = field(default_factory=list)
    pair_dofs: list[tuple[int, int]] = field(default_factory=list)


def find_contacts(frame: Any) -> Contacts:
    """Every pair of geoms that the filters let through, in MuJoCo's order."""
    found, model = Contacts(), frame.model
    if model.npair:
        raise EvergaitError("explicit contact pairs are not supported")
    names = [name_of(model, "geom", g) for g in range(model.ngeom)]
    for first in range(model.ngeom):
        for second in range(first + 1, model.ngeom):
            if not may_touch(model, first, second):
                continue
            one, two = sorted((first, second), key=lambda g: int(model.geom_type[g]))
            mixed, where = mix(model, one, two), f"{names[one]} and {names[two]}"
            for g in (one, two):
                if model.geom_type[g] not in (PLANE, SPHERE, CAPSULE):
                    kind = mujoco.mjtGeom(int(model.geom_type[g])).name[7:].lower()
                    raise EvergaitError(f"{names[g]}: {kind} is not supported")
            if mixed.dimension not in (1, 3):
                raise EvergaitError(f"{where}: condim {mixed.dimension} is not supported (only 1 and 3)")
            if mixed.dimension == 3 and model.opt.cone != int(mujoco.mjtCone.mjCONE_PYRAMIDAL):
                raise EvergaitError(f"{where}: elliptic friction cones are not supported")
            bodies = [int(model.geom_bodyid[g]) for g in (one, two)]
            weight = float(sum(model.body_invweight0[body, 0] for body in bodies))
            if mixed.dimension == 3:
                mu2 = mixed.friction**2
                weight = 2 * mu2 / max(MIN_VALUE, model.opt.impratio) * (weight + mu2 * weight)
            soft = softness(model, mixed.solref, mixed.solimp, mixed.margin, weight, where)
            if mixed.dimension == 3:
                _check_stiffness(model, mixed, soft, where)
            how = {"dimension": mixed.dimension, "friction": mixed.friction, "contact": soft}
            if model.geom_type[one] == PLANE:
                _against_floor(found, frame, one, two, how)
            else:
                _against_each_other(found, frame, one, two, mixed.margin, how)
    order = np.argsort(found.point_dofs, kind="stable")
    found.points = [found.points[i] for i in order]
    found.point_dofs = [found.point_dofs[i] for i in order]
    return found


def tilt(direction: Float64, axis: Float64) -> float:
    """Angle between two directions; a cosine alone would take 1e-5 for none.

    >>> tilt(np.array([1.0, 1e-9, 0.0]), np.array([1.0, 0.0, 0.0]))
    1e-09
    """
    return math.atan2(float(np.linalg.norm(np.cross(direction, axis))), float(direction @ axis))


def _check_stiffness(model: Any, mixed: Mixed, soft: Row, where: str) -> None:
    ratio, impedance = float(model.opt.impratio), max(soft["d_min"], soft["d_max"])
    stiffness = ratio / mixed.friction**2 * impedance / (1 - impedance)
    if stiffness > STIFFEST:
        raise EvergaitError(
            f"{where}: friction {mixed.friction:g} with impratio {ratio:g} and impedance {impedance:g} is too stiff: "
            f"impratio / friction² · impedance / (1 − impedance) is {stiffness:.2g}; it must be at most {STIFFEST:g}"
        )


def _axis(frame: Any, geom: int) -> tuple[Float64, float]:
    """A capsule's half axis in the plane, or zero for a sphere and for a capsule seen end on."""
    model = frame.model
    if model.geom_type[geom] == SPHERE:
        return np.zeros(2), 0.0
    direction = frame.data.geom_xmat[geom].reshape(3, 3)[:, 2]
    angle = tilt(direction, frame.normal)
    off = min(angle, abs(math.pi / 2 - angle), math.pi - angle)
    if off > TOLERANCE:
        name = name_of(model, "geom", geom)
        raise EvergaitError(f"{name}: its axis is neither in the plane of motion nor normal to it ({off:.2g} rad off)")
    if abs(math.pi / 2 - angle) > 1:
        return np.zeros(2), 0.0
    length = float(model.geom_size[geom, 1])
    return length * frame.project(direction), length


def _against_floor(found: Contacts, frame: Any, floor: int, geom: int, how: Row) -> None:
    model, data, name = frame.model, frame.data, name_of(frame.model, "geom", floor)
    if model.body_weldid[model.geom_bodyid[floor]] != 0:
        raise EvergaitError(f"{name}: a plane that moves is not supported")
    normal = data.geom_xmat[floor].reshape(3, 3)[:, 2]
    if (off := tilt(normal, frame.up)) > TOLERANCE:
        raise EvergaitError(f"{name}: its normal is not the upward axis of the plane of motion ({off:.2g} rad off)")
    dof, anchor = frame.carrier(int(model.geom_bodyid[geom]))
    axis, _ = _axis(frame, geom)
    centre = frame.project(data.geom_xpos[geom]) - anchor
    height = float(frame.project(data.geom_xpos[floor])[1])
    ends = [centre] if model.geom_type[geom] == SPHERE else [centre + axis, centre - axis]
    for end in ends:
        point = {"dof": dof, "x": end[0], "z": end[1], "radius": model.geom_size[geom, 0], "floor_height": height}
        found.points.append({**point, **how})
        found.point_dofs.append(dof)


def _against_each_other(found: Contacts, frame: Any, one: int, two: int, margin: float, how: Row) -> None:
    model, data = frame.model, frame.data
    names = [name_of(model, "geom", g) for g in (one, two)]
    depth = [float(frame.normal @ data.geom_xpos[g]) for g in (one, two)]
    reach, capsules, dofs = margin, [], []
    for i, g in enumerate((one, two)):
        dof, anchor = frame.carrier(int(model.geom_bodyid[g]))
        axis, length = _axis(frame, g)
        if model.geom_type[g] == CAPSULE and length == 0.0:
            raise EvergaitError(f"{names[i]}: a capsule normal to the plane of motion may only touch the floor")
        radius = float(model.geom_size[g, 0])
        reach += radius + length
        x, z = frame.project(data.geom_xpos[g]) - anchor
        shape = {"axis_x": axis[0], "axis_z": axis[1], "radius": radius, "length": length}
        capsules.append({"dof": dof, "x": x, "z": z, **shape})
        dofs.append(dof)
    if abs(depth[0] - depth[1]) > TOLERANCE:
        if abs(depth[0] - depth[1]) > math.fsum(model.geom_size[g, 0] for g in (one, two)) + margin:
            return  # side by side for ever
        raise EvergaitError(f"{' and '.join(names)}: they may touch but do not lie in one plane")
    found.pairs.append({"a": capsules[0], "b": capsules[1], "reach": reach * (1 + 1e-9), **how})
    found.pair_dofs.append((dofs[0], dofs[1]))
