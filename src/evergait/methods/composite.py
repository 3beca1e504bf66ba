"""Several methods at once: `replay+distill` has a table of options per part, and every hook goes through all."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evergait.core.arrays import Float32, Float64
from evergait.core.errors import EvergaitError
from evergait.es import Shaping
from evergait.methods.base import Batch, Collect, Context, Memory, Method, Stage, Step


@dataclass(frozen=True)
class Composite(Method):
    """Parts in the order of their names; each hook of one starts from what the one before made of it."""

    @property
    def parts(self) -> tuple[Method, ...]:
        """The methods that were joined."""
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    def check(self, stages: Sequence[Stage], where: str = "method") -> None:
        """Raise EvergaitError for options of a part that cannot work."""
        for part in self.parts:
            part.check(stages, f"{where}.{part.name}")

    def settings(self, stage: Stage) -> Mapping[str, Any]:
        """Those of the parts that do something in this phase; a single one is as if it were alone."""
        settings = {part.name: part.settings(stage) for part in self.parts}
        active = {name: part for name, part in settings.items() if part["name"] != "naive"}
        if len(active) > 1:
            return {"name": "+".join(active), **active}
        return next(iter(active.values())) if active else {"name": "naive"}

    def begin(self, context: Context, theta: Float32, memory: Memory, collect: Collect) -> Memory:
        """Every part looks back."""
        for part in self.parts:
            memory = part.begin(context, theta, memory, collect)
        return memory

    def plan(self, stage: Stage, generation: int, batches: tuple[Batch, ...], memory: Memory) -> tuple[Batch, ...]:
        """Every part may add or change batches."""
        for part in self.parts:
            batches = part.plan(stage, generation, batches, memory)
        return batches

    def utilities(
        self, batches: Sequence[Batch], fitness: Sequence[Float64], shaping: Shaping, utilities: list[Float64]
    ) -> list[Float64]:
        """Every part may change utilities."""
        for part in self.parts:
            utilities = part.utilities(batches, fitness, shaping, utilities)
        return utilities

    def combine(self, batches: Sequence[Batch], gradients: Sequence[Float64], combined: Float64) -> Float64:
        """Every part may turn the gradient."""
        for part in self.parts:
            combined = part.combine(batches, gradients, combined)
        return combined

    def after_step(self, context: Context, step: Step, theta: Float32, memory: Memory) -> tuple[Float32, Memory]:
        """Every part may move θ on."""
        for part in self.parts:
            theta, memory = part.after_step(context, step, theta, memory)
        return theta, memory


def compose(parts: tuple[type[Method], ...], where: str) -> type[Any]:
    """The composite of some methods: a dataclass with a field for each."""
    check_parts(parts, where)
    return _compose(parts)


Method.join = compose


@functools.cache
def _compose(parts: tuple[type[Method], ...]) -> type[Any]:
    fields = [(part.name, part, dataclasses.field(default=part())) for part in parts]
    name = "+".join(part.name for part in parts)
    described = {"name": name, "__doc__": f"{name}: {Composite.__doc__}"}
    title = "".join(part.__name__ for part in parts)
    return dataclasses.make_dataclass(title, fields, bases=(Composite,), namespace=described, frozen=True)


def check_parts(parts: Sequence[type[Method]], where: str) -> None:
    """Raise EvergaitError for methods that cannot be joined, or that lack one that they need."""
    names = [part.name for part in parts]
    for i, part in enumerate(parts):
        if part.name in names[:i]:
            raise EvergaitError(f"{where}: is {'+'.join(names)!r}; {part.name} may be there only once")
        if part.alone and len(parts) > 1:
            raise EvergaitError(f"{where}: is {'+'.join(names)!r}; {part.name} stands alone: {part.alone}")
        if part.needs and part.needs not in names[:i]:
            right = f"{part.needs}+{part.name}"
            raise EvergaitError(f"{where}: {part.name} needs {part.needs} before it; write {right!r}")
