"""One gait as a still, a GIF or an MP4, drawn from the same thick lines as on the page: no GL, no display."""

import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from PIL import Image, ImageDraw, ImageFont

from evergait.core.arrays import Array, Float64
from evergait.core.errors import EvergaitError
from evergait.report.gait import decode

N_POSES = 9
COLOURS = ("#0072b2", "#d55e00", "#008a64", "#b5578f", "#9a6a00", "#2f7fb0", "#33373d")
"""Of pictures, by task; the same as in assets/page.css, light."""


def motion(robot: dict[str, Any], gait: dict[str, Any]) -> Float64:
    """(n_frames, n_parts, 4 or 5): both ends of every part in metres and, without a plane, the distance away."""
    n_parts, n_channels = len(robot["radius"]), 4 if robot["planar"] else 5
    values: Float64 = decode(gait["motion"], n_parts * n_channels) * robot["quantum"]
    return values.reshape(-1, n_parts, n_channels)


def strobe(robot: dict[str, Any], gait: dict[str, Any], colour: int, label: str) -> Markup:
    """An inline SVG of some poses of a gait."""
    frames = motion(robot, gait)[..., :4]
    chosen = frames[np.unique(np.linspace(0, len(frames) - 1, N_POSES).round().astype(int))]
    radius = np.array(robot["radius"])
    ends = chosen.reshape(len(chosen), -1, 2, 2)
    low = ends.min(axis=(0, 1, 2)) - radius.max() * 1.5
    high = ends.max(axis=(0, 1, 2)) + radius.max() * 1.5
    if robot["ground"] is not None:
        low[1] = min(low[1], robot["ground"] - radius.max())
    width, height = high - low
    lines = []
    for i, pose in enumerate(chosen):
        opacity = 0.25 + 0.75 * (i + 1) / len(chosen)
        parts = (
            f'<path d="M{_n(x1 - low[0])} {_n(high[1] - y1)}L{_n(x2 - low[0])} {_n(high[1] - y2)}" '
            f'stroke-width="{_n(2 * r)}"/>'
            for (x1, y1, x2, y2), r in zip(pose, radius, strict=True)
        )
        lines.append(f'<g opacity="{opacity:.2f}">{"".join(parts)}</g>')
    if robot["ground"] is not None:
        y = _n(high[1] - robot["ground"])
        lines.append(f'<path d="M0 {y}H{_n(width)}" stroke="currentColor" stroke-width="{_n(height / 150)}"/>')
    body = "".join(lines)
    return Markup(  # noqa: S704 - numbers of ours, and an escaped label
        f'<svg class="strobe" viewBox="0 0 {_n(width)} {_n(height)}" role="img" aria-label="{escape(label)}" '
        f'fill="none" stroke="{COLOURS[colour % len(COLOURS)]}" stroke-linecap="round">{body}</svg>'
    )


