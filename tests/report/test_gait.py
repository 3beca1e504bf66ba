"""Gaits: what is recorded is what was evaluated; geometry agrees with MuJoCo; motion survives its encoding."""

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
from evergait.core.errors import EvergaitError
from evergait.report import video
from evergait.report.gait import decode, encode, moments, recorder, typical_episode
from evergait.report.robot import Robot
from evergait.report.video import motion
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


def test_play_writes_a_gif_of_every_frame(run_folder: Path, tmp_path: Path) -> None:
    path = play(run_folder, "Walker2d-v5", stage=1, output=tmp_path / "new" / "gait.gif")
    one = recorder("Walker2d-v5", run_folder / "gaits")
    run = Run.load(run_folder)
    frames = motion(one.robot.describe(), one.record(run, moments(run)[2]))
    one.robot.close()
    with Image.open(path) as image:
        assert image.size == (video.WIDTH, video.HEIGHT)
        assert image.n_frames == len(frames)  # type: ignore[attr-defined]
        assert len(image.convert("RGB").getcolors(1 << 20)) > 3  # type: ignore[arg-type]  # something is drawn


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
        ({"generation": 5}, r"generation: is 5; it must be one whose policy was kept in stage 2: 6, 12"),
    ],
)
def test_play_says_what_would_be_right(run_folder: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(EvergaitError, match=message):
        play(run_folder, **arguments)


def test_what_mujoco_does_not_simulate_has_no_robot() -> None:
    with pytest.raises(EvergaitError, match="CartPole-v1 is not a MuJoCo environment"):
        Robot.of(parse_task("CartPole-v1"))
