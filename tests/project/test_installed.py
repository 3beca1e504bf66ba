"""Tests run against the installed package, and what it ships is there."""

import importlib.resources
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import evergait
from evergait import _native


def test_the_installed_package_is_tested() -> None:
    assert "site-packages" in evergait.__file__
    assert metadata.version("evergait") == evergait.__version__


def test_data_files_ship() -> None:
    files = importlib.resources.files("evergait")
    for name in (
        "py.typed",
        "_native.pyi",
        "presets/paper.toml",
        "presets/quick.toml",
        "presets/tuned.toml",
        "paper/single_task.csv",
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