def _n(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


WIDTH, HEIGHT = 640, 400  # even, as H.264 wants
FINER = 2
"""Pictures are drawn this much larger and scaled down, which smooths edges."""
PAPER, GROUND, LINE, INK = "#f3f1ec", "#e6e2d9", "#8d8a83", "#1b1e22"
MAX_GIF_FRAMES = 400
"""Longer gaits skip frames, not time."""


def frames(robot: dict[str, Any], gait: dict[str, Any], colour: int = 0) -> Iterator[Image.Image]:
    """Every frame as a picture."""
    poses = motion(robot, gait)
    scores = decode(gait["score"], 1)[:, 0] / 10
    middle = poses[:, 0, :4].reshape(-1, 2, 2).mean(axis=1)
    reach = max(1, round(robot["frameRate"] / 4))
    kernel = np.ones(2 * reach + 1) / (2 * reach + 1)
    whole = poses[..., :4].reshape(len(poses), -1, 2).mean(axis=1)
    calm = np.stack([np.convolve(np.pad(axis, reach, mode="edge"), kernel, "valid") for axis in whole.T], axis=1)
    for number, pose in enumerate(poses):
        seconds = min(number / robot["frameRate"], gait["seconds"])
        way = f"   {middle[number, 0] - middle[0, 0]:.1f} m" if robot["planar"] else ""  # seen obliquely, it is shorter
        text = f"{seconds:.1f} s{way}   return {scores[number]:.0f}"
        if number == len(poses) - 1 and gait["ended"] == "terminated":
            text += "   ended early"
        yield _picture(robot, pose, calm[number], COLOURS[colour % len(COLOURS)], text)


def _picture(robot: dict[str, Any], pose: Float64, centre: Float64, colour: str, text: str) -> Image.Image:
    width, height = WIDTH * FINER, HEIGHT * FINER
    image = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(image)
    (left, bottom), (right, top) = robot["bounds"]
    scale = min(width / (right - left), height / (top - bottom))
    from_above = robot["follow"] and robot["ground"] is None
    x0 = centre[0] if robot["follow"] else (left + right) / 2
    y0 = centre[1] if from_above else (top + bottom) / 2

    def place(x: float, y: float) -> tuple[float, float]:
        return width / 2 + (x - x0) * scale, height / 2 - (y - y0) * scale

    font = ImageFont.load_default(size=12 * FINER)
    if robot["ground"] is not None:
        y = place(0, robot["ground"])[1]
        draw.rectangle((0, y, width, height), GROUND)
        draw.line((0, y, width, y), LINE, FINER)
    if robot["follow"] and robot["planar"]:
        reach = width / scale / 2
        for metre in range(int(np.ceil(x0 - reach)), int(np.floor(x0 + reach)) + 1):
            x, y = place(metre, robot["ground"] if robot["ground"] is not None else 0.0)
            y = height if from_above else y + 6 * FINER
            draw.line((x, 0 if from_above else y - 6 * FINER, x, y), GROUND if from_above else LINE, FINER)
            draw.text((x, height - 18 * FINER), f"{metre} m", LINE, font, anchor="ma")
    for line in robot["scenery"]:
        _thick(draw, place, line["ends"], line["radius"] * scale, True, LINE)
    for part in _back_to_front(robot, pose):
        radius, rounded = robot["radius"][part], bool(robot["round"][part])
        shade = _paler(colour) if robot["planar"] and robot["far"][part] else colour
        _thick(draw, place, pose[part, :4], radius * scale + 1.5 * FINER, rounded, PAPER)
        _thick(draw, place, pose[part, :4], radius * scale, rounded, shade)
    draw.text((12 * FINER, 10 * FINER), text, INK, ImageFont.load_default(size=14 * FINER))
    return image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def _back_to_front(robot: dict[str, Any], pose: Float64) -> list[int]:
    key = [-far for far in robot["far"]] if robot["planar"] else (-pose[:, 4]).tolist()
    return sorted(range(len(pose)), key=lambda part: key[part])


def _thick(draw: Any, place: Any, ends: Any, radius: float, rounded: bool, colour: str) -> None:
    (x1, y1), (x2, y2) = place(ends[0], ends[1]), place(ends[2], ends[3])
    length = float(np.hypot(x2 - x1, y2 - y1))
    if length > 0:
        across = np.array([y1 - y2, x2 - x1]) * (radius / length)
        a, b = np.array([x1, y1]), np.array([x2, y2])
        draw.polygon([tuple(point) for point in (a + across, b + across, b - across, a - across)], colour)
    if rounded or length == 0:
        for x, y in ((x1, y1), (x2, y2)):
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), colour)


def _paler(colour: str) -> str:
    parts = [(int(colour[i : i + 2], 16), int(PAPER[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(0.55 * near + 0.45 * paper):02x}" for near, paper in parts)


def to_gif(robot: dict[str, Any], gait: dict[str, Any], colour: int) -> bytes:
    """An endless GIF with a breath at the end."""
    pictures = list(frames(robot, gait, colour))
    step = -(-len(pictures) // MAX_GIF_FRAMES)
    shown = pictures[:-1:step] + pictures[-1:]  # which has the whole return
    # One palette for all frames: without it every frame would carry its own, and colours would flicker.
    palette = shown[0].quantize(64)
    shown = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in shown]
    durations = [round(100 * step / robot["frameRate"]) * 10] * len(shown)
    durations[-1] += 1000
    out = io.BytesIO()
    shown[0].save(out, "GIF", save_all=True, append_images=shown[1:], duration=durations, loop=0, optimize=False)
    return out.getvalue()


def to_mp4(robot: dict[str, Any], gait: dict[str, Any], colour: int) -> bytes:
    """All frames as an MP4."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gait.mp4"
        with mp4_file(path, robot["frameRate"]) as add:
            for picture in frames(robot, gait, colour):
                add(np.asarray(picture))
        return path.read_bytes()


@contextmanager
def mp4_file(path: Path, frame_rate: float, quality: int = 5) -> Iterator[Callable[[Array], None]]:
    """An H.264 file for any player: a function that adds one picture to it. Quality goes from 0 to 10."""
    try:
        import imageio_ffmpeg

        imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError) as error:
        raise EvergaitError(
            "an MP4 needs ffmpeg, which is not installed; `pip install 'evergait[video]'` brings it"
        ) from error
    size = WIDTH, HEIGHT
    writer = imageio_ffmpeg.write_frames(str(path), size, fps=frame_rate, quality=quality, macro_block_size=2)
    writer.send(None)
    try:
        yield lambda picture: writer.send(np.ascontiguousarray(picture))
    finally:
        writer.close()
