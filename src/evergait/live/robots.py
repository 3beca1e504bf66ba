"""What a page needs to let a robot live: its compiled model, its task's rules, its resets, and how it is drawn."""

import base64
import zlib
from contextlib import closing
from typing import Any

import numpy as np

from evergait.core.arrays import Array
from evergait.engines.planar.model import Frame
from evergait.engines.planar.robot import Robot as Compiled
from evergait.engines.planar.robot import compile_robot
from evergait.report.robot import Robot, project
from evergait.tasks import Task

RESETS = 8
"""Initial states that are sent along, for robots whose resets only NumPy can draw."""


def encoded(array: Array) -> str:
    """An array's bytes in base64; all machines that we run on are little-endian, and so is WebAssembly."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def live_robot(task: Task) -> dict[str, Any]:
    """Plain data; raises EvergaitError where the planar engine cannot simulate the task."""
    robot = compile_robot(task)
    position, velocity = robot.initial_states(np.arange(RESETS, dtype=np.uint32))
    noise = draws_uniform(robot)
    with closing(Robot.of(task)) as drawn:
        described = drawn.describe()
        dofs, ends = _attached(drawn)
    return {
        **described,
        "name": task.name,
        "index": zlib.crc32(task.name.encode()),
        "description": encoded(robot.model.description),
        "rules": encoded(robot.rules.flat()),
        "dofs": robot.model.n_dofs,
        "limit": robot.n_steps,
        "seconds": float(robot.env.dt),
        "weight": float(robot.env.model.body_mass.sum()),
        "dof": dofs,
        "ends": ends,
        "trainable": noise is not None,
        "resetNoise": noise or 0.0,
        "nominal": encoded(np.concatenate([robot.env.init_qpos, robot.env.init_qvel])),
        "resets": {"position": encoded(position), "velocity": encoded(velocity)},
    }


def draws_uniform(robot: Compiled) -> float | None:
    """The range of a reset that draws uniform numbers for positions, then velocities; none if it draws otherwise."""
    noise = float(getattr(robot.env, "_reset_noise_scale", np.nan))
    seeds = np.array([0, 1, 2**32 - 1], np.uint32)
    position, velocity = robot.initial_states(seeds)
    for row, seed in enumerate(seeds.tolist()):
        random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        for nominal, found in ((robot.env.init_qpos, position[row]), (robot.env.init_qvel, velocity[row])):
            if not np.array_equal(nominal + random.uniform(-noise, noise, len(nominal)), found):
                return None
    return noise


def _attached(robot: Robot) -> tuple[list[int], list[list[float]]]:
    """Every drawn part: the joint that carries it, and its ends from that joint's anchor at the model's own pose."""
    data = robot.at_drawing()
    frame = Frame(robot.model, data)
    dofs, ends = [], []
    for geom, pair in zip(robot.skeleton.geoms, project(robot.camera, robot.skeleton.ends(data)), strict=True):
        dof, anchor = frame.carrier(int(robot.model.geom_bodyid[geom]))
        dofs.append(dof)
        ends.append(np.round(pair - anchor, 5).ravel().tolist())
    return dofs, ends
