"""Robots of one's own: the same on every engine, refused by name where they cannot be, and part of the identity."""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from small import tiny_config, tiny_request

import evergait as eg
from evergait.cli import main
from evergait.engines import engine_name, get_engine
from evergait.tasks import Task, spaces
from evergait.training.phases import plan_phases

EXAMPLE = Path(__file__).parents[2] / "examples" / "robot"
UPRIGHT = eg.RobotFile(
    "crawler.xml",
    steps=60,
    hidden=2,
    clip_velocity=True,
    reset_noise=0.05,
    reward=eg.Reward(forward=2.0, control=0.3, healthy=0.7),
    healthy=eg.Healthy(height=(-0.17, 0.5), angle=(-0.08, 0.08), state=(-6.0, 6.0)),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the example's files and a robot that must stay upright."""
    for file in EXAMPLE.iterdir():
        shutil.copy(file, tmp_path)
    UPRIGHT.save(tmp_path / "upright.toml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["crawler.toml", "upright.toml", "upright.toml@gravity=0.5,observation_noise=0.1"])
def test_engines_agree_on_a_robot_of_ones_own(name: str, folder: Path) -> None:
    name = str(folder / name)  # engines know tasks by their names, and every test has another folder
    request = tiny_request(name, n_rows=12, horizon=60, gather_statistics=True)
    planar, mujoco, plain = (get_engine(engine).run(request, 2) for engine in ("planar", "mujoco", "gymnasium"))
    assert engine_name("auto", request.task) == "planar"
    assert np.array_equal(mujoco.returns, plain.returns)
    assert np.array_equal(mujoco.lengths, plain.lengths)
    assert np.array_equal(mujoco.statistics, plain.statistics)
    assert np.array_equal(planar.lengths, plain.lengths)
    np.testing.assert_allclose(planar.returns, plain.returns, rtol=1e-6, atol=1e-8)
    if "upright" in name:
        assert (plain.lengths < 60).any()  # some fall


def test_a_file_written_in_python_is_read_back(folder: Path) -> None:
    task = Task(str(folder / "upright.toml"))
    assert spaces(task).n_steps == 60
    assert spaces(task).n_observations == 4 - 2 + 4


def test_the_model_and_the_rules_are_part_of_a_phases_name(folder: Path) -> None:
    def name(file: str) -> str:
        config = tiny_config(stream=(file,), method=eg.Naive(), engine="auto")
        return str(plan_phases(config)[0].identity["robots"][file])

    names = [name(str(folder / "crawler.toml"))]
    (folder / "b").mkdir()
    xml = (folder / "crawler.xml").read_text()
    (folder / "b/crawler.xml").write_text(xml.replace('gear="10"', 'gear="11"'))
    shutil.copy(folder / "crawler.toml", folder / "b")
    (folder / "c").mkdir()
    (folder / "c/crawler.xml").write_text(xml)
    (folder / "c/crawler.toml").write_text('model = "crawler.xml"\nreward = { forward = 1.0, control = 0.06 }\n')
    (folder / "d").mkdir()
    shutil.copy(folder / "crawler.xml", folder / "d")
    shutil.copy(folder / "crawler.toml", folder / "d")
    names += [name(str(folder / place / "crawler.toml")) for place in "bcd"]
    assert len(set(names)) == 3
    assert names[0] == names[3]
    for i, gear in enumerate(("10", "11")):  # what a model includes is a part of it, too
        (folder / f"e{i}").mkdir()
        (folder / f"e{i}/whole.xml").write_text('<mujoco><include file="crawler.xml"/></mujoco>')
        (folder / f"e{i}/crawler.xml").write_text(xml.replace('gear="10"', f'gear="{gear}"'))
        (folder / f"e{i}/crawler.toml").write_text('model = "whole.xml"\n')
    assert name(str(folder / "e0/crawler.toml")) != name(str(folder / "e1/crawler.toml"))


@pytest.mark.parametrize("where", ["/dev/zero", "../x.stl", "pipe.stl", "link.stl", "&#47;dev/zero", "linked/x.stl"])
def test_a_model_opens_nothing_outside_its_folder(
    where: str, folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x.stl").write_bytes(b"precious")
    os.mkfifo(folder / "pipe.stl")
    (folder / "link.stl").symlink_to(outside / "x.stl")
    (folder / "linked").symlink_to(outside)
    (folder / "zero").write_bytes(b"")
    xml = (folder / "crawler.xml").read_text()
    asset = f'<asset><mesh name="m" file="{where}"/></asset><worldbody>'
    (folder / "crawler.xml").write_text(xml.replace("<worldbody>", asset, 1))
    assert main(["train", "--out", str(folder / "out"), "--stream", str(folder / "crawler.toml")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "it must be a file below" in said or "is missing or not a plain file" in said
    assert not (folder / "out").exists()


def test_a_python_reward_runs_on_gymnasium_and_is_refused_by_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERGAIT_TRUSTED_MODULES", "")
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    (folder / "my_reward.py").write_text("def still(env, action, speed):\n    return -abs(speed) - 1.0\n")
    file = str(folder / "still.toml")
    eg.RobotFile("crawler.xml", steps=20, reward=eg.Reward(function="my_reward:still")).save(file)
    config = tiny_config(stream=(file,), method=eg.Naive(), engine="auto")
    with pytest.raises(eg.EvergaitError, match="would import the Python module 'my_reward'"):
        config.check()
    get_engine("gymnasium").close()  # processes from before do not know this folder
    run = eg.train(config, folder / "run", threads=1)
    assert run.ledger.records[-1].mean(file) < -20
    assert run.phases[0].identity()["engine"] == {file: "gymnasium"}
    for engine in ("planar", "mujoco"):
        assert "its reward is a Python function" in get_engine(engine).refuses(Task(file))
    assert "my_reward" not in sys.modules  # only the environment's own process has it


BAD = [
    ("missing.toml", None, "missing.toml: is missing"),
    ("a.toml", "model = 3", "a.toml: model: is 3; it must be a string"),
    ("b.toml", "steps = 5", "b.toml: config: needs model"),
    ("c.toml", 'model = "no.xml"', "c.toml: model: there is no file"),
    ("d.toml", 'model = "crawler.xml"\nrewards = 1', "rewards: unknown field; did you mean 'reward'?"),
    ("e.toml", 'model = "crawler.xml"\nhealthy = { height = [1.0] }', "healthy.height: is (1.0,); it must be two"),
    ("f.toml", 'model = "crawler.xml"\nhidden = 9', "hidden: is 9; it must be at most 4"),
    ("g.toml", 'model = "bad.xml"', "MuJoCo cannot read bad.xml"),
    ("h.toml", 'model = "free.xml"', "its joints must all be slides and hinges"),
    ("i.toml", 'model = "crawler.xml"\nreward = { function = "x" }', "reward.function: is 'x'; it must be module:name"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD, ids=[name for name, *_ in BAD])
def test_mistakes_are_told_in_a_sentence(
    name: str, text: str | None, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.xml").write_text("<mujoco><worldbody><body><joint/></body></worldbody></mujoco")
    free = '<mujoco><worldbody><body><freejoint/><geom size="1"/></body></worldbody></mujoco>'
    (folder / "free.xml").write_text(free)
    if text is not None:
        (folder / name).write_text(text)
    assert main(["train", "--out", str(folder / "out"), "--stream", str(folder / name)]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (folder / "out").exists()


def test_what_the_planar_engine_cannot_do_goes_to_mujoco(folder: Path) -> None:
    xml = (folder / "crawler.xml").read_text().replace('damping="1"', 'damping="1" frictionloss="0.1"')
    (folder / "crawler.xml").write_text(xml)
    task = Task(str(folder / "crawler.toml"))
    assert "dry joint friction is not supported" in get_engine("planar").refuses(task)
    assert engine_name("auto", task) == "mujoco"
