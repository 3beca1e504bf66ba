"""Films of robots without a plane (Ant, Humanoid) by MuJoCo's own renderer: EGL draws off screen, ffmpeg packs."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from evergait.core.arrays import Array
from evergait.core.errors import EvergaitError
from evergait.report.gait import Played, Recorder
from evergait.report.geometry import AZIMUTH, ELEVATION, moves_freely
from evergait.report.robot import Robot
from evergait.report.video import HEIGHT, WIDTH, mp4_file

SHADOW = 512
"""Fine enough for this size; without a graphics card, MuJoCo's 4096 would take most of the time."""
NO_EGL = (
    "MuJoCo's renderer finds no OpenGL (EGL) on this machine; on Debian or Ubuntu, "
    "`apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri` helps"
)


def film(recorder: Recorder, played: Played, seconds: float = np.inf, quality: int = 5) -> bytes:
    """An episode, or its first seconds, as an MP4."""
    rate, n_frames = recorder.robot.frame_rate, 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        with _renderer(recorder.robot) as draw, mp4_file(path, rate, quality) as add:

            def frame(total: float) -> None:
                nonlocal n_frames
                if n_frames <= seconds * rate:
                    add(_labelled(draw(), f"{n_frames / rate:.1f} s   return {total:.0f}"))
                n_frames += 1

            recorder.play(played, frame)
        return path.read_bytes()


def _labelled(pixels: Array, words: str) -> Array:
    picture = Image.fromarray(pixels)
    font = ImageFont.load_default(size=14)
    ImageDraw.Draw(picture).text((12, 10), words, "white", font, stroke_width=2, stroke_fill="black")
    return np.asarray(picture)


@contextmanager
def _renderer(robot: Robot) -> Iterator[Callable[[], Array]]:
    """A function that draws the robot as it is now."""
    context, screen, buffer = None, mujoco.MjrRect(0, 0, WIDTH, HEIGHT), robot.model.vis.global_
    try:
        os.environ.setdefault("MUJOCO_GL", "egl")
        from mujoco.egl import GLContext

        context = GLContext(WIDTH, HEIGHT)
        context.make_current()
        buffer.offwidth, buffer.offheight = max(buffer.offwidth, WIDTH), max(buffer.offheight, HEIGHT)
        robot.model.vis.quality.shadowsize = SHADOW
        scene, target = mujoco.MjvScene(robot.model, 1000), mujoco.MjrContext(robot.model, 100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, target)
    except Exception as error:  # of the driver, the loader or MuJoCo: they agree on no class
        if context:
            context.free()
        raise EvergaitError(f"{NO_EGL} ({error})") from error
    pixels, camera, option = np.empty((HEIGHT, WIDTH, 3), np.uint8), _camera(robot), mujoco.MjvOption()
    perturb, everything = mujoco.MjvPerturb(), mujoco.mjtCatBit.mjCAT_ALL

    def draw() -> Array:
        now = robot.now()
        mujoco.mj_comPos(robot.model, now)
        mujoco.mj_camlight(robot.model, now)
        mujoco.mjv_updateScene(robot.model, now, option, perturb, camera, everything, scene)
        mujoco.mjr_render(screen, scene, target)
        mujoco.mjr_readPixels(pixels, None, screen, target)
        return pixels[::-1]  # OpenGL counts rows from below

    try:
        yield draw
    finally:
        target.free()
        context.free()


def _camera(robot: Robot) -> Any:
    """As the player looks at it: obliquely, and along with it if it can walk away."""
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation = 90 + np.degrees(AZIMUTH), -np.degrees(ELEVATION)
    (left, bottom), (right, top) = robot.bounds
    camera.distance = 1.5 * max(right - left, top - bottom)
    if moves_freely(robot.model):
        camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
        camera.trackbodyid = int(robot.model.jnt_bodyid[0])
    else:
        camera.lookat[:] = robot.model.stat.center
    return camera
