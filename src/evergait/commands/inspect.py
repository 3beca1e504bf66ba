"""`evergait tasks` and `methods`: what there is."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import gymnasium

from evergait.commands.base import console, print_json, print_table
from evergait.core.data import Family
from evergait.core.plugins import import_installed
from evergait.engines import available, get_engine
from evergait.es import Optimizer
from evergait.methods import Method
from evergait.tasks import STREAMS, VARIANTS, Task, spaces
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
        import_installed()
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
