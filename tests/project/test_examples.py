"""The examples work, each from an empty folder, and are short; notebooks run from top to bottom and show it.

What docs/scaling.md tells people to use is well-formed, and its commands are ones that evergait has.
"""

import importlib.util
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evergait as eg
from evergait.cli import parse
from evergait.commands.study import Study, StudyRun
from evergait.commands.train import Train
from evergait.core import plugins
from evergait.workers import Ray

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = "--generations 2 --pairs 4 --evaluation.episodes 1 --evaluation.random-policies 1"


def lines(*names: str) -> int:
    """How many lines files have in all, empty ones aside."""
    texts = [(EXAMPLES / name).read_text() for name in names]
    return sum(bool(line.strip()) for text in texts for line in text.splitlines())


def shell(command: str, folder: Path, code: int = 0, **environment: Any) -> str:
    """What a command prints."""
    words = [sys.executable, "-m", *command.split()]
    place = {**os.environ, "COLUMNS": "300", **environment}
    done = subprocess.run(words, cwd=folder, env=place, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plug-in package as pip installs it: the module, and what its pyproject.toml declares."""
    declared = tomllib.loads((EXAMPLES / "plugin/pyproject.toml").read_text())["project"]
    site = tmp_path_factory.mktemp("site")
    about = site / f"{declared['name']}-{declared['version']}.dist-info"
    about.mkdir()
    shutil.copy(EXAMPLES / "plugin/shrink.py", site)
    (about / "METADATA").write_text(f"Name: {declared['name']}\nVersion: {declared['version']}\n")
    (about / "top_level.txt").write_text("shrink\n")
    groups = declared["entry-points"].items()
    entries = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in groups)
    (about / "entry_points.txt").write_text("\n".join(entries))
    return site


def test_a_plugin_package_is_found_by_its_entry_point(installed: Path, tmp_path: Path) -> None:
    assert lines("plugin/shrink.py", "plugin/pyproject.toml") <= 20
    path: dict[str, Any] = {"PYTHONPATH": str(installed)}
    train = f"evergait train --method shrink --method.share 0.5 --stream InvertedPendulum-v5 Reacher-v5 {SMALL} --out r"
    shell(train, tmp_path, **path)
    assert 'plugins = ["shrink"]' in (tmp_path / "r/config.toml").read_text()
    first, second = sorted((p.read_text() for p in (tmp_path / "r/phases").glob("*/config.toml")), key=len)
    assert "shrink" not in first  # nothing to keep yet: it is everyone's first phase
    assert '[plugins]\nshrink = "1.0"' in second
    assert "--method.share" in shell("evergait methods", tmp_path, **path)


@pytest.fixture(scope="module")
def shrunk(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the plug-in's method."""
    folder = tmp_path_factory.mktemp("shrunk")
    train = f"evergait train --import shrink --method shrink --stream InvertedPendulum-v5 CartPole-v1 {SMALL} --out r"
    shell(train, folder, PYTHONPATH=str(installed))
    return folder / "r"


@pytest.mark.parametrize("command", ["show r", "eval r --episodes 1", "export r", "verify r --episodes 1", "report r"])
def test_reading_commands_import_it_only_if_asked(command: str, installed: Path, shrunk: Path, tmp_path: Path) -> None:
    path: dict[str, Any] = {"PYTHONPATH": str(installed)}
    shutil.copytree(shrunk, tmp_path / "r")
    refused = shell(f"evergait {command}", tmp_path, 2, **path)
    assert "would import the Python module 'shrink'" in refused
    assert "--import shrink" in refused
    shell(f"evergait {command} --import shrink", tmp_path, **path)
    shell(f"evergait {command}", tmp_path, **path, EVERGAIT_TRUSTED_MODULES="shrink")


def test_the_current_folder_counts_and_another_file_is_another_version(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text((EXAMPLES / "plugin/shrink.py").read_text())
    train = f"evergait train --import mine --method shrink --stream InvertedPendulum-v5 Reacher-v5 {SMALL} --out"
    shell(f"{train} a", tmp_path)
    with (tmp_path / "mine.py").open("a") as file:
        file.write("# another one\n")
    shell(f"{train} b", tmp_path)
    names = [{p.name for p in (tmp_path / run / "phases").iterdir()} for run in "ab"]
    assert len(names[0] & names[1]) == 1  # the first phase does not use it


def test_an_optimizer_and_an_engine_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    train = f"evergait train --import own --optimizer half --engine echo --stream InvertedPendulum-v5 {SMALL} --out"
    shell(f"{train} a", tmp_path)
    settings = (tmp_path / "a/config.toml").read_text()
    assert 'engine = "echo"' in settings
    assert 'name = "half"' in settings
    usual = "evergait train --optimizer plain --optimizer.learning-rate 0.025 --engine mujoco"
    shell(f"{usual} --stream InvertedPendulum-v5 {SMALL} --out b", tmp_path)
    policies = [next((tmp_path / run / "phases").glob("*/theta.safetensors")).read_bytes() for run in "ab"]
    assert policies[0] == policies[1]


OWN = """\
import evergait as eg
from dataclasses import dataclass
from evergait.engines.mujoco.engine import MujocoEngine

@dataclass(frozen=True)
class Half(eg.Plain, name="half"):
    'Half of a plain step.'
    learning_rate: float = 0.025

@eg.register_engine
class Echo(MujocoEngine):
    name = "echo"
"""


def test_an_environment_of_ones_own_whose_rewards_are_costs(tmp_path: Path) -> None:
    assert lines("braking.py") <= 20
    shutil.copy(EXAMPLES / "braking.py", tmp_path)
    settings = "--generations 15 --pairs 12 --optimizer adam --evaluation.episodes 4 --evaluation.random-policies 2"
    shell(f"evergait train --stream braking:Braking-v0 {settings} --out run", tmp_path)
    curve = eg.Run.load(tmp_path / "run").ledger.curve("braking:Braking-v0")
    assert curve[0] < curve[-1] < 0  # it learns, and every return is negative
    assert "-" in shell("evergait show run", tmp_path)
    shell("evergait eval run --episodes 2", tmp_path, 2)  # would import the module
    shell("evergait eval run --episodes 2 --import braking", tmp_path)
    assert "All agree" in shell("evergait verify run --import braking", tmp_path)


def test_a_pandas_session(tmp_path: Path) -> None:
    assert lines("pandas_session.py") <= 20
    shutil.copy(EXAMPLES / "pandas_session.py", tmp_path)
    said = shell("pandas_session", tmp_path)
    rows = [line.split() for line in said.splitlines()]
    assert ["stage", "generation"] in rows  # the index of the pivot table
    table = pd.DataFrame(eg.load(tmp_path / "runs/pandas").frame())
    assert len(table) == 2 * 3 * 2 * 3  # stages, evaluations, tasks, episodes


def test_a_class_of_the_main_program_is_refused_by_name(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "braking.py", tmp_path)
    (tmp_path / "main.py").write_text(
        "from braking import *\nimport evergait as eg\nclass Mine(Braking): pass\n"
        "gym.register('Mine-v0', Mine, max_episode_steps=9)\neg.Config(stream=('Mine-v0',)).check()\n"
    )
    assert "move it to a file of its own and import that" in shell("main", tmp_path, 1)


def test_a_robot_of_ones_own(tmp_path: Path) -> None:
    assert lines("robot/crawler.toml", "robot/crawler.xml") <= 20
    shutil.copytree(EXAMPLES / "robot", tmp_path, dirs_exist_ok=True)
    shell(f"evergait train --stream crawler.toml {SMALL} --out run", tmp_path)
    assert "crawler.toml" in shell("evergait show run", tmp_path)
    assert "All agree" in shell("evergait verify run", tmp_path)
    shell("evergait play run --output gait.html", tmp_path)
    shell("evergait report run", tmp_path)
    assert eg.Run.load(tmp_path / "run").phases[0].identity()["engine"] == {"crawler.toml": "planar"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--import no_such_module", "the module 'no_such_module' cannot be imported: ModuleNotFoundError"),
        ("--import ../evil", "'../evil' is not the name of a Python module"),
        ("--import broken", "the module 'broken' cannot be imported: ZeroDivisionError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_a_sentence(arguments: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    said = shell(f"evergait train {arguments} --out r", tmp_path, 2)
    assert message in said
    assert "Traceback" not in said
    assert not (tmp_path / "r").exists()


def test_checking_a_config_trusts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugins.TRUSTED, "")
    with pytest.raises(eg.EvergaitError, match="would import the Python module 'nobody_knows'"):
        eg.Config(stream=("nobody_knows:Robot-v0",)).check()
    assert os.environ[plugins.TRUSTED] == ""


# The examples run, small.


def run(name: str, *arguments: str, folder: Path) -> str:
    assert len((EXAMPLES / name).read_text().splitlines()) <= 80
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_cem_improves(tmp_path: Path) -> None:
    out = run(
        "vector_cem.py", "--task", "InvertedPendulum-v5", "--generations", "8", "--population", "64", folder=tmp_path
    )
    assert "generation 7" in out
    assert float(out.split("mean return ")[1].split()[0]) > 200


def needs(module: str) -> pytest.MarkDecorator:
    """What an example brings along; we do not: torch alone would be gigabytes for everyone who runs the tests."""
    is_here = importlib.util.find_spec(module) is not None
    return pytest.mark.skipif(not is_here, reason=f"{module} is the example's own dependency, not ours")


@needs("ribs")
def test_map_elites_draws_a_map(tmp_path: Path) -> None:
    out = run("vector_map_elites.py", "--iterations", "3", "--batch", "24", folder=tmp_path)
    assert "gaits" in out
    assert (tmp_path / "gaits.png").exists()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("vector_ppo.py", marks=needs("torch")),
        pytest.param("vector_sb3.py", marks=needs("stable_baselines3")),
    ],
)
def test_ppo_runs_on_both_kinds_of_environments(name: str, tmp_path: Path) -> None:
    small = ("--task", "InvertedPendulum-v5", "--steps", "4096", "--envs", "8")
    for where in ((), ("--gymnasium",)):
        out = run(name, *small, *where, folder=tmp_path)
        assert "4096 steps" in out
        assert float(out.rsplit("mean return ", 1)[1]) > 5


@needs("evotorch")
def test_pgpe_improves(tmp_path: Path) -> None:
    small = ("--task", "InvertedPendulum-v5", "--generations", "30", "--population", "64")
    out = run("vector_evotorch.py", *small, folder=tmp_path)
    first, last = (float(part.split()[0]) for part in (out.split("mean return ")[1], out.split("mean return ")[-1]))
    assert last > first + 20


@pytest.fixture(scope="module")
def ppo() -> Any:
    """The benchmark that has PPO beside ES."""
    spec = importlib.util.spec_from_file_location("ppo", EXAMPLES.parent / "benchmarks" / "ppo.py")
    assert spec
    assert spec.loader
    module = sys.modules["ppo"] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_ppo_follows_the_gradient_of_its_loss(ppo: Any) -> None:
    random, settings, n = np.random.default_rng(0), ppo.PPO(), 40
    one = ppo.Learning(ppo.TASKS[0], random)
    theta = ppo.first_theta(random) + 0.1 * random.standard_normal(ppo.POLICY.n_parameters)
    own = np.zeros(len(one.values) + len(one.log_std))
    found = np.zeros_like(theta), np.zeros_like(own)
    one.place((theta, found[0]), (own, found[1]))
    one.log_std -= 0.3
    part = {"seen": random.standard_normal((n, 11)), "action": random.standard_normal((n, 3))}
    part |= {"gain": random.standard_normal(n), "target": random.standard_normal(n)}
    noise = (part["action"] - one.actor.forward(part["seen"])[-1]) / np.exp(one.log_std)
    part["log_p"] = 0.3 * random.standard_normal(n) - (noise**2 / 2 + one.log_std).sum(-1)  # some ratios are clipped
    one.loss(part, settings)
    for parameters, gradient in zip((theta, own), [values.copy() for values in found], strict=True):
        way = 1e-6 * random.standard_normal(len(parameters))
        parameters += way
        above = one.loss(part, settings)
        parameters -= 2 * way
        below = one.loss(part, settings)
        parameters += way
        assert (above - below) / 2 == pytest.approx(gradient @ way, rel=1e-4)


def test_ppo_replays_with_half_of_its_steps_and_goes_on_from_what_it_saved(ppo: Any, tmp_path: Path) -> None:
    settings = ppo.PPO(n_envs=8, length=16, minibatches=2, epochs=1)
    learner, (hopper, swimmer, _) = ppo.Learner(ppo.first_theta(np.random.default_rng(0))), ppo.TASKS
    learner.phase(hopper, True, 300, settings, seed=0)
    learner.save(tmp_path / "first.npz")
    other = ppo.Learner.load(tmp_path / "first.npz")
    counted = learner.phase(swimmer, True, 300, settings, seed=0)
    assert counted["Swimmer-v5"] == 192
    assert 180 <= counted["Hopper-v5"] <= 192
    other.phase(swimmer, True, 300, settings, seed=0)
    np.testing.assert_array_equal(learner.theta, other.theta)
    naive = ppo.Learner.load(tmp_path / "first.npz")
    known, before = ppo.POLICY.layers["input.Hopper-v5"], naive.theta.copy()
    assert set(naive.phase(swimmer, False, 300, settings, seed=0)) == {"Swimmer-v5"}
    np.testing.assert_array_equal(naive.theta[known.offset : known.end], before[known.offset : known.end])
    assert not np.array_equal(naive.theta, learner.theta)


ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "notebooks.py"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # Jupyter's own, of its own future
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = SCRIPT["execute"](path, tmp_path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    assert any(output for cell in code for output in cell.outputs)


def test_there_are_three_with_badges_and_outputs() -> None:
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text())
        assert "colab-badge.svg" in "".join(notebook["cells"][0]["source"])
        assert any(cell.get("outputs") for cell in notebook["cells"]), f"{path.name}: run scripts/notebooks.py"
        assert path.stat().st_size < 1_000_000


ON_MANY_MACHINES = ("docs/scaling.md", "examples/slurm.sbatch", "examples/kuberay.yaml")


def commands_in(text: str) -> list[list[str]]:
    """The `evergait train` and `evergait study` commands in a text, as words."""
    found = re.findall(r"(?<![`\w/-])evergait ((?:train|study run) [^`\n]+)", text)
    values = {"$head:$port": "head:1", "${@:-paper}": "paper"}
    for name, value in values.items():
        found = [command.replace(name, value) for command in found]
    return [shlex.split(re.sub(r"\$\w+", "1", command).rstrip(" &")) for command in found]


@pytest.mark.parametrize("name", ON_MANY_MACHINES)
def test_commands_are_understood(name: str) -> None:
    found = commands_in((ROOT / name).read_text())
    assert found
    for words in found:
        command = parse(words)
        action = command.action if isinstance(command, Study) else command
        assert isinstance(action, Train | StudyRun)
        assert isinstance(action.workers, Ray) or "local" in words
        action.workers.check()


def test_the_batch_script_is_a_script() -> None:
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("no bash")
    subprocess.run([bash, "-n", ROOT / "examples/slurm.sbatch"], check=True)


def test_the_manifest_is_a_cluster_that_asks_for_a_token() -> None:
    yaml: Any = pytest.importorskip("yaml")
    claim, cluster = yaml.safe_load_all((ROOT / "examples/kuberay.yaml").read_text())
    assert (claim["kind"], claim["apiVersion"]) == ("PersistentVolumeClaim", "v1")
    assert (cluster["kind"], cluster["apiVersion"]) == ("RayCluster", "ray.io/v1")
    head, (group,) = cluster["spec"]["headGroupSpec"], cluster["spec"]["workerGroupSpecs"]
    assert head["rayStartParams"]["dashboard-host"] == "127.0.0.1"
    assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    images = set()
    for part in (head, group):
        assert all(isinstance(value, str) for value in part["rayStartParams"].values())  # KubeRay takes strings only
        (container,) = part["template"]["spec"]["containers"]
        images.add(container["image"])
        environment = {entry["name"]: entry for entry in container["env"]}
        assert environment["RAY_AUTH_MODE"]["value"] == "token"
        assert environment["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": "evergait-token", "key": "token"}
        assert container["resources"]["requests"] == container["resources"]["limits"]
    assert len(images) == 1  # versions must be the same everywhere
    (volume,) = head["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
