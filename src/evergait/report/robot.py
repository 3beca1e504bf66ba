"""What does not change while a robot moves: the size of its parts, the scenery, and how much of the world is shown."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mujoco
import numpy as np

from evergait.core.arrays import Float64, Int64
from evergait.core.errors import EvergaitError
from evergait.report.geometry import ELEVATION, camera_for, ground_height, moves_freely, project, skeleton
from evergait.tasks import Task, make
from evergait.tasks.variants import apply_to_environment, has_model

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
    def camera(self) -> Any:
        """Where it is seen from."""
        return camera_for(self.model)

    @cached_property
    def skeleton(self) -> Any:
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
