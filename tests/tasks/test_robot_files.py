"""Robots of one's own: the same on every engine, refused by name where they cannot be, and part of the identity."""

import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from small import tiny_config, tiny_request

import evergait as eg
from evergait.cli import main
from evergait.engines import engine_name, get_engine
from evergait.policy import Policy, PolicyConfig
from evergait.tasks import Task, parse_task, refusal, robot_file, spaces
from evergait.training.observer import Observer, Position
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


@pytest.mark.parametrize("n", [7, 8, 11, 16])
def test_the_cost_of_many_motors_is_gymnasiums_to_the_bit(n: int, tmp_path: Path) -> None:
    link = '<body pos=".3 0 0"><joint name="j{0}" axis="0 1 0"/><geom size=".02" mass="1" contype="0"/>'
    links = "".join(link.format(i) for i in range(n)) + "</body>" * n
    motors = "".join(f'<motor joint="j{i}" ctrlrange="-1 1"/>' for i in range(n))
    (tmp_path / "chain.xml").write_text(f"<mujoco><worldbody>{links}</worldbody><actuator>{motors}</actuator></mujoco>")
    eg.RobotFile("chain.xml", reward=eg.Reward(forward=0.0, control=0.1)).save(tmp_path / "chain.toml")
    request = tiny_request(str(tmp_path / "chain.toml"), n_rows=64, horizon=1)
    ours, plain = (get_engine(engine).run(request, 1).returns for engine in ("planar", "gymnasium"))
    np.testing.assert_array_equal(ours, plain)


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


