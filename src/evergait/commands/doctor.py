"""`evergait doctor`: whether this machine is ready, and how to fix what is not."""

import dataclasses
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import tyro
from packaging.requirements import Requirement

from evergait import _native
from evergait.commands.base import print_json, print_table
from evergait.core.data import MOST_THREADS, within
from evergait.training.run import default_threads

PHASE_MEMORY = 256 * 2**20
"""Bytes that a phase at full scale stays below (λ = 768, planar; tests/reliability/test_limits.py measures it)."""
DISK = 2**30
"""Free bytes that a study at full scale should find."""
DECISIVE = ("numpy", "mujoco", "gymnasium", "safetensors")
"""Packages that decide bits."""
OMP = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    found: str
    status: str = "ok"
    """ok, note (works without it) or missing."""
    fix: str = ""


@dataclass(frozen=True)
class Doctor:
    """Check whether this machine is ready, and say how to fix what is not."""

    folder: tyro.conf.Positional[Path] = Path()
    """Where runs will be written."""
    threads: int | None = None
    """Threads that will be asked for; all processors if not given."""
    json: bool = False
    """Print JSON, for programs."""

    def run(self) -> int:
        """Print findings; exit code 1 if something needed is missing."""
        if self.threads is not None:
            within(self.threads, 1, MOST_THREADS, "threads")
        findings = [
            *check_versions(),
            *check_environment(),
            *check_threads(self.threads or default_threads()),
            *check_memory(),
            *check_folders(self.folder),
            *check_physics(),
            *check_rendering(),
            *check_tools(),
        ]
        if self.json:
            print_json([dataclasses.asdict(finding) for finding in findings])
        else:
            rows = [(f.status, f.what, f.found, f.fix) for f in findings]
            print_table("", ["", "what", "found", "how to fix it"], rows, n_names=2)
        return 1 if any(finding.status == "missing" for finding in findings) else 0


def check_versions() -> list[Finding]:
    """Python and the packages that decide bits or speed, against what this evergait was made for."""
    found = [Finding("Python", platform.python_version()), Finding("evergait", metadata.version("evergait"))]
    for line in metadata.requires("evergait") or []:
        wanted = Requirement(line)
        if wanted.name in DECISIVE and "extra" not in str(wanted.marker or ""):
            found.append(check_version(wanted.name, line.partition(";")[0].strip()))
    return found


def check_environment(prefix: Path = Path(sys.prefix), base: Path = Path(sys.base_prefix)) -> list[Finding]:
    """Where packages are, whether `make setup` would make that again, and by which proxy more would be fetched."""
    finding = Finding("environment", str(prefix))
    stamp = prefix / "locked"  # scripts/setup.py writes it: the lock's digest, and the Python
    made_by = stamp.read_text().splitlines()[1:2] if stamp.is_file() else []
    if made_by and made_by[0] != f"{base.resolve()} {platform.python_version()}":
        finding = Finding("environment", f"{prefix}, made by {made_by[0]}", "note", "make setup makes it again")
    elif prefix == base:
        fix = "python3 -m venv .venv && . .venv/bin/activate keeps packages of projects apart"
        finding = Finding("environment", f"{prefix}, shared by all projects", "note", fix)
    proxies = {kind: address.rpartition("@")[2] for kind, address in urllib.request.getproxies().items()}
    words = ", ".join(f"{kind} by {address}" for kind, address in sorted(proxies.items()) if kind != "no")
    return [finding, Finding("proxy", words or "none; HTTPS_PROXY names one")]


def check_version(name: str, wanted: str) -> Finding:
    """One package against a requirement such as `mujoco==4.0.0` or `numpy>=2.1`."""
    fix = f"pip install '{wanted}'"
    try:
        installed = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, "not installed", "missing", fix)
    return Finding(name, installed) if holds(installed, wanted) else Finding(name, installed, "missing", fix)


def holds(installed: str, wanted: str) -> bool:
    """Whether a version is what a requirement asks for.

    >>> holds("2.1rc1", "numpy>=2.2"), holds("2.3rc1", "numpy>=2.2")
    (False, True)
    """
    return Requirement(wanted).specifier.contains(installed, prereleases=True)


