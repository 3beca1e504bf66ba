"""A task is a Gymnasium id plus an optional variant, spelt `Hopper-v5` or `Hopper-v5@gravity=0.5,friction=0.8`.

Streams are literals built from shorter literals; any list of tasks is a stream, these have names. A variant is applied
to a MuJoCo environment as factors on its model and on its reset noise.
"""

import dataclasses
import functools
import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evergait.core.data import MOST_PHASES, check_count
from evergait.core.errors import EvergaitError, nearest


@dataclass(frozen=True)
class Variant:
    """Factors on a task's physics; all ones (and no noise) is the task as Gymnasium ships it."""

    gravity: float = 1.0
    """Factor on gravity."""
    friction: float = 1.0
    """Factor on the sliding friction of every geom."""
    mass: float = 1.0
    """Factor on the mass and inertia of every body."""
    strength: float = 1.0
    """Factor on the gear of every actuator."""
    reset_noise: float = 1.0
    """Factor on the scale of the noise in the initial state."""
    observation_noise: float = 0.0
    """Standard deviation of normal noise added to every observation that the policy sees."""

    def __post_init__(self) -> None:
        for name, value in vars(self).copy().items():
            object.__setattr__(self, name, _number("variant", name, value))

    @property
    def changes_model(self) -> bool:
        """Whether the physics differ from the stock model.

        >>> MOON.changes_model, Variant(observation_noise=0.1).changes_model
        (True, False)
        """
        return (self.gravity, self.friction, self.mass, self.strength) != (1.0, 1.0, 1.0, 1.0)


def _number(where: str, field: str, value: Any) -> float:
    """A number that a field of a variant can have, or what spells one."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    positive = field in ("mass", "strength", "friction")
    if not 0.0 <= number < math.inf or (positive and number == 0.0):
        bound = "above 0" if positive else "of at least 0"
        raise EvergaitError(f"{where}: {field} is {value!r}; it must be a finite number {bound}")
    return number


MOON = Variant(gravity=0.1654)
MARS = Variant(gravity=0.3783)
ICE = Variant(friction=0.2)
HEAVY = Variant(mass=1.5)
WEAK = Variant(strength=0.7)
NOISY = Variant(observation_noise=0.05)

VARIANTS = {"moon": MOON, "mars": MARS, "ice": ICE, "heavy": HEAVY, "weak": WEAK, "noisy": NOISY}

_FIELDS = tuple(field.name for field in dataclasses.fields(Variant))


@dataclass(frozen=True)
class Task:
    """One environment: a Gymnasium id and a variant."""

    id: str
    variant: Variant = Variant()

    @functools.cached_property
    def name(self) -> str:
        """The canonical spelling, which `parse_task` reads back.

        >>> Task("Hopper-v5", Variant(friction=0.5, gravity=2.0)).name
        'Hopper-v5@gravity=2.0,friction=0.5'
        """
        changed = [f"{key}={value!r}" for key in _FIELDS if (value := getattr(self.variant, key)) != _DEFAULTS[key]]
        return f"{self.id}@{','.join(changed)}" if changed else self.id

    def __str__(self) -> str:
        return self.name


_DEFAULTS = dataclasses.asdict(Variant())
ENDING = ".toml"
"""Of the files that describe robots of one's own."""


def parse_task(text: str) -> Task:
    """Read `ID`, `ID@name` or `ID@field=value,...`.

    >>> parse_task("Hopper-v5@moon").variant.gravity
    0.1654
    """
    if not isinstance(text, str):
        raise EvergaitError(f"task {text!r}: is no text; write a Gymnasium id such as Hopper-v5")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise EvergaitError(f"task {text!r}: is not UTF-8, in which files are written; rename it") from error
    identifier, spelling = _parts(text.strip())
    if not identifier:
        raise EvergaitError(f"task {text!r}: empty name; write a Gymnasium id such as Hopper-v5")
    variant = Variant()
    for part in filter(None, spelling.split(",")):
        variant = _with_part(text, variant, part.strip())
    return Task(identifier, variant)


def as_task(task: Task | str) -> Task:
    """A task, or the one that a text names."""
    return task if isinstance(task, Task) else parse_task(task)


def _parts(text: str) -> tuple[str, str]:
    """A task's id and how its variant is spelt. Folders of a robot's file may have an @ in their names, too.

    >>> _parts("lab@home/crawler.toml@moon"), _parts("Hopper-v5@moon")
    (('lab@home/crawler.toml', 'moon'), ('Hopper-v5', 'moon'))
    """
    file, ending, rest = text.rpartition(ENDING)
    if ending and rest[:1] in ("", "@"):
        return file + ending, rest[1:]
    identifier, _, spelling = text.partition("@")
    return identifier, spelling


def _with_part(text: str, variant: Variant, part: str) -> Variant:
    key, equals, value = part.partition("=")
    if not equals:
        if key not in VARIANTS:
            raise EvergaitError(f"task {text!r}: no variant is called {key!r}{nearest(key, VARIANTS)}")
        named = VARIANTS[key]
        changes = {name: getattr(named, name) for name in _FIELDS if getattr(named, name) != _DEFAULTS[name]}
        return dataclasses.replace(variant, **changes)
    if key not in _FIELDS:
        raise EvergaitError(f"task {text!r}: a variant has no field {key!r}{nearest(key, _FIELDS)}")
    return dataclasses.replace(variant, **{key: _number(f"task {text!r}", key, value)})


