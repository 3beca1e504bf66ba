"""Films of robots without a plane: MuJoCo's renderer, or words about what is missing."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from synthetic import make_config, write_run

from evergait.commands.play import play
from evergait.commands.report import write_report
from evergait.core.errors import EvergaitError
from evergait.report import film as films
from evergait.report.film import _renderer
from evergait.report.gait import moments, recorder
from evergait.report.robot import Robot
from evergait.report.video import HEIGHT, WIDTH, motion
from evergait.studies.results import Results
from evergait.tasks import parse_task
from evergait.training.run import Run

imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="the extra `video` is not installed")


@pytest.fixture(scope="module")
def egl() -> None:
    robot = Robot.of(parse_task("Ant-v5"))
    try:
        with _renderer(robot):
            pass
    except EvergaitError as error:
        pytest.skip(str(error))
    finally:
        robot.close()


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("film") / "run"
    write_run(out, make_config(["Humanoid-v5", "InvertedPendulum-v5"]))
    return out


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without EGL."""
    monkeypatch.setitem(__import__("sys").modules, "mujoco.egl", None)


def pictures(path: Path) -> np.ndarray:
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    pixels = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(pixels, np.uint8).reshape(-1, HEIGHT, WIDTH, 3)


def test_play_films_every_frame_with_the_robot_in_the_middle(egl: None, run_folder: Path, tmp_path: Path) -> None:
    path = play(run_folder, "Humanoid-v5", stage=1, output=tmp_path / "gait.mp4")
    run = Run.load(run_folder)
    one = recorder("Humanoid-v5", None)
    n_frames = len(motion(one.robot.describe(), one.record(run, moments(run)[2])))
    one.close()
    shown = pictures(path).astype(int)
    assert len(shown) == n_frames
    moved = np.abs(shown[-1] - shown[0]).sum(axis=2) > 60
    rows, columns = np.nonzero(moved[60:])  # below the words
    assert len(rows) > 500, "nothing moves"
    assert abs(columns.mean() - WIDTH / 2) < WIDTH / 4


def test_page_has_films_of_robots_without_a_plane_and_keeps_them(
    egl: None, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = Results.of_run(run_folder)
    first = write_report(results, tmp_path / "first.html").read_text()
    assert first.count('<video src="data:video/mp4;base64,') == 2
    assert "Humanoid, naive, after Humanoid</figcaption>" in first
    monkeypatch.setattr(films, "film", lambda *_: pytest.fail("filmed again"))
    assert write_report(results, tmp_path / "second.html").read_text() == first
    monkeypatch.setattr(films, "BUDGET", 1000)
    text = write_report(results, tmp_path / "third.html").read_text()
    assert "<video" not in text
    assert "`evergait play` makes one" in text


def test_without_egl_the_page_and_the_command_say_what_to_install(
    blind: None, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EvergaitError, match=r"output: .*apt-get install libegl1 .*; or choose .html or .gif"):
        play(run_folder, "Humanoid-v5", output=tmp_path / "gait.mp4")
    assert not (tmp_path / "gait.mp4").exists()
    assert play(run_folder, "Humanoid-v5", output=tmp_path / "gait.gif").exists()
    results = Results.of_run(run_folder)
    monkeypatch.setattr(films, "FORMAT", "none kept")
    text = write_report(results, tmp_path / "page.html").read_text()
    assert "Humanoid: drawn from lines, seen obliquely; there is no film by MuJoCo" in text
    assert "apt-get install libegl1" in text
