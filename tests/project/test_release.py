"""What a release says of itself is the same everywhere.

`make setup` makes an environment once, again for another Python, and says in a sentence what is missing.
"""

import ast
import importlib.resources
import os
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

import evergait
from evergait import _native

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
SOURCE = PROJECT["project"]["urls"]["Source"]


def test_one_version() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == evergait.__version__
    newest = re.findall(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert newest == evergait.__version__


def test_the_paper_is_the_preferred_citation() -> None:
    paper = yaml.safe_load((ROOT / "CITATION.cff").read_text())["preferred-citation"]
    assert paper["title"] == "Continual Evolution Strategies in Control Tasks"
    assert len(paper["authors"]) == 5


def test_every_python_that_is_named_is_tested() -> None:
    named = [c.split(" :: ")[-1] for c in PROJECT["project"]["classifiers"] if ":: Python :: 3." in c]
    tests = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    assert tests["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_workflows_call_is_there(path: Path) -> None:
    """Their syntax is actionlint's business; that targets, scripts and tests exist is ours."""
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    makefile = (ROOT / "Makefile").read_text()
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            script = step.get("run", "")
            for target in re.findall(r"^make (\w+)", script, re.MULTILINE):
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
            for file in re.findall(r"(?:scripts|tests)/[\w/.-]+\.py", script):
                assert (ROOT / file).is_file(), file


def test_one_address_of_the_repository() -> None:
    files = ["CITATION.cff"]
    files += [str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "notebooks").glob("*.ipynb")]
    for file in files:
        text = (ROOT / file).read_text()
        assert SOURCE in text or SOURCE.removeprefix("https://github.com/") in text, file


def test_the_check_of_wheels_holds_here() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/check_wheel.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_sdist_is_small_and_has_what_a_build_needs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, capture_output=True, text=True, check=True)
    (path,) = tmp_path.glob("*.tar.gz")
    assert path.stat().st_size <= 2_000_000  # the workflow `wheels` asks for it, too
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "native/planar.cpp"} <= names
    assert not any(name.startswith(("results", "runs", ".venv", "build")) for name in names)


# Tests run against the installed package, and what it ships is there.


def test_the_installed_package_is_tested() -> None:
    assert "site-packages" in evergait.__file__
    assert metadata.version("evergait") == evergait.__version__


def test_data_files_ship() -> None:
    files = importlib.resources.files("evergait")
    for name in (
        "py.typed",
        "_native.pyi",
        "presets.toml",
        "paper/max_min_returns.csv",
    ):
        assert (files / name).is_file()


def test_the_stub_names_what_the_core_has() -> None:
    stub = (Path(evergait.__file__).parent / "_native.pyi").read_text()
    for name in dir(_native):
        if not name.startswith("__"):
            declared = (f"def {name}(", f"\nclass {name}", f"\n{name}:")
            assert any(text in stub for text in declared), f"_native.{name} is not in _native.pyi"


def test_importing_evergait_is_light() -> None:
    heavy = ("ray", "torch", "jax", "wandb", "matplotlib")
    code = f"import sys, evergait; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_training_on_this_machine_never_imports_ray(tmp_path: Path) -> None:
    arguments = ["train", "--out", str(tmp_path / "run"), "--stream", "InvertedPendulum-v5", "--generations", "1"]
    arguments += ["--pairs", "1", "--horizon", "5", "--evaluation.episodes", "1", "--evaluation.random-policies", "1"]
    code = f"import sys; from evergait.cli import main; print(main({arguments}), 'ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 False"


SCRIPT = ROOT / "scripts" / "setup.py"
LOCK = (ROOT / "requirements.lock").read_text()


