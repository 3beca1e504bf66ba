"""The doctor finds what is wrong with a machine and says how to fix it."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from faults import small_disk

from evergait.commands.doctor import (
    PHASE_MEMORY,
    allowed_processors,
    available_memory,
    check_environment,
    check_folder,
    check_threads,
    check_version,
    check_versions,
)


def doctor(*arguments: object, **environment: str) -> tuple[int, dict[str, dict[str, str]]]:
    command = [sys.executable, "-m", "evergait", "doctor", "--json", *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return done.returncode, {finding["what"]: finding for finding in json.loads(done.stdout)}


def test_every_finding_that_is_not_ok_says_how_to_fix_it(tmp_path: Path) -> None:
    code, findings = doctor(tmp_path)
    assert code == 0
    for finding in findings.values():
        assert finding["found"]
        assert finding["status"] == "ok" or finding["fix"] or "set MUJOCO_GL=egl" in finding["found"]


def test_more_threads_than_processors(tmp_path: Path) -> None:
    _, findings = doctor(tmp_path, "--threads", 1000)
    assert findings["threads"]["status"] == "note"
    assert f"--threads {len(os.sched_getaffinity(0))}" in findings["threads"]["fix"]
    assert check_threads(1)[0].status == "ok"


def test_an_affinity_that_leaves_one_processor() -> None:
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    code += "from evergait.commands.doctor import check_threads; print(check_threads(2)[0].fix)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("--threads 1: this process may use 1 processors")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, float("inf")),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, float("inf")),
        ({}, float("inf")),
    ],
)
def test_quotas_of_containers(files: dict[str, str], expected: float, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    assert allowed_processors(tmp_path) == expected


def test_memory_is_what_the_container_leaves(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n")
    assert available_memory(tmp_path / "meminfo", tmp_path) == 8_000_000 * 1024
    (tmp_path / "memory.max").write_text(f"{PHASE_MEMORY}\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert available_memory(tmp_path / "meminfo", tmp_path) == PHASE_MEMORY - 1000


def test_versions_are_compared_with_what_the_package_needs() -> None:
    assert {finding.status for finding in check_versions()} == {"ok"}
    assert {"numpy", "mujoco", "gymnasium"} <= {finding.what for finding in check_versions()}
    wrong = check_version("mujoco", "mujoco==3.1.0")
    assert (wrong.status, wrong.fix) == ("missing", "pip install 'mujoco==3.1.0'")
    assert check_version("numpy", "numpy<2").status == "missing"
    assert check_version("gymnasium", "gymnasium[mujoco]>=1.4,<1.5").status == "ok"
    assert check_version("gymnasium", "gymnasium[mujoco]>=1.10").status == "missing"
    assert check_version("no-such-package", "no-such-package>=1").found == "not installed"


def test_environments_of_another_python_and_of_everybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = f"digest\n{tmp_path.resolve()} {platform.python_version()}\n"
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv/locked").write_text(here)
    assert check_environment(tmp_path / "venv", tmp_path)[0].status == "ok"
    (tmp_path / "venv/locked").write_text(here.replace(platform.python_version(), "3.99.0"))
    other = check_environment(tmp_path / "venv", tmp_path)[0]
    assert (other.status, other.fix) == ("note", "make setup makes it again")
    assert "3.99.0" in other.found
    assert "venv" in check_environment(tmp_path, tmp_path)[0].fix
    monkeypatch.setenv("https_proxy", "http://me:secret@proxy:3128")
    assert "https by proxy:3128" in check_environment(tmp_path, tmp_path)[1].found
    assert "secret" not in check_environment(tmp_path, tmp_path)[1].found


def test_folders_that_cannot_be_written(tmp_path: Path) -> None:
    assert check_folder("runs", tmp_path / "not" / "yet", "").status == "ok"
    with small_disk(tmp_path / "disk", "size=1m,ro") as disk:
        finding = check_folder("runs", disk / "run", "choose another")
        assert (finding.status, finding.fix) == ("missing", "choose another")
        assert "Read-only file system" in finding.found
        code, findings = doctor(disk)
        assert code == 1
        assert findings["folder of runs"]["status"] == "missing"
    with small_disk(tmp_path / "small", "size=1m") as disk:
        assert "GiB" in check_folder("runs", disk, "").fix


def test_no_renderer_and_a_missing_compiler(tmp_path: Path) -> None:
    no_driver = {"__EGL_VENDOR_LIBRARY_DIRS": str(tmp_path)}
    _, findings = doctor(tmp_path, PATH=str(tmp_path), EVERGAIT_ISA="baseline", OMP_NUM_THREADS="3", **no_driver)
    assert findings["rendering"]["status"] == "note"
    assert "apt-get install libegl1" in findings["rendering"]["fix"]
    assert "apt-get install g++" in findings["compiler"]["fix"]
    assert findings["vector instructions"]["found"] == "baseline"
    assert "unset EVERGAIT_ISA" in findings["vector instructions"]["fix"]
    assert "OMP_NUM_THREADS=3" in findings["OMP variables"]["found"]