HOPPER, SWIMMER, WALKER2D = (Task(name) for name in ("Hopper-v5", "Swimmer-v5", "Walker2d-v5"))
PAPER_TASKS = (HOPPER, SWIMMER, WALKER2D)
LETTERS = {"H": HOPPER, "S": SWIMMER, "W": WALKER2D, "C": Task("HalfCheetah-v5")}


def all_orders(tasks: Sequence[Task]) -> tuple[tuple[Task, ...], ...]:
    """Every order of a set of tasks.

    >>> len(all_orders(PAPER_TASKS))
    6
    """
    return tuple(itertools.permutations(tasks))


PAPER_ORDERS = all_orders(PAPER_TASKS)

STREAMS: dict[str, tuple[Task, ...]] = {
    "paper": PAPER_TASKS,
    **{"".join(task.id[0].lower() for task in order): order for order in PAPER_ORDERS},
    "hsh": (HOPPER, SWIMMER, HOPPER),
    "gravity": tuple(parse_task(f"Hopper-v5@gravity={g}") for g in (1.0, 0.5, 1.5)),
    "seasons": (WALKER2D, parse_task("Walker2d-v5@ice"), parse_task("Walker2d-v5@heavy"), WALKER2D),
}


def parse_stream(words: Sequence[str]) -> tuple[Task, ...]:
    """Read a stream: task names, one name from `STREAMS`, or the paper's letters.

    >>> [task.id for task in parse_stream(["H>S>H"])]
    ['Hopper-v5', 'Swimmer-v5', 'Hopper-v5']
    """
    if not words:
        raise EvergaitError("stream: it is empty; give at least one task, such as Hopper-v5")
    if len(words) == 1 and words[0] in STREAMS:
        return STREAMS[words[0]]
    check_count("stream", max(len(words), words[0].count(">")), MOST_PHASES)
    if len(words) == 1 and ">" in words[0]:
        return tuple(LETTERS.get(part.strip()) or parse_task(part) for part in words[0].split(">"))
    return tuple(parse_task(word) for word in words)


def short(task: str) -> str:
    """A task as people and the paper say it.

    >>> short("Hopper-v5@gravity=0.5")
    'Hopper@gravity=0.5'
    """
    return task.replace("-v5", "")


_MODEL_FIELDS = ("gravity", "friction", "mass", "strength")


def has_model(env: Any) -> bool:
    """Whether a Gymnasium environment simulates with MuJoCo."""
    mujoco = sys.modules.get("mujoco")  # not imported for the question's sake: who has a model has imported it
    return mujoco is not None and isinstance(getattr(env.unwrapped, "model", None), mujoco.MjModel)


def apply_to_model(variant: Variant, model: Any) -> None:
    """Multiply gravity, sliding friction, masses and gears of a model, in place."""
    # A factor of one must leave every bit alone, and mj_setConst recomputes constants that it need not.
    if variant.gravity != 1.0:
        model.opt.gravity *= variant.gravity
    if variant.friction != 1.0:
        model.geom_friction[:, 0] *= variant.friction
    if variant.mass != 1.0:
        model.body_mass *= variant.mass
        model.body_inertia *= variant.mass
    if variant.strength != 1.0:
        model.actuator_gear *= variant.strength
    if (variant.mass, variant.strength) != (1.0, 1.0):
        import mujoco

        mujoco.mj_setConst(model, mujoco.MjData(model))  # inverse weights, subtree masses, acc0


def apply_to_environment(variant: Variant, env: Any) -> None:
    """Change a Gymnasium environment in place: its model, if it has one, and the scale of its reset noise.

    Observation noise is added by whoever steps the environment. `unsupported` says beforehand what cannot be changed.
    """
    inner = env.unwrapped
    if variant.changes_model:
        apply_to_model(variant, inner.model)
    if variant.reset_noise != 1.0:
        inner._reset_noise_scale *= variant.reset_noise


def unsupported(task: Task, env: Any) -> str:
    """Why a Gymnasium environment cannot take the task's variant, or an empty string if it can."""
    inner, variant = env.unwrapped, task.variant
    if variant.changes_model and not has_model(env):
        changed = [name for name in _MODEL_FIELDS if getattr(variant, name) != 1.0]
        return f"task {task.name!r}: {task.id} is not a MuJoCo environment, so it cannot vary {', '.join(changed)}"
    if variant.reset_noise != 1.0 and not hasattr(inner, "_reset_noise_scale"):
        return f"task {task.name!r}: {task.id} has no scale of reset noise, so it cannot vary reset_noise"
    if variant.reset_noise != 1.0 and not math.isfinite(2 * inner._reset_noise_scale * variant.reset_noise):
        return f"task {task.name!r}: reset_noise is {variant.reset_noise!r}; its noise must be finite"
    return ""
