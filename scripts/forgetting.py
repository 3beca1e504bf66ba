"""Draw docs/images/forgetting.gif, the README's first picture, from the policies that ship with the package.

A walker that walks; the same after it has learnt to swim; the same with what keeps it. Each panel is the evaluation
episode with the median return, played in plain Gymnasium.

    python scripts/forgetting.py [--output FILE]
"""

import argparse
import io
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from evergait.live.lab import SAMPLE
from evergait.report.gait import moments, recorder
from evergait.report.video import INK, PAPER, frames
from evergait.studies.folder import load_results

TASK = "Walker2d-v5"
OUTPUT = Path(__file__).parents[1] / "docs/images/forgetting.gif"
SECONDS, EVERY, WIDTH, CROP, STRIP = 4.4, 2, 250, 0.62, 34
"""Length; every n-th frame; width of a panel, the share of the picture's width that it shows, height of its title."""
TOP = 40
"""Pixels of the picture that hold its own words, which do not fit here."""
BREATH = 1200
"""Milliseconds that the last frame stays."""


def panels() -> Iterator[tuple[str, list[Image.Image]]]:
    """A title and pictures each."""
    results = load_results(SAMPLE)
    runs = {entry.condition: entry.run for entry in results.entries}
    wanted = (
        ("walking, just learnt", "naive", 0),
        ("after learning to swim", "naive", 1),
        ("the same, distilled", "distill", 1),
    )
    with closing(recorder(TASK, None)) as one:
        robot = one.robot.describe()
        for colour, (title, condition, stage) in enumerate(wanted):
            moment = next(m for m in moments(runs[condition]) if m.is_end and m.stage == stage)
            mean = moment.record(runs[condition]).mean(TASK)
            pictures = list(frames(robot, one.record(runs[condition], moment), colour))
            yield f"{title}: {mean:,.0f}", [_cropped(picture) for picture in pictures]


def _cropped(picture: Image.Image) -> Image.Image:
    width, height = picture.size
    left = round(width * (1 - CROP) / 2)
    cut = picture.crop((left, TOP, width - left, height))
    return cut.resize((WIDTH, round(WIDTH * cut.height / cut.width)), Image.Resampling.LANCZOS)


def draw() -> bytes:
    """The whole GIF; what has fallen stays where it lies."""
    found = list(panels())
    font, height = ImageFont.load_default(size=14), found[0][1][0].height
    n_frames, sheets = round(SECONDS * 25), []
    for number in range(0, n_frames, EVERY):
        sheet = Image.new("RGB", (WIDTH * len(found), height + STRIP), PAPER)
        pen = ImageDraw.Draw(sheet)
        for place, (title, pictures) in enumerate(found):
            sheet.paste(pictures[min(number, len(pictures) - 1)], (place * WIDTH, STRIP))
            pen.text((place * WIDTH + 12, 10), title, INK, font)
        sheets.append(sheet)
    palette = sheets[len(sheets) // 2].quantize(64)
    packed = [sheet.quantize(palette=palette, dither=Image.Dither.NONE) for sheet in sheets]
    out, durations = io.BytesIO(), [40 * EVERY] * len(packed)
    durations[-1] += BREATH
    packed[0].save(out, "GIF", save_all=True, append_images=packed[1:], duration=durations, loop=0, optimize=True)
    return out.getvalue()


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    output = parser.parse_args().output
    output.write_bytes(draw())
    print(f"{output} ({output.stat().st_size / 1000:.0f} kB)")


if __name__ == "__main__":
    main()