def edit(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


EDITS = [("crawler.xml", 'gear="10"', 'gear="19"'), ("upright.toml", "forward = 2.0", "forward = 3.0")]


@pytest.mark.parametrize("change", EDITS, ids=["model", "rules"])
def test_an_edited_robot_is_another_one_in_the_same_process(change: tuple[str, str, str], folder: Path) -> None:
    name, (file, *words) = str(folder / "upright.toml"), change

    def seen() -> tuple[str, tuple[float, ...]]:
        config = tiny_config(stream=(name,), method=eg.Naive(), engine="auto")
        request = tiny_request(name, n_rows=4)
        planar, mujoco = (get_engine(engine).run(request, 1).returns for engine in ("planar", "mujoco"))
        np.testing.assert_allclose(planar, mujoco, rtol=1e-6, atol=1e-8)  # both simulate what is in the file
        return plan_phases(config)[0].name, tuple(planar)

    before = seen()
    edit(folder / file, *words)
    between = seen()
    assert all(one != other for one, other in zip(before, between, strict=True))
    edit(folder / file, *reversed(words))
    assert seen() == before


def test_an_edited_robot_has_other_spaces_and_another_engine(folder: Path) -> None:
    task = Task(str(folder / "crawler.toml"))
    assert (spaces(task).n_steps, engine_name("auto", task)) == (1000, "planar")
    edit(folder / "crawler.xml", 'damping="1"', 'damping="1" frictionloss="0.1"')
    edit(folder / "crawler.toml", 'model = "crawler.xml"', 'model = "crawler.xml"\nsteps = 7')
    assert (spaces(task).n_steps, engine_name("auto", task)) == (7, "mujoco")


def test_a_path_means_the_file_of_the_folder_that_one_is_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("crawler.toml")
    assert spaces(task).n_steps == 1000
    shutil.copytree(folder, folder / "other")
    monkeypatch.chdir(folder / "other")
    edit(Path("crawler.toml"), "model", "steps = 7\nmodel")
    assert spaces(task).n_steps == 7


def test_robots_files_are_read_again_only_if_they_look_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, reads = Task(str(folder / "crawler.toml")), list[Task]()
    read = robot_file.read_robot

    def counted(task: Task) -> eg.RobotFile:
        reads.append(task)
        return read(task)

    monkeypatch.setattr(robot_file, "read_robot", counted)
    right = {robot_file.robot_digest(task) for _ in range(3)}
    assert len(reads) == 3  # files this young may change within a tick of the clock
    monkeypatch.setattr(robot_file, "SETTLED", 0)
    right.add(robot_file.robot_digest(task))
    reads.clear()
    right.add(robot_file.robot_digest(task))
    assert not reads
    assert len(right) == 1
    time.sleep(0.05)
    edit(folder / "crawler.xml", 'gear="10"', 'gear="19"')  # as many bytes
    os.utime(folder / "crawler.xml", ns=(0, 0))
    assert robot_file.robot_digest(task) not in right
    (folder / "crawler.xml").unlink()
    with pytest.raises(eg.EvergaitError, match="there is no file"):
        robot_file.robot_digest(task)


def test_a_layout_is_of_one_robot(folder: Path) -> None:
    task = Task(str(folder / "crawler.toml"))
    policy = Policy.build(PolicyConfig(), [task])
    path, active = policy.path(task), policy.active(task)
    xml = (folder / "crawler.xml").read_text()
    edit(folder / "crawler.xml", "</actuator>", '<motor joint="pitch" ctrlrange="-1 1"/></actuator>')
    assert (policy.path(task), policy.active(task)) == (path, active)
    with pytest.raises(eg.EvergaitError, match="has been edited since this policy was laid out for it; put it back"):
        policy.network(task)
    assert Policy.build(PolicyConfig(), [task]).network(task).n_actions == 2
    (folder / "crawler.xml").write_text(xml)
    assert policy.network(task).n_actions == 1


@pytest.mark.parametrize("engine", ["planar", "mujoco"])
def test_a_robot_that_is_edited_while_it_trains_ends_the_training(engine: str, folder: Path) -> None:
    class Edits(Observer):
        def generation_done(self, at: Position, seen: object) -> None:
            edit(folder / "upright.toml", "forward = ", "forward = 1")

    config = tiny_config(stream=(str(folder / "upright.toml"),), method=eg.Naive(), engine=engine, generations=3)
    with pytest.raises(eg.EvergaitError, match=r"upright.toml': its file, or one of its model, has been edited"):
        eg.train(config, folder / "run", threads=1, observers=[Edits()])
    assert all('"done"' not in file.read_text() for file in folder.rglob("progress.json"))


WAYS_OUT = ["/dev/zero", "../x.stl", "pipe.stl", "link.stl", "&#47;dev/zero", "linked/x.stl", "linked/decoy.stl"]
WAYS_OUT += ["'/../../x.stl", "..\\x.stl", "x" * 5000]


@pytest.mark.parametrize("blank", ["", 5000 * " "], ids=["", "blank"])
@pytest.mark.parametrize("where", WAYS_OUT, ids=[where[:20] for where in WAYS_OUT])
def test_a_model_opens_nothing_outside_its_folder(
    where: str, blank: str, folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x.stl").write_bytes(b"precious")
    os.mkfifo(folder / "pipe.stl")
    (folder / "link.stl").symlink_to(outside / "x.stl")
    (folder / "linked").symlink_to(outside)
    for decoy in ("zero", "decoy.stl"):  # files of the same name that may be opened
        (folder / decoy).write_bytes(b"")
    xml = (folder / "crawler.xml").read_text()
    asset = f'<asset><mesh name="m" file="{where}"/></asset><worldbody>'
    (folder / "crawler.xml").write_text(blank + xml.replace("<worldbody>", asset, 1))
    assert main(["train", "--out", str(folder / "out"), "--stream", str(folder / "crawler.toml")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "it must be a file below" in said or "is missing or not a plain file" in said
    assert not (folder / "out").exists()


DECOYS = [
    '<asset>x="<mesh name="m" file="../x.stl"/></asset>',
    """<asset><mesh name=">" file='../x.stl'/></asset>""",
    """<asset>< mesh name='"'file\n="../x.stl"/></asset>""",
    '<![CDATA[ <!-- ]]><asset><mesh name="m" file="../x.stl"/></asset><!-- -->',
]


@pytest.mark.parametrize("markup", DECOYS)
def test_a_model_is_read_as_mujoco_reads_it(markup: str, folder: Path) -> None:
    edit(folder / "crawler.xml", "<worldbody>", f"{markup}<worldbody>")
    with pytest.raises(eg.EvergaitError, match=r"names '\.\./x\.stl'; it must be a file below"):
        spaces(Task(str(folder / "crawler.toml")))


MESH = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
HARMLESS = {
    "comment": '<!-- ---- was: file="old.stl" ---- -->',
    "brackets": '<asset><mesh name="m" file="leg[1].obj"/></asset>',
    "quote": """<asset><mesh name="m" file="it's.obj"/></asset>""",
    "folder": '<compiler meshdir="."/><asset><mesh name="m" file="meshes/leg.obj"/></asset>',
    "light": '<worldbody><light dir="0 0 -1" pos="0 0 3"/></worldbody>',
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_model_may_have_what_leads_nowhere_else(name: str, folder: Path) -> None:
    (folder / "meshes").mkdir()
    for mesh in ("leg[1].obj", "it's.obj", "meshes/leg.obj"):
        (folder / mesh).write_text(MESH)
    edit(folder / "crawler.xml", "<worldbody>", f"{HARMLESS[name]}<worldbody>")
    assert spaces(Task(str(folder / "crawler.toml"))).n_actions == 1


def test_a_robots_digest_stays_what_it_was(folder: Path) -> None:
    assert robot_file.robot_digest(Task("crawler.toml")) == "5d3c7d4f70a9a85f90bbbea9"
    for name in "ab":
        (folder / f"{name}.obj").write_text(MESH + f"# {name}")
    named = '<!-- <mesh file="b.obj"/> --><asset><mesh name="a" file="a.obj"/><mesh name="b" file="b.obj"/></asset>'
    edit(folder / "crawler.xml", "<worldbody>", f"{named}<worldbody>")
    assert robot_file.robot_digest(Task("crawler.toml")) == "953e55dfbac0763a3ac3f32e"


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
    ("l.toml", 'model = "idle.xml"', "actuator 'hip motor': its ctrlrange is 0 0, so it would never move; give it"),
    ("j.toml", 'model = "crawler.xml"\nsteps = 0', "j.toml: steps: is 0; it must be at least 1"),
    ("k.toml", 'model = "crawler.xml"\nsteps = 3000000000', "steps: is 3000000000; it must be at most 2,147,483,647"),
    ("m.toml", 'model = "crawler.xml"\nreset_noise = 1e308', "reset_noise: is 1e+308; it must be from 0 to 1e+06"),
    ("i.toml", 'model = "crawler.xml"\nreward = { function = "x" }', "reward.function: is 'x'; it must be module:name"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD, ids=[name for name, *_ in BAD])
def test_mistakes_are_told_in_a_sentence(
    name: str, text: str | None, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.xml").write_text("<mujoco><worldbody><body><joint/></body></worldbody></mujoco")
    free = '<mujoco><worldbody><body><freejoint/><geom size="1"/></body></worldbody></mujoco>'
    (folder / "free.xml").write_text(free)
    xml = (folder / "crawler.xml").read_text()
    idle = '<actuator><motor name="hip motor" joint="hip"/></actuator></mujoco>'
    (folder / "idle.xml").write_text(xml[: xml.index("<actuator>")] + idle)
    if text is not None:
        (folder / name).write_text(text)
    assert main(["train", "--out", str(folder / "out"), "--stream", str(folder / name)]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (folder / "out").exists()


def test_noise_beyond_all_numbers_is_refused_in_a_variant_too(folder: Path) -> None:
    eg.RobotFile("crawler.xml", reset_noise=1e6).save(folder / "wild.toml")
    assert "reset_noise is 1e+305; its noise must be finite" in refusal(parse_task("wild.toml@reset_noise=1e305"))


def test_a_folder_may_have_an_at_in_its_name(folder: Path) -> None:
    shutil.copytree(EXAMPLE, folder / "lab@home")
    for name, gravity in (("lab@home/crawler.toml", 1.0), ("lab@home/crawler.toml@gravity=0.5", 0.5)):
        task = parse_task(name)
        assert (task.id, task.variant.gravity, task.name) == ("lab@home/crawler.toml", gravity, name)
        assert spaces(task).n_actions == 1


def test_what_the_planar_engine_cannot_do_goes_to_mujoco(folder: Path) -> None:
    xml = (folder / "crawler.xml").read_text().replace('damping="1"', 'damping="1" frictionloss="0.1"')
    (folder / "crawler.xml").write_text(xml)
    task = Task(str(folder / "crawler.toml"))
    assert "dry joint friction is not supported" in get_engine("planar").refuses(task)
    assert engine_name("auto", task) == "mujoco"


def test_the_longest_episodes_are_simulated(folder: Path) -> None:
    name = str(folder / "long.toml")
    eg.RobotFile("crawler.xml", steps=robot_file.LONGEST).save(name)
    for engine in ("planar", "mujoco"):
        assert get_engine(engine).run(tiny_request(name, n_rows=2, horizon=5), 1).lengths.tolist() == [5, 5]


def strengthen(folder: Path) -> None:
    file = folder / "crawler.xml"
    file.write_text(file.read_text().replace('gear="1', 'gear="11'))


def test_processes_of_the_gymnasium_engine_notice_an_edit(folder: Path) -> None:
    name, seen = str(folder / "crawler.toml"), []
    for _ in range(2):
        request = tiny_request(name, n_rows=4, horizon=30)
        theirs, ours = (get_engine(engine).run(request, 1).returns for engine in ("mujoco", "gymnasium"))
        assert np.array_equal(theirs, ours)
        seen.append(ours)
        strengthen(folder)
    assert not np.array_equal(seen[0], seen[1])


class Strengthens(Observer):
    """Edits the robot between two phases."""

    def phase_done(self, at: Position) -> None:
        strengthen(Path())


def test_a_robot_that_is_edited_between_phases_is_stored_under_no_others_name(folder: Path) -> None:
    stream = (str(folder / "crawler.toml"), "InvertedPendulum-v5")
    config = tiny_config(stream=stream, method=eg.Naive(), engine="planar", horizon=20, generations=2)
    with pytest.raises(eg.EvergaitError, match="has been edited since this training was planned"):
        eg.train(config, folder / "run", threads=1, observers=[Strengthens()])


def test_a_robot_that_was_edited_is_not_taken_for_the_one_that_was_trained(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "--stream", "crawler.toml", "--generations", "1", "--pairs", "1", "--horizon", "5"]
    assert main([*command, "--out", "out"]) == 0
    before = (folder / "out" / "run.json").read_bytes()
    assert main(["eval", "out"]) == 0
    assert "edited" not in capsys.readouterr().err
    robot = folder / "crawler.toml"
    robot.write_text(robot.read_text().replace("forward = 1.0", "forward = 7.0"))
    capsys.readouterr()
    assert main([*command, "--out", "out"]) == 2
    assert "holds this run trained with crawler.toml" in " ".join(capsys.readouterr().err.split())
    for reads in (["verify", "out"], ["eval", "out"], ["play", "out", "--output", "gait.html"]):
        main(reads)
        assert "a file of its robots has been edited since" in " ".join(capsys.readouterr().err.split()), reads[0]
    assert (folder / "out" / "run.json").read_bytes() == before