def setup(lock: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), str(lock), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A lock that asks for nothing, and the environment made from it, in a path with spaces."""
    folder = tmp_path_factory.mktemp("with a space")
    lock = folder / "requirements.lock"
    lock.write_text("")
    done = setup(lock, folder / ".venv")
    assert done.returncode == 0, done.stderr
    return lock, folder / ".venv"


def test_an_old_python_can_read_it_and_is_told() -> None:
    ast.parse(SCRIPT.read_text(), feature_version=(3, 4))
    assert "from __future__" not in SCRIPT.read_text()
    complaint = runpy.run_path(str(SCRIPT))["complaint"]
    words = complaint((3, 10, 13), "/usr/bin/python3", "g++")
    assert "needs Python 3.11 or newer, and /usr/bin/python3 is 3.10" in words
    assert "make setup PYTHON=" in words
    assert complaint((3, 11, 0), "python3", "g++") == complaint((3, 14, 0), "python3", "g++") == ""
    assert "apt-get install g++" in complaint((3, 11, 0), "python3", "")


def test_a_second_time_it_changes_nothing(environment: tuple[Path, Path]) -> None:
    lock, folder = environment
    before = (folder / "locked").stat().st_mtime_ns
    (folder / "kept").touch()
    assert setup(lock, folder).returncode == 0
    assert (folder / "locked").stat().st_mtime_ns == before
    assert (folder / "kept").exists()


def test_another_python_makes_it_again(environment: tuple[Path, Path]) -> None:
    lock, folder = environment
    stamp = (folder / "locked").read_text()
    (folder / "locked").write_text(stamp.replace(sys.version.split()[0], "3.99.0"))
    (folder / "left over").touch()
    done = setup(lock, folder)
    assert "made by another Python" in done.stderr
    assert not (folder / "left over").exists()
    assert (folder / "locked").read_text() == stamp


def test_a_python_that_is_gone_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "locked").write_text("stamp")
    (tmp_path / "bin" / "python").symlink_to(tmp_path / "uninstalled")
    found = runpy.run_path(str(SCRIPT))["found"]
    assert found(str(tmp_path)) == ""
    (tmp_path / "bin" / "python").unlink()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    assert found(str(tmp_path)) == "stamp"


def test_a_package_that_cannot_be_fetched_is_no_finished_environment(environment: tuple[Path, Path]) -> None:
    lock, folder = environment
    stamp = (folder / "locked").read_text()
    other = lock.with_name("other.lock")
    other.write_text("no-such-package-of-evergait==1 --hash=sha256:" + "0" * 64 + "\n")
    command = [sys.executable, str(SCRIPT), str(other), str(folder)]
    offline = {**os.environ, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(command, env=offline, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "HTTPS_PROXY" in done.stderr
    assert (folder / "locked").read_text() == stamp


def test_every_package_of_the_lock_has_hashes_and_no_host() -> None:
    packages = re.findall(r"^([\w.-]+)==(\S+)(.*?)(?=^\w|\Z)", LOCK, re.MULTILINE | re.DOTALL)
    assert len(packages) > 90
    for name, _, rest in packages:
        assert "--hash=sha256:" in rest, name
    assert "://" not in LOCK
    assert "index-url" not in LOCK
    assert "find-links" not in LOCK


def test_no_beta_comes_into_the_lock_unseen() -> None:
    assert "\nwandb==" not in LOCK
    unfinished = [line.split()[0] for line in LOCK.splitlines() if re.match(r"[\w.-]+==[\d.]+(a|b|rc|\.dev)\d", line)]
    assert unfinished == []


def test_the_lock_has_what_pyproject_asks_for() -> None:
    """Resolved again without a network: names only, for versions are the resolver's business."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    groups = project["dependency-groups"]
    wanted = [*project["project"]["dependencies"], *groups["dev"], *groups["docs"]]
    wanted += [line for name, lines in extras.items() if name != "wandb" for line in lines]
    locked = {name.lower().replace("_", "-") for name in re.findall(r"^([\w.-]+)==", LOCK, re.MULTILINE)}
    for line in wanted:
        assert re.split(r"[\[<>=!~ ]", line)[0].lower().replace("_", "-") in locked, f"{line}: run `make lock`"
