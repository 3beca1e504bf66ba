"""Gaits: what is recorded is what was evaluated; geometry agrees with MuJoCo; motion survives its encoding."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from synthetic import make_config, write_run

from evergait.commands.play import play
from evergait.commands.report import write_report
from evergait.core.errors import EvergaitError
from evergait.report import film as films
from evergait.report import video
from evergait.report.film import _renderer
from evergait.report.gait import decode, encode, moments, recorder, typical_episode
from evergait.report.robot import Robot
from evergait.report.video import HEIGHT, WIDTH, motion
from evergait.studies.results import Results
from evergait.tasks import parse_task
from evergait.training.run import Run


@given(arrays(np.int64, st.tuples(st.integers(1, 20), st.integers(1, 4)), elements=st.integers(-(2**40), 2**40)))
def test_motion_survives_its_encoding(values: np.ndarray) -> None:
    assert (decode(encode(values), values.shape[1]) == values).all()


def test_recorded_episode_is_the_median_one_of_the_evaluation(trained: Path, tmp_path: Path) -> None:
    run = Run.load(trained)
    for task in run.ledgers[0].tasks:
        one = recorder(task, tmp_path)
        for moment in moments(run):
            record = moment.record(run)
            gait = one.record(run, moment)
            episode = typical_episode(record, task)
            assert gait["return"] == record.returns[task][episode] == np.sort(record.returns[task])[0]
            assert gait["steps"] == record.lengths[task][episode]
        one.robot.close()


def test_a_robot_that_was_edited_is_recorded_anew(tmp_path: Path) -> None:
    for file in (Path(__file__).parents[2] / "examples" / "robot").iterdir():
        shutil.copy(file, tmp_path)
    model, name = tmp_path / "crawler.xml", str(tmp_path / "crawler.toml")
    write_run(tmp_path / "run", make_config([name]))
    seen = []
    for gear in ("10", "90"):
        model.write_text(model.read_text().replace('gear="10"', f'gear="{gear}"'))
        run = Run.load(tmp_path / "run")
        kept, anew = recorder(name, tmp_path / "gaits"), recorder(name, None)
        seen.append([one.record(run, moments(run)[-1])["motion"] for one in (kept, anew)])
        for one in (kept, anew):
            one.close()
    assert all(ours == right for ours, right in seen)
    assert seen[0] != seen[1]


PLANAR = ["Hopper-v5", "Walker2d-v5", "Swimmer-v5", "HalfCheetah-v5", "InvertedPendulum-v5", "Reacher-v5"]


@pytest.mark.parametrize("name", [*PLANAR, "InvertedDoublePendulum-v5", "Ant-v5", "Humanoid-v5", "Pusher-v5"])
def test_parts_lie_where_mujoco_has_its_geoms(name: str) -> None:
    robot = Robot.of(parse_task(name))
    try:
        robot.env.reset(seed=1)
        robot.env.step(robot.env.action_space.sample() * 0)
        channels = 4 if robot.camera.planar else 5
        assert robot.camera.planar == (name.split("-")[0] not in ("Ant", "Humanoid", "Pusher"))
        ends = robot.pose().reshape(-1, channels)[:, :4].reshape(-1, 2, 2) * robot.quantum
        data = mujoco.MjData(robot.model)
        data.qpos[:] = robot.env.unwrapped.data.qpos
        mujoco.mj_forward(robot.model, data)
        for (start, end), geom in zip(ends, robot.skeleton.geoms, strict=True):
            centre = data.geom_xpos[geom]
            expected = centre @ robot.camera.right, centre @ robot.camera.up
            assert (start + end) / 2 == pytest.approx(expected, abs=robot.quantum)
            if robot.model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE and robot.camera.planar:
                assert np.linalg.norm(end - start) == pytest.approx(
                    2 * robot.model.geom_size[geom, 1], abs=3 * robot.quantum
                )
        assert robot.describe()["follow"] == (
            name.split("-")[0] not in ("InvertedPendulum", "InvertedDoublePendulum", "Reacher", "Pusher")
        )
    finally:
        robot.close()


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("play") / "run"
    write_run(out, make_config(["Walker2d-v5", "InvertedPendulum-v5"]))
    return out


def test_play_writes_a_gif_of_every_frame(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = play(run_folder, "Walker2d-v5", stage=1, output=tmp_path / "new" / "gait.gif")
    one = recorder("Walker2d-v5", run_folder / "gaits")
    run = Run.load(run_folder)
    frames = motion(one.robot.describe(), one.record(run, moments(run)[2]))
    one.robot.close()
    with Image.open(path) as image:
        assert image.size == (video.WIDTH, video.HEIGHT)
        assert image.n_frames == len(frames)  # type: ignore[attr-defined]
        assert len(image.convert("RGB").getcolors(1 << 20)) > 3  # type: ignore[arg-type]  # something is drawn
        image.seek(len(frames) - 1)
        last = image.convert("RGB").tobytes()
    monkeypatch.setattr(video, "MAX_GIF_FRAMES", 3)
    with Image.open(play(run_folder, "Walker2d-v5", stage=1, output=tmp_path / "short.gif")) as image:
        n_frames: int = image.n_frames  # type: ignore[attr-defined]
        assert n_frames <= 4
        image.seek(n_frames - 1)
        assert image.convert("RGB").tobytes() == last  # a film that leaves out frames ends with the same


def test_play_writes_an_mp4_or_names_the_extra(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "imageio_ffmpeg", None)
    with pytest.raises(EvergaitError, match=r"pip install 'evergait\[video\]'"):
        play(run_folder, output=tmp_path / "gait.mp4")
    monkeypatch.undo()
    pytest.importorskip("imageio_ffmpeg", reason="the extra `video` is not installed")
    assert play(run_folder, output=tmp_path / "gait.mp4").read_bytes()[4:8] == b"ftyp"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"output": "gait.avi"}, r"output: is 'gait.avi'; it must be a name that ends in .html, .gif, .mp4"),
        ({"task": "Walker-v5"}, r"task: the run has no task 'Walker-v5'; did you mean 'Walker2d-v5'\?"),
        ({"stage": 3}, r"stage: is 3; it must be from 1 to 2"),
        ({"generation": 5}, r"generation: is 5; it must be one that can be played in stage 2: 6, 12"),
    ],
)
def test_play_says_what_would_be_right(run_folder: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(EvergaitError, match=message):
        play(run_folder, **arguments)


def test_what_mujoco_does_not_simulate_has_no_robot() -> None:
    with pytest.raises(EvergaitError, match="CartPole-v1 is not a MuJoCo environment"):
        Robot.of(parse_task("CartPole-v1"))


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
def filmed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_play_films_every_frame_with_the_robot_in_the_middle(egl: None, filmed_folder: Path, tmp_path: Path) -> None:
    path = play(filmed_folder, "Humanoid-v5", stage=1, output=tmp_path / "gait.mp4")
    run = Run.load(filmed_folder)
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
    egl: None, filmed_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = Results.of_run(filmed_folder)
    first = write_report(results, tmp_path / "first.html").read_text()
    assert first.count('<video src="data:video/mp4;base64,') == 2
    assert "Humanoid, naive, after Humanoid</figcaption>" in first
    monkeypatch.setattr(films, "film", lambda *_: pytest.fail("filmed again"))
    assert write_report(results, tmp_path / "second.html").read_text() == first
    monkeypatch.setattr(films, "MOST_BYTES", 1000)
    text = write_report(results, tmp_path / "third.html").read_text()
    assert "<video" not in text
    assert "`evergait play` makes one" in text


def test_without_egl_the_page_and_the_command_say_what_to_install(
    blind: None, filmed_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EvergaitError, match=r"output: .*apt-get install libegl1 .*; or choose .html or .gif"):
        play(filmed_folder, "Humanoid-v5", output=tmp_path / "gait.mp4")
    assert not (tmp_path / "gait.mp4").exists()
    assert play(filmed_folder, "Humanoid-v5", output=tmp_path / "gait.gif").exists()
    results = Results.of_run(filmed_folder)
    monkeypatch.setattr(films, "FORMAT", "none kept")
    text = write_report(results, tmp_path / "page.html").read_text()
    assert "Humanoid: drawn from lines, seen obliquely; there is no film by MuJoCo" in text
    assert "apt-get install libegl1" in text
