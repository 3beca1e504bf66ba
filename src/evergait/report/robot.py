"""A MuJoCo model as thick lines in a plane: what a gait player needs to draw a robot without any renderer.

Every geom becomes a segment p–q with a radius. Robots whose joints all turn about one axis (Hopper, Walker2d, Swimmer,
HalfCheetah, pendulums, Reacher) are seen along that axis; the others (Ant, Humanoid) obliquely from the side and above.
What does not change while it moves is here too: the size of its parts, the scenery, how much of the world is shown.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mujoco
import numpy as np

from evergait.core.arrays import Array, Float64, Int64
from evergait.core.errors import EvergaitError
from evergait.tasks import Task, make
from evergait.tasks.base import apply_to_environment, has_model

_JOINT, _GEOM = mujoco.mjtJoint, mujoco.mjtGeom
AZIMUTH, ELEVATION = np.radians(-28.0), np.radians(18.0)
"""Where robots without a plane are seen from."""


@dataclass(frozen=True)
class Camera:
    """Directions of the picture in the world; `planar` tells whether the robot never leaves the plane."""

    right: Float64
    up: Float64
    planar: bool

    @property
    def away(self) -> Float64:
        """The direction into the picture."""
        return np.cross(self.up, self.right)


def camera_for(model: Any) -> Camera:
    """Look along the axis that all hinges share, or else obliquely."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    hinges = data.xaxis[model.jnt_type == _JOINT.mjJNT_HINGE]
    slides = data.xaxis[model.jnt_type == _JOINT.mjJNT_SLIDE]
    if len(hinges) and len(hinges) + len(slides) == model.njnt:
        axis = hinges[0] / np.linalg.norm(hinges[0])
        if np.allclose(np.abs(hinges @ axis), 1, atol=1e-6) and np.allclose(slides @ axis, 0, atol=1e-6):
            up = np.array([0.0, 0.0, 1.0]) if abs(axis[2]) < 0.5 else np.array([0.0, 1.0, 0.0])
            right = np.cross(axis, up)
            right *= np.sign(right[np.argmax(np.abs(right))]) / np.linalg.norm(right)
            return Camera(right, up, True)
    sin, cos = np.sin(AZIMUTH), np.cos(AZIMUTH)
    right = np.array([cos, sin, 0.0])
    away = np.array([-sin * np.cos(ELEVATION), cos * np.cos(ELEVATION), -np.sin(ELEVATION)])
    return Camera(right, np.cross(right, away), False)


@dataclass(frozen=True)
class Skeleton:
    """The segments of a model: which geoms, along which of their axes, how long and thick."""

    geoms: Int64
    """(n,) indices of the geoms that move."""
    axis: Int64
    """(n,) the geom's own axis along which the segment runs."""
    half_length: Float64
    radius: Float64
    round_ends: tuple[bool, ...]
    far: tuple[bool, ...]
    """Which segments belong to the other leg, drawn behind and paler."""

    def ends(self, data: Any) -> Float64:
        """(n, 2, 3) the segments' ends in the world, from a state whose kinematics are computed."""
        middle = data.geom_xpos[self.geoms]
        rotation = data.geom_xmat[self.geoms].reshape(-1, 3, 3)
        along = rotation[np.arange(len(self.geoms)), :, self.axis] * self.half_length[:, None]
        return np.stack([middle - along, middle + along], axis=1)


