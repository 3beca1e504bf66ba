"""What a release says of itself is the same everywhere."""

import importlib.resources
import re
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
    files = ["CITATION.cff", ".github/ISSUE_TEMPLATE/config.yml"]
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
