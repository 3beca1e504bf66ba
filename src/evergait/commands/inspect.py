"""`evergait tasks`, `methods` and `doctor`: what there is, and whether this machine is ready."""

import dataclasses
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import gymnasium
import mujoco

from evergait.commands.base import console, print_json, print_table
from evergait.data import Family
from evergait.engines import available, get_engine
from evergait.methods import Method
from evergait.optimizers import Optimizer
from evergait.run import default_threads
from evergait.tasks import STREAMS, VARIANTS, Task, spaces
from evergait.versions import versions
from evergait.workers import WorkersChoice


@dataclass(frozen=True)
class Tasks:
    """List tasks, variants and named streams."""

    json: bool = False
    """Print JSON, for programs."""

    def run(self) -> int:
        """Print what there is."""
        known = sorted(
            spec.id for spec in gymnasium.registry.values() if "mujoco" in str(spec.entry_point) and spec.version == 5
        )
        rows = [self._row(Task(name)) for name in known]
        streams = {name: [task.name for task in stream] for name, stream in STREAMS.items()}
        variants = {name: Task("", variant).name.removeprefix("@") for name, variant in VARIANTS.items()}
        if self.json:
            print_json({"tasks": rows, "streams": streams, "variants": variants})
            return 0
        print_table("Tasks", ["task", "observations", "actions", "steps", "engines"], [list(r.values()) for r in rows])
        console.print("Any other Gymnasium id with vector observations works on the gymnasium engine.\n", style="dim")
        print_table("Variants, as in Hopper-v5@moon or Hopper-v5@gravity=0.5", ["name", "same as"], variants.items())
        console.print()
        print_table("Streams", ["name", "tasks"], [(name, " > ".join(tasks)) for name, tasks in streams.items()])
        return 0

    def _row(self, task: Task) -> dict[str, Any]:
        space = spaces(task)
        engines = [name for name in available() if not get_engine(name).refuses(task)]
        return {
            "task": task.name,
            "observations": space.n_observations,
            "actions": space.n_actions,
            "steps": space.n_steps,
            "engines": ", ".join(engines),
        }


@dataclass(frozen=True)
class Methods:
    """List methods, optimizers and kinds of workers with their options."""

    json: bool = False
    """Print JSON, for programs."""

    def run(self) -> int:
        """Print what there is."""
        families: dict[str, type[Family]] = {"method": Method, "optimizer": Optimizer, "workers": WorkersChoice}
        data = {
            kind: {n: _options(member) for n, member in family.members.items()} for kind, family in families.items()
        }
        if self.json:
            print_json(data)
            return 0
        for kind, family in families.items():
            rows = []
            for name, options in data[kind].items():
                member: Any = family.members[name]
                rows.append((name, (member.__doc__ or "").splitlines()[0]))
                flag = f"--{kind}.{name}" if getattr(member, "needs", "") else f"--{kind}"  # it is never alone
                rows += [("", f"{flag}.{option.replace('_', '-')} {default}") for option, default in options.items()]
            print_table(f"--{kind}", ["name", "what it does, and its options with their defaults"], rows)
            console.print()
        console.print("Methods are joined by +: --method replay+distill --method.distill.steps 20.", style="dim")
        return 0


def _options(member: Any, prefix: str = "") -> dict[str, Any]:
    """Options by dotted name, with their defaults."""
    options: dict[str, Any] = {}
    for field in dataclasses.fields(member):
        if dataclasses.is_dataclass(field.default_factory):
            options |= _options(field.default_factory, f"{prefix}{field.name}.")
        else:
            options[prefix + field.name] = field.default
    return options


@dataclass(frozen=True)
class Doctor:
    """Check whether this machine is ready, and say how to mend what is not."""

    json: bool = False
    """Print JSON, for programs."""

    def run(self) -> int:
        """Print findings; exit code 1 if something needed is missing."""
        findings = [finding for check in CHECKS for finding in check()]
        if self.json:
            print_json([dataclasses.asdict(finding) for finding in findings])
        else:
            rows = [(f.status, f.what, f.found, f.mend) for f in findings]
            print_table("", ["", "what", "found", "how to mend it"], rows)
        return 1 if any(finding.status == "missing" for finding in findings) else 0


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    found: str
    status: str = "ok"
    """ok, note (works without it) or missing."""
    mend: str = ""


def check_versions() -> list[Finding]:
    """Python and the packages that decide bits or speed, and what they run on."""
    return [Finding(name, value) for name, value in versions().items()]


def check_machine() -> list[Finding]:
    """Processors and memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    few = "note" if memory < 2 else "ok"
    return [
        Finding("threads", str(default_threads())),
        Finding("memory", f"{memory:.1f} GiB", few, "" if few == "ok" else "studies want 2 GiB; use --jobs 1"),
    ]


def check_physics() -> list[Finding]:
    """Whether MuJoCo steps."""
    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody/></mujoco>")
    mujoco.mj_step(model, mujoco.MjData(model))
    return [Finding("physics", f"MuJoCo {mujoco.__version__} steps")]


def check_rendering() -> list[Finding]:
    """Whether robots without a plane can be filmed."""
    code = "import mujoco; mujoco.Renderer(mujoco.MjModel.from_xml_string('<mujoco/>'), 8, 8).close()"
    environment = {**os.environ, "MUJOCO_GL": "egl"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)  # noqa: S603
    if done.returncode == 0:
        return [Finding("rendering", "EGL works")]
    mend = "apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri (only for films of Ant, Humanoid and the like)"
    return [Finding("rendering", "no OpenGL", "note", mend)]


def check_tools() -> list[Finding]:
    """Compiler and optional packages."""
    compiler = shutil.which("g++") or shutil.which("c++")
    mend = "" if compiler else "apt-get install g++ (only to build from source)"
    found = [Finding("compiler", compiler or "none", "ok" if compiler else "note", mend)]
    extras = (("ray", "ray"), ("tensorboardX", "tensorboard"), ("wandb", "wandb"), ("optuna", "tune"))
    for package, extra in (*extras, ("imageio-ffmpeg", "video")):
        try:
            found.append(Finding(package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            found.append(Finding(package, "not installed", "note", f"pip install 'evergait[{extra}]'"))
    return found


CHECKS = (check_versions, check_machine, check_physics, check_rendering, check_tools)