def skeleton(model: Any, camera: Camera, moving: bool) -> Skeleton:
    """The geoms of a model that move, or those that are fixed to the world (but not planes), as segments."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    fixed = model.body_weldid[model.geom_bodyid] == 0
    drawn = (model.geom_type != _GEOM.mjGEOM_PLANE) & (model.geom_rgba[:, 3] > 0)
    geoms = np.flatnonzero(drawn & (~fixed if moving else fixed))
    parts = [_segment(model, data, int(geom), camera) for geom in geoms]
    axis, half_length, radius, round_ends = zip(*parts, strict=True) if parts else ((), (), (), ())
    far = [camera.planar and _is_far(model, data, geoms, place) for place in range(len(geoms))]
    return Skeleton(
        geoms.astype(np.int64),
        np.array(axis, np.int64),
        np.array(half_length, np.float64),
        np.array(radius, np.float64),
        tuple(round_ends),
        tuple(far),
    )


def _is_far(model: Any, data: Any, geoms: Array, place: int) -> bool:
    """Whether an earlier geom lies in the same place at rest but has another colour: the other leg."""
    mine, others = geoms[place], geoms[:place]
    twins = others[np.all(np.isclose(data.geom_xpos[others], data.geom_xpos[mine]), axis=1)]
    return any(not np.array_equal(model.geom_rgba[mine], model.geom_rgba[twin]) for twin in twins)


def _segment(model: Any, data: Any, geom: int, camera: Camera) -> tuple[int, float, float, bool]:
    """(axis, half length of the line, radius, whether its ends are round) of one geom as the camera sees it."""
    kind, size = model.geom_type[geom], model.geom_size[geom]
    if kind == _GEOM.mjGEOM_SPHERE:
        return 2, 0.0, float(size[0]), True
    if kind == _GEOM.mjGEOM_CAPSULE:
        return 2, float(size[1]), float(size[0]), True
    if kind == _GEOM.mjGEOM_CYLINDER:
        extent = np.array([size[0], size[0], size[1]])
    elif kind in (_GEOM.mjGEOM_BOX, _GEOM.mjGEOM_ELLIPSOID):
        extent = np.array(size)
    else:  # meshes and height fields: their bounding box
        extent = np.array(model.geom_aabb[geom][3:])
    away = np.abs(data.geom_xmat[geom].reshape(3, 3).T @ camera.away)
    seen = np.argsort(away + 1e-9 * np.arange(3))[:2]  # the two axes that lie across the view
    if kind == _GEOM.mjGEOM_CYLINDER and 2 not in seen:
        return 2, 0.0, float(size[0]), True
    long, wide = sorted(seen.tolist(), key=lambda i: -extent[i])
    return int(long), float(extent[long]), float(extent[wide]), bool(kind == _GEOM.mjGEOM_ELLIPSOID)


def project(camera: Camera, points: Array) -> Float64:
    """(..., 3) world → (..., 2) picture plane, right and up, in metres."""
    return np.stack([points @ camera.right, points @ camera.up], axis=-1)


def ground_height(model: Any, camera: Camera) -> float | None:
    """Height of the floor in the picture, if a plane is seen from its edge; none where one looks down on it."""
    for geom in np.flatnonzero(model.geom_type == _GEOM.mjGEOM_PLANE):
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        normal = data.geom_xmat[geom].reshape(3, 3)[:, 2]
        if abs(normal @ camera.up) > 0.9:
            return float(data.geom_xpos[geom] @ camera.up)
    return None


def moves_freely(model: Any) -> bool:
    """Whether the robot can leave any fixed picture, so that the camera has to follow it."""
    free = model.jnt_type == _JOINT.mjJNT_FREE
    slides = (model.jnt_type == _JOINT.mjJNT_SLIDE) & (model.jnt_limited == 0)
    # Only the root moves a robot as a whole: a sliding target does not.
    root = model.jnt_bodyid == (model.jnt_bodyid[0] if model.njnt else 0)
    return bool(np.any((free | slides) & root))


FRAME_RATE = 25.0
"""Frames per second at most; tasks with longer steps have one frame per step."""


@dataclass(frozen=True)
class Robot:
    """A task's MuJoCo environment and how to draw it."""

    task: Task
    env: Any

    @staticmethod
    def of(task: Task) -> "Robot":
        """The task's robot; what MuJoCo does not simulate has none."""
        env = make(task)
        if not has_model(env):
            env.close()
            raise EvergaitError(
                f"task {task.name!r}: {task.id} is not a MuJoCo environment, so its gait cannot be drawn"
            )
        apply_to_environment(task.variant, env)
        return Robot(task, env)

    @property
    def model(self) -> Any:
        """The compiled model."""
        return self.env.unwrapped.model

    @cached_property
    def steps_per_frame(self) -> int:
        """Environment steps between two frames."""
        return max(1, round(1 / (FRAME_RATE * float(self.env.unwrapped.dt))))

    @property
    def frame_rate(self) -> float:
        """Frames per second of the robot's own time."""
        return float(1 / (self.steps_per_frame * self.env.unwrapped.dt))

    @cached_property
    def camera(self) -> Camera:
        """Where it is seen from."""
        return camera_for(self.model)

    @cached_property
    def skeleton(self) -> Skeleton:
        """Its moving parts."""
        return skeleton(self.model, self.camera, moving=True)

    @cached_property
    def bounds(self) -> Float64:
        """(2, 2): lower left and upper right corner of the picture before the camera moves, in metres."""
        data = self._at_rest()
        corners = []
        for part in (self.skeleton, skeleton(self.model, self.camera, moving=False)):
            ends, radius = project(self.camera, part.ends(data)), part.radius[:, None, None]
            corners += [(ends - radius).reshape(-1, 2), (ends + radius).reshape(-1, 2)]
        points = np.concatenate(corners)
        low, high = points.min(axis=0), points.max(axis=0)
        if self._floor:
            low[1] = min(low[1], self._floor[0])
        margin = 0.16 * max(high - low)
        return np.stack([low - margin, high + margin])

    @property
    def quantum(self) -> float:
        """Metres per unit of recorded positions: below a pixel in any picture that we draw."""
        return round(float(np.max(self.bounds[1] - self.bounds[0])) / 2500, 8)

    @property
    def ground(self) -> float | None:
        """Height up to which the picture shows floor, if there is one near the robot that is not seen from above."""
        return self._floor[1] if self._floor else None

    @cached_property
    def _floor(self) -> tuple[float, float] | None:
        """Heights in the picture of the floor's near and far edge; seen obliquely, it goes on behind the robot."""
        height = ground_height(self.model, self.camera)
        ends = project(self.camera, self.skeleton.ends(self._at_rest()))
        if height is None or float(ends[..., 1].min()) - height > 1.0:
            return None
        depth = 0.0 if self.camera.planar else float(np.sin(ELEVATION)) * float(np.ptp(ends[..., 0]))
        return height - depth / 2, height + depth / 2

    def at_drawing(self) -> Any:
        """The state in which the model was drawn, where all joint angles are zero."""
        data = mujoco.MjData(self.model)
        mujoco.mj_kinematics(self.model, data)
        return data

    def _at_rest(self) -> Any:
        data = mujoco.MjData(self.model)
        data.qpos[:] = getattr(self.env.unwrapped, "init_qpos", self.model.qpos0)
        mujoco.mj_kinematics(self.model, data)
        return data

    @cached_property
    def _shadow(self) -> Any:
        return mujoco.MjData(self.model)

    def now(self) -> Any:
        """Its state with up-to-date kinematics; the environment's own data lag behind by one substep."""
        self._shadow.qpos[:] = self.env.unwrapped.data.qpos
        mujoco.mj_kinematics(self.model, self._shadow)
        return self._shadow

    def pose(self) -> Int64:
        """(n_parts · 4 or 5,) ends of every part now, in quanta: x, y, x, y and, without a plane, the distance away."""
        ends = self.skeleton.ends(self.now())
        channels = project(self.camera, ends).reshape(len(ends), 4)
        if not self.camera.planar:
            channels = np.concatenate([channels, ends.mean(axis=1) @ self.camera.away[:, None]], axis=1)
        return np.rint(channels / self.quantum).astype(np.int64).ravel()

    def describe(self) -> dict[str, Any]:
        """Plain data for the player."""
        scenery, rest = skeleton(self.model, self.camera, moving=False), self._at_rest()
        ends = np.round(project(self.camera, scenery.ends(rest)).reshape(-1, 4), 4)
        parts = self.skeleton
        return {
            "task": self.task.name,
            "planar": self.camera.planar,
            "follow": moves_freely(self.model),
            "ground": None if self.ground is None else round(self.ground, 4),
            "bounds": np.round(self.bounds, 4).tolist(),
            "quantum": self.quantum,
            "frameRate": round(self.frame_rate, 4),
            "radius": np.round(parts.radius, 4).tolist(),
            "round": [int(end) for end in parts.round_ends],
            "far": [int(far) for far in parts.far],
            "scenery": [
                {"ends": line, "radius": round(float(radius), 4)}
                for line, radius in zip(ends.tolist(), scenery.radius, strict=True)
            ],
        }

    def close(self) -> None:
        """Give back the environment."""
        self.env.close()
