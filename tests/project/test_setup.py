"""`make setup` makes an environment once, again for another Python, and says in a sentence what is missing."""

import ast
import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