def allowed_processors(root: Path = Path("/sys/fs/cgroup")) -> float:
    """Processors that a container's quota allows (cgroup v2 or v1); infinite without one."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
        return float("inf") if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        quota_us = int((root / "cpu/cpu.cfs_quota_us").read_text())
        return quota_us / int((root / "cpu/cpu.cfs_period_us").read_text()) if quota_us > 0 else float("inf")
    except (OSError, ValueError, ZeroDivisionError):
        return float("inf")


def check_threads(n_threads: int) -> list[Finding]:
    """Processors, what limits them, vector instructions."""
    here, mine, quota = os.cpu_count() or 1, default_threads(), allowed_processors()
    found = f"{n_threads} of {here} processors"
    finding = Finding("threads", found)
    if n_threads > mine:
        fix = f"--threads {mine}: this process may use {mine} processors (taskset, or the container, says so)"
        finding = Finding("threads", found, "note", fix)
    elif n_threads > quota:
        few = max(1, int(quota))
        fix = f"--threads {few}: the container's quota is {quota:g} processors; more threads only wait for each other"
        finding = Finding("threads", found, "note", fix)
    omp = ", ".join(f"{name}={os.environ[name]}" for name in OMP if name in os.environ) or "not set"
    wanted = os.environ.get("EVERGAIT_ISA", "")
    slower = "unset EVERGAIT_ISA for the widest instructions of this machine" if wanted else ""
    return [
        finding,
        Finding("OMP variables", f"{omp} (evergait heeds --threads only)"),
        Finding("vector instructions", _native.ISA, "note" if slower else "ok", slower),
    ]


def available_memory(meminfo: Path = Path("/proc/meminfo"), root: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that can still be used: the machine's, or what the container leaves of its limit."""
    lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
    available = int(lines["MemAvailable"].split()[0]) * 1024
    try:
        limit = int((root / "memory.max").read_text())
        return min(available, limit - int((root / "memory.current").read_text()))
    except (OSError, ValueError):  # no limit, or `max`
        return available


def check_memory() -> list[Finding]:
    """Whether a phase at full scale fits."""
    try:
        available = available_memory()
    except (OSError, ValueError, KeyError):
        return [Finding("memory", "unknown", "note", f"a phase at full scale wants {PHASE_MEMORY / 2**20:.0f} MiB")]
    words = f"{available / 2**30:.1f} GiB available"
    if available < PHASE_MEMORY:
        fix = f"a phase at full scale wants {PHASE_MEMORY / 2**20:.0f} MiB: close other programs, or train fewer pairs"
        return [Finding("memory", words, "missing", fix)]
    if available < 4 * PHASE_MEMORY:
        return [Finding("memory", words, "note", f"room for {available // PHASE_MEMORY} phases at once at full scale")]
    return [Finding("memory", words)]


def check_folders(folder: Path) -> list[Finding]:
    """Whether runs and temporary files can be written, and how much."""
    found = []
    try:
        temporary = Path(tempfile.gettempdir())
    except OSError as error:
        found.append(Finding("temporary files", str(error), "missing", "set TMPDIR to a folder that can be written"))
    else:
        found.append(check_folder("temporary files", temporary, "set TMPDIR to a folder that can be written"))
    return [*found, check_folder("folder of runs", folder, "choose another folder, or correct its permissions")]


def check_folder(what: str, folder: Path, fix: str) -> Finding:
    """Write a file, and take it away."""
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=existing) as file:
            file.write(b"evergait")
            file.flush()
        free = shutil.disk_usage(existing).free
    except OSError as error:
        return Finding(what, f"{existing}: {error.strerror}", "missing", fix)
    words = f"{existing}, {free / 2**30:.1f} GiB free"
    few = f"a study at full scale wants {DISK / 2**30:.0f} GiB" if free < DISK else ""
    return Finding(what, words, "note" if few else "ok", few)


def check_physics() -> list[Finding]:
    """Whether MuJoCo steps."""
    import mujoco

    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody/></mujoco>")
    mujoco.mj_step(model, mujoco.MjData(model))
    return [Finding("physics", f"MuJoCo {mujoco.__version__} steps")]


def check_rendering() -> list[Finding]:
    """Whether robots without a plane can be filmed: a picture is drawn, in a process that may crash."""
    code = "import mujoco; mujoco.Renderer(mujoco.MjModel.from_xml_string('<mujoco/>'), 8, 8).close()"
    environment = {**os.environ, "MUJOCO_GL": "egl"}
    command = [sys.executable, "-c", code]
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=60)  # noqa: S603
        if done.returncode == 0:
            return [Finding("rendering", "EGL works")]
    fix = "apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri (only for films of Ant, Humanoid and the like)"
    return [Finding("rendering", "no OpenGL", "note", fix)]


def check_tools() -> list[Finding]:
    """Compiler and optional packages."""
    compiler = shutil.which("g++") or shutil.which("c++")
    fix = "" if compiler else "apt-get install g++ (only to build from source)"
    found = [Finding("compiler", compiler or "none", "ok" if compiler else "note", fix)]
    extras = (("ray", "ray"), ("tensorboardX", "tensorboard"), ("wandb", "wandb"), ("optuna", "tune"))
    for package, extra in (*extras, ("imageio-ffmpeg", "video"), ("huggingface_hub", "hub")):
        try:
            found.append(Finding(package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            found.append(Finding(package, "not installed", "note", f"pip install 'evergait[{extra}]'"))
    return found
