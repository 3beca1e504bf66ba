"""Films of robots without a plane (Ant, Humanoid) by MuJoCo's own renderer: EGL draws off screen, ffmpeg packs."""

import base64
import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from evergait.analysis.groups import Group
from evergait.core.arrays import Array
from evergait.core.errors import EvergaitError
from evergait.core.files import read_bytes, write_atomically
from evergait.report.catalogue import Catalogue, Starts
from evergait.report.gait import GaitRecorder, Moment, Played, moments, recorder
from evergait.report.robot import AZIMUTH, ELEVATION, Robot, moves_freely
from evergait.report.video import HEIGHT, WIDTH, mp4_file
from evergait.tasks.base import short
from evergait.training.run import Run

SHADOW = 512
"""Fine enough for this size; without a graphics card, MuJoCo's 4096 would take most of the time."""
NO_EGL = (
    "MuJoCo's renderer finds no OpenGL (EGL) on this machine; on Debian or Ubuntu, "
    "`apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri` helps"
)


def film(recorder: GaitRecorder, played: Played, seconds: float = np.inf, quality: int = 5) -> bytes:
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


FORMAT = 1
SECONDS = 6.0
"""Of an episode; `evergait play` films all of it."""
QUALITY = 3
MOST_BYTES = 3_000_000
"""Bytes of films in one page."""


@dataclass(frozen=True)
class Film:
    """A film that a page holds inside."""

    label: str
    source: str
    """A data: address."""


def page_films(catalogue: Catalogue, groups: Sequence[Group], starts: Starts) -> list[Film]:
    """Two films per robot without a plane, of the run that the player opens; what is missing is said in words."""
    found: list[Film] = []
    missing: dict[str, list[str]] = {}
    for task, (_, number) in sorted(starts.items()):
        if catalogue.robots[task]["planar"]:
            continue
        try:
            room = MOST_BYTES - sum(len(one.source) for one in found)
            found += _films(catalogue, groups, task, number, room)
        except EvergaitError as error:
            missing.setdefault(str(error), []).append(short(catalogue.tasks[task]))
    for reason, names in missing.items():
        words = f"{' and '.join(names)}: drawn from lines, seen obliquely; there is no film by MuJoCo, for {reason}."
        catalogue.messages.append(words)
    return found


def _films(catalogue: Catalogue, groups: Sequence[Group], task: int, number: int, room: int) -> list[Film]:
    shelf = catalogue.shelves[number]
    run = next(g for g in groups if (g.condition, g.order) == (shelf["condition"], shelf["order"])).entries[0].run
    films = []
    with closing(recorder(catalogue.tasks[task], catalogue.cache)) as one:
        for shown in catalogue.ends(task, number):
            moment = next(m for m in moments(run) if (m.stage, m.generation) == (shown["stage"], shown["generation"]))
            label = f"{short(catalogue.tasks[task])}, {shelf['condition']}, {shown['label']}"
            content = base64.b64encode(_kept(one, run, moment)).decode()
            films.append(Film(label, f"data:video/mp4;base64,{content}"))
    if sum(len(one.source) for one in films) > room:
        raise EvergaitError(f"all films in this file may weigh {MOST_BYTES / 1e6:.0f} MB; `evergait play` makes one")
    return films


def _kept(one: GaitRecorder, run: Run, moment: Moment) -> bytes:
    """The film from the cache, or made now."""
    played = one.played(run, moment)
    path = (one.cache or Path()) / f"{played.identity}-{FORMAT}.mp4"
    if one.cache and path.is_file():
        return read_bytes(path)
    content = film(one, played, SECONDS, QUALITY)
    if one.cache:
        with contextlib.suppress(OSError):  # a read-only folder only costs time
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
    return content
