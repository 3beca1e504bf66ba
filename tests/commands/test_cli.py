"""The command line as a user meets it: results, exit codes, and no traceback for a mistake of theirs."""

import errno
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from small import tiny_config, tiny_request

import evergait as eg
from evergait import __version__, train
from evergait.cli import main, parse
from evergait.commands.train import Train
from evergait.config import Evaluation, preset
from evergait.core.arrays import Float32
from evergait.engines import get_engine
from evergait.methods import Collection, Distill, Method, Replay
from evergait.policy import Policy, PolicyConfig
from evergait.studies.results import Results
from evergait.tasks import Task
from evergait.training.run import Run, open_folder
from evergait.workers import bench


def evergait(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evergait", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "200", **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_train_show_again(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(tiny_config().to_toml())
    first = evergait("train", "--config", config, "--out", tmp_path / "run", "--generations", 2, "--method.budget", 2)
    assert first.returncode == 0, first.stderr
    assert "phase 2/2 Reacher-v5 starts" in first.stderr
    again = evergait("train", "--config", config, "--out", tmp_path / "run", "--generations", 2, "--method.budget", 2)
    assert again.returncode == 0
    assert "is done; nothing to train" in again.stdout
    other = evergait("train", "--config", config, "--out", tmp_path / "run", "--generations", 3)
    assert other.returncode == 2
    assert "another config" in other.stderr
    assert Run.load(tmp_path / "run").config == tiny_config(generations=2, method=type(tiny_config().method)(budget=2))  # type: ignore[call-arg]


def test_flags_of_joined_methods() -> None:
    flags = ["--method", "replay+distill", "--method.replay.budget", "6", "--method.distill.collection.episodes", "3"]
    config = parse(["train", "--out", "runs/x", *flags]).settings
    parts = {"replay": Replay(budget=6), "distill": Distill(collection=Collection(episodes=3))}
    assert config.method == Method.named("replay+distill", "method")(**parts)


def test_show_as_json(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(printed(capsys, "show", trained, "--json"))
    run = Run.load(trained)
    assert shown["theta_sha256"] == run.theta_sha256
    assert shown["done"] is True
    assert [stage["task"] for stage in shown["stages"]] == ["InvertedPendulum-v5", "Reacher-v5"]
    assert shown["metrics"] == run.metrics.summary()
    assert shown["scale"]["source"]


def test_a_narrow_terminal_cuts_no_name_and_no_number() -> None:
    assert "…" not in evergait("tasks", COLUMNS="40").stdout


def test_show_for_people(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "show", trained)
    assert "R* comes from" in text
    assert "average backward transfer" in text


def test_eval_repeats_the_recorded_evaluation(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(printed(capsys, "eval", trained, "--episodes", 2, "--engine", "mujoco", "--json"))
    last = Run.load(trained).ledger.records[-1]
    assert {row["task"]: row["returns"] for row in rows} == dict(last.returns)


def test_eval_on_a_variant_and_another_engine(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["eval", trained, "--task", "InvertedPendulum-v5@gravity=0.1", "--stage", 1, "--which", "best"]
    arguments += ["--episodes", 3, "--episode-seed", 9, "--json"]
    (row,) = json.loads(printed(capsys, *arguments, "--engine", "gymnasium", "--threads", 1))
    assert row["engine"] == "gymnasium"
    assert len(row["returns"]) == 3
    (same,) = json.loads(printed(capsys, *arguments, "--engine", "mujoco"))
    assert same["returns"] == row["returns"]


def test_eval_of_a_snapshot(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["eval", trained, "--generation", 2, "--episodes", 2, "--engine", "mujoco", "--json"]
    rows = json.loads(printed(capsys, *arguments))
    record = next(record for record in Run.load(trained).ledger.records if record.generation == 2)
    assert {row["task"]: row["returns"] for row in rows} == dict(record.returns)
    assert main(["eval", str(trained), "--generation", "3"]) == 2
    assert "generation: is 3; it must be one whose θ was kept: 2" in capsys.readouterr().err


def test_verify_cuts_episodes_where_they_were_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = Evaluation(every=2, episodes=2, random_policies=2, cut=True)
    train(tiny_config(horizon=7, evaluation=cut), tmp_path / "run", threads=1)
    assert json.loads(printed(capsys, "verify", tmp_path / "run", "--json"))["agrees"]


def test_verify_agrees_to_the_last_bit(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verified = json.loads(printed(capsys, "verify", trained, "--json"))
    assert verified["agrees"]
    assert all(row["largest difference"] == 0 for row in verified["rows"])
    assert len(verified["rows"]) == 4


def test_table_and_lab_have_phases_that_lie_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    config = tiny_config(generations=1, stream=("InvertedPendulum-v5",), method=eg.Naive())
    train(config, tmp_path / "run", store=store, threads=1)
    printed(capsys, "export", tmp_path / "run", "--store", store, "--csv", tmp_path / "all.csv")
    assert (tmp_path / "all.csv").read_text().startswith("condition,order,seed")
    printed(capsys, "lab", tmp_path / "lab.html", "--folder", tmp_path / "run", "--store", store)
    assert (tmp_path / "lab.html").stat().st_size > 100_000


def test_export_is_read_without_evergait(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "policy.safetensors"
    printed(capsys, "export", trained, "--output", policy)
    text = (Path(__file__).parents[2] / "docs" / "policy-file.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 13
    code = code.replace("policy.safetensors", str(policy)).replace("Hopper-v5", "Reacher-v5")
    space: dict[str, object] = {}
    exec(code, space)  # noqa: S102 - the documentation's own example
    run = Run.load(trained)
    observation = np.random.default_rng(0).normal(size=10)
    from evergait.tasks import Task

    network = run.policy.network(Task("Reacher-v5"))
    outputs = network.outputs(run.theta.astype(np.float64), observation[None])[0]
    action = network.action_middle + network.action_half_range * outputs
    np.testing.assert_allclose(space["act"](observation), action, atol=1e-5)  # type: ignore[operator]


def test_version_is_one_line_and_help_knows_it(capsys: pytest.CaptureFixture[str]) -> None:
    line = printed(capsys, "--version")
    python = ".".join(map(str, sys.version_info[:3]))
    expected = f"evergait {__version__}, mujoco {mujoco.__version__}, numpy {np.__version__}, "
    assert line.startswith(expected)
    assert f"Python {python}" in line
    assert line.count("\n") == 1
    assert "--version" in printed(capsys, "--help")


@pytest.mark.parametrize("asked", [7, 1000])
def test_generations_on_the_command_line_take_the_place_of_a_presets_steps(asked: int) -> None:
    flags = ["--preset", "quick", "--out", "runs/x"]
    for further in ((), ("--steps", "0")):
        settings = Train.from_arguments([*flags, "--generations", str(asked), *further]).settings
        assert (settings.phase_length, settings.evaluation.every_steps) == (asked, 0)
    assert Train.from_arguments([*flags, "--seed", "3"]).settings == replace(preset("quick"), seed=3)


@pytest.mark.parametrize("command", ["tasks", "methods", "doctor"])
def test_what_there_is(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(capsys, command, "--json"))
    assert printed(capsys, command)


@pytest.mark.parametrize("log", ["tensorboard", "wandb"])
def test_dashboards_are_fed(log: str, tmp_path: Path) -> None:
    if log == "wandb":
        pytest.importorskip("wandb", reason="not in requirements.lock: it brings a beta package")
    (tmp_path / "c.toml").write_text(tiny_config(generations=2).to_toml())
    arguments = ("train", "--config", tmp_path / "c.toml", "--out", tmp_path / "run", "--log", log)
    done = evergait(*arguments, WANDB_MODE="offline", WANDB_SILENT="true", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    pattern = {"tensorboard": "tensorboard/events*", "wandb": "wandb/offline-run-*/*.wandb"}[log]
    (events,) = (tmp_path / "run").glob(pattern)
    assert b"return/Reacher-v5" in events.read_bytes()


BAD = [
    (["train", "--out", "OUT", "--stream", "Hoper-v5"], "did you mean 'Hopper-v5'"),
    (["train", "--out", "OUT", "--method", "repaly"], "did you mean 'replay'"),
    (["train", "--out", "OUT", "--workers", "rya"], "did you mean 'ray'"),
    (["train", "--out", "OUT", "--workers", "ray", "--workers.retries", "-1"], "workers.retries: is -1"),
    (["train", "--out", "OUT", "--workers.address", "auto"], "Unrecognized options"),
    (["study", "run", "demo", "--out", "OUT", "--workers=ray", "--workers.share", "0"], "workers.share: is 0"),
    (["train", "--out", "OUT", "--preset", "papre"], "did you mean 'paper'"),
    (["train", "--out", "OUT", "--config", "missing.toml"], "missing.toml: is missing"),
    (["train", "--out", "OUT", "--pairs", "0"], "pairs: is 0; it must be at least 1"),
    (["train", "--out", "OUT", "--sigma", "-1"], "sigma: is -1.0; it must be above 0"),
    (["train", "--out", "OUT", "--method", "replay", "--method.budget", "3"], "method.budget: is 3"),
    (["train", "--out", "OUT", "--method", "replay", "--method.budget", "9999"], "method.budget: is 9999"),
    (["train", "--out", "OUT", "--method", "replay", "--stream", "Hopper-v5"], "replay needs an earlier task"),
    (["train", "--out", "OUT", "--method", "replay+distil"], "did you mean 'distill'"),
    (["train", "--out", "OUT", "--method", "distill+distill"], "distill may be there only once"),
    (["train", "--out", "OUT", "--method=multitask+replay"], "multitask stands alone"),
    (["train", "--out", "OUT", "--method", "adaptive"], "adaptive needs replay before it; write 'replay+adaptive'"),
    (["train", "--out", "OUT", "--method", "replay+ewc", "--method.replay.budget", "3"], "method.replay.budget: is 3"),
    (["train", "--out", "OUT", "--stream"], "stream: it is empty"),
    (["train", "--out", "OUT", "--threads", "0", "--generations", "1"], "threads: is 0; it must be at least 1"),
    (["train", "--preset", "quick", "--generations", "5", "--steps", "512000", "--out", "OUT"], "has one length"),
    (["train", "--out", "/proc/evergait", "--generations", "1"], "cannot be made a folder"),
    (["train", "--out", "OUT", "--no-such-flag"], "Unrecognized options"),
    (["train"], "--out"),
    (["train", "--out", "OUT", "--stream", "Hopper-v5", "--stream", "Swimmer-v5"], "--stream: is there twice"),
    (["train", "--out", "OUT", "--store", "/proc/x", "--generations", "1"], "store: /proc/x cannot be made a folder"),
    (["show", "OUT"], "is not a run's folder"),
    (["eval", "OUT"], "is not a run's folder"),
    (["eval", "OUT", "--episode-seed", "-1"], "episode_seed: is -1; it must be at least 0"),
    (["verify", "OUT"], "is not the folder of a run or a study"),
    (["export", "OUT"], "is not a run's folder"),
    (["study", "run", "papre", "--out", "OUT"], "did you mean 'paper'"),
    (["study", "run", "paper", "--scale", "minni", "--out", "OUT"], "did you mean 'mini'"),
    (["study", "run", "demo", "--jobs", "0", "--out", "OUT"], "jobs: is 0"),
    (["study", "run", "demo", "--only", "W>H", "--out", "OUT"], "W>H"),
    (["study", "plan", "papre"], "did you mean 'paper'"),
    (["study", "status", "OUT"], "OUT"),
    (["report", "OUT"], "OUT"),
    (["play", "OUT"], "is not a run's folder"),
    (["tune", "missing.toml", "--out", "OUT"], "missing.toml"),
    (["bench", "--population", "1"], "population: is 1; it must be at least 2"),
    (["bench", "--tasks", "Hoper-v5"], "did you mean 'Hopper-v5'"),
    (["bench", "--tasks"], "tasks: is []; it must be at least one"),
    (["bench", "--engines"], "engines: is []; it must be at least one of"),
    (["bench", "--engines", "mujoco", "plannar"], "there is none called 'plannar'; did you mean 'planar'?"),
    (["bench", "--engines", "planar", "--tasks", "Hopper-v5", "CartPole-v1"], "CartPole-v1 is not one of"),
    (["trian"], "there is no command 'trian'; did you mean 'train'?"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_mistakes_are_told_in_a_sentence(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    try:
        code = main([str(out) if a == "OUT" else a for a in arguments])
    except SystemExit as error:  # how the parser of flags ends
        code = error.code  # type: ignore[assignment]
    assert code == 2
    assert message.replace("OUT", str(out)) in capsys.readouterr().err.replace("\n", " ")
    assert not out.exists()


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Benchmarks start at once from a policy that falls; the tasks for which one was wanted."""
    asked = list[str]()

    def fresh(task: Task, n_threads: int) -> Float32:
        asked.append(task.name)
        return Policy.build(PolicyConfig(), [task]).initial(0)

    monkeypatch.setattr(bench, "survivor", fresh)
    return asked


def test_bench_knows_what_it_cannot_do_before_it_works(untrained: list[str]) -> None:
    assert main(["bench", "--engines", "planar", "--tasks", "Hopper-v5", "Hoper-v5"]) == 2
    assert main(["bench", "--engines", "planar", "plannar"]) == 2
    assert not untrained


@pytest.mark.usefixtures("untrained")
def test_bench_measures_variants_and_discrete_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    engines = ("--engines", "planar", "gymnasium", "python", "envpool")
    tasks = ("--tasks", "CartPole-v1", "InvertedPendulum-v5@gravity=2,observation_noise=0.1")
    code = main(["bench", *engines, *tasks, "--population", "4", "--rounds", "1", "--threads", "1", "--json"])
    out, said = capsys.readouterr()
    assert code == 0
    measured = [(row["task"].partition("@")[0], row["engine"]) for row in json.loads(out)]
    right = {"CartPole-v1": ("gymnasium", "python"), "InvertedPendulum-v5": ("planar", "gymnasium", "python")}
    assert measured == [(task, engine) for task, engines in right.items() for engine in engines]
    said = " ".join(said.split())
    assert "CartPole-v1, planar: left out: task 'CartPole-v1'" in said
    assert "envpool: left out: task 'InvertedPendulum-v5@gravity=2.0,observation_noise=0.1': EnvPool knows no" in said


@pytest.mark.parametrize("name", ["CartPole-v1", "InvertedPendulum-v5@gravity=3", "InvertedPendulum-v5@noisy"])
def test_pythons_own_loop_simulates_the_same_task(name: str) -> None:
    n = 12
    request = tiny_request(name, n_rows=n, sign=np.zeros(n, np.float32))
    found = bench._python_loop(request).lengths.tolist()
    assert found == get_engine("gymnasium").run(request, 1).lengths.tolist()
    if "@" in name:
        plain = replace(request, task=Task(request.task.id))
        assert found != bench._python_loop(plain).lengths.tolist()


def test_no_traceback_reaches_the_user(tmp_path: Path) -> None:
    done = evergait("train", "--out", tmp_path / "out", "--sigma", "-1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "evergait: sigma: is -1.0; it must be above 0\n"


class Breaks:
    """A command that meets a broken pipe."""

    def run(self) -> int:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["--help", "--version", "tasks", "methods"])
def test_a_reader_may_have_enough(command: str, unbuffered: str) -> None:
    program = shlex.join([str(Path(sys.executable).with_name("evergait")), command])
    piped = f"{program} | true; exit ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(["bash", "-c", piped], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_broken_pipe_is_no_success_while_somebody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stdout:
        monkeypatch.setattr("evergait.cli.parse", lambda arguments: Breaks())
        monkeypatch.setattr("sys.stdout", stdout)
        monkeypatch.setattr("sys.stderr", told := io.StringIO())
        assert main(["show"]) == 2
        assert "has gone: Broken pipe" in told.getvalue()
        os.close(reader)  # as `head` does
        assert main(["show"]) == 0


def test_an_unfinished_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_folder(tiny_config(), tmp_path / "run", tmp_path / "run" / "phases")
    for command in ("show", "eval", "verify"):
        assert main([command, str(tmp_path / "run")]) == 2
        assert "no phase of this run is finished yet" in capsys.readouterr().err.replace("\n", " ")


def test_train_help_is_short_and_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["train", "--help"])
    text = capsys.readouterr().out
    assert left.value.code == 0
    assert len(text.splitlines()) < 45
    examples = [line.strip() for line in text.splitlines() if line.startswith("  evergait train")]
    assert len(examples) >= 3
    for example in examples[:3]:
        assert parse(shlex.split(example)[1:]).out
    with pytest.raises(SystemExit):
        main(["train", "--help-all"])
    everything = capsys.readouterr().out
    assert "--evaluation.random-policies" in everything
    assert "--evaluation.random-policies" not in text
    flags = [line.split()[0] for line in text.splitlines() if line.startswith("  --")]
    assert len(flags) >= 10
    assert all(flag in everything for flag in flags)


@pytest.fixture(scope="module")
def small_study(trained_study: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, for commands keep gaits beside a study."""
    return Path(shutil.copytree(trained_study.path, tmp_path_factory.mktemp("study") / "out"))


ONE = ["--condition", "replay", "--order", "InvertedPendulum > InvertedDoublePendulum", "--seed", "1"]


@pytest.mark.parametrize("command", ["show", "eval --episodes 1", "export", "play", "verify --episodes 1"])
def test_a_run_of_a_study_is_chosen_by_its_names(
    command: str, small_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *rest = command.split()
    assert main([name, str(small_study), *rest, *ONE]) == 0
    capsys.readouterr()
    if name == "show":  # of a study as a whole
        assert main([name, str(small_study)]) == 0
        assert "at the end" in capsys.readouterr().out
    elif name != "verify":  # which takes all
        assert main([name, str(small_study), *rest]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "is a study, and 12 of its runs are meant; choose one, as in --condition naive --order" in said
    assert main([name, str(small_study), *rest, "--condition", "repaly"]) == 2
    assert "condition: no run here has 'repaly'; did you mean 'replay'?" in " ".join(capsys.readouterr().err.split())


def test_the_chosen_run_is_the_one_that_is_shown(small_study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(printed(capsys, "show", small_study, *ONE, "--json"))
    assert (shown["method"], shown["seed"], shown["stream"][0]) == ("replay", 1, "InvertedPendulum-v5")


def test_notebooks_show_a_study_as_a_table(small_study: Path) -> None:
    html = eg.load(small_study)._repr_html_()
    assert html.count("<tr>") == 12
    assert "<td>replay</td>" in html
