"""The settings of a run: one frozen dataclass, written as TOML, set by flags, checked once."""

import functools
import importlib.resources
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from evergait.core.data import (
    MOST_ROWS,
    MOST_TASKS,
    NUMBER_BYTES,
    added,
    check_finite,
    from_data,
    require,
    settled,
    to_data,
    to_toml,
    within,
)
from evergait.core.errors import EvergaitError, nearest
from evergait.core.files import JSON_LIMIT, LEDGER_LIMIT, LIMIT, as_path, read_toml
from evergait.core.plugins import import_trusted, plugin_of
from evergait.core.plugins import trust as trust_module
from evergait.engines import ENGINES, engine_name
from evergait.es import Optimizer, Plain, Shaping
from evergait.methods import Method, Naive, Stage, check_parts
from evergait.policy import Policy, PolicyConfig
from evergait.tasks import Task, is_registered, parse_stream, parse_task, spaces, trust

FORMAT = 1


@dataclass(frozen=True)
class Evaluation:
    """When and how the unperturbed policy is measured."""

    every: int = 10
    """Generations between evaluations; there is always one before the first and after the last generation."""
    every_steps: int = 0
    """Where `steps` is set: the steps between evaluations, in place of generations."""
    episodes: int = 10
    """Episodes per task, with the same seeds every time."""
    random_policies: int = 20
    """Fresh initialisations whose mean return is forward transfer's zero."""
    snapshots: int = 2
    """How many θ are kept between the start and the end of a phase, evenly spaced, to look at later."""
    cut: bool = added(False)
    """Whether evaluation episodes of all tasks are cut where the training episodes of the last generation were; the
    ledger says where."""


@dataclass(frozen=True)
class Config:
    """A run: one policy, one stream, one method."""

    stream: tuple[str, ...] = ("Hopper-v5", "Swimmer-v5", "Walker2d-v5")
    """Tasks in the order of training: Gymnasium ids, with variants if wanted (Hopper-v5@gravity=0.5); or the name of a
    stream (`evergait tasks` lists them), or the paper's letters (H>S>W)."""
    tasks: tuple[str, ...] = ()
    """Further tasks that the policy knows and is evaluated on, beside those of the stream."""
    seed: int = 0
    """Decides every random number of the run."""
    generations: int = 1000
    """Generations per task, K."""
    steps: int = 0
    """A length in place of generations: a phase ends with the generation in which its environment steps (replay and
    collection count, evaluations do not) reach this many; 0 counts generations."""
    pairs: int = 384
    """Mirrored pairs ±ε per generation; the population λ is twice this."""
    sigma: float = 0.1
    """Standard deviation of the perturbations, σ."""
    anneal: float = added(1.0)
    """What is left of σ and of the optimizer's learning rate at the end of a phase, to which both fall evenly; 1 leaves
    them as they are."""
    starts: int = added(1)
    """How often a phase begins: first with what it is given, then with fresh layers for what it learns; the start whose
    members do best goes on."""
    starting: float = added(0.25)
    """Share of a phase that its starts take together, if there are several."""
    shaping: Shaping = "centered-ranks"
    """How returns become utilities."""
    episodes: int = 1
    """Episodes per candidate; their mean return is its fitness."""
    horizon: int = 0
    """Cut training episodes after this many steps; 0 leaves the task's own limit."""
    adaptive_horizon: bool = False
    """Cut training episodes at twice the mean length of the generation before (Salimans et al. 2017); replayed episodes
    stay whole."""
    adaptive_horizon_over: Literal["learning", "all"] = added("learning")
    """Whose lengths decide it: episodes of the task being learnt, twice their mean rounded up; or replayed ones too,
    rounded down."""
    resets: Literal["pair", "member"] = added("pair")
    """Whether both signs of a pair meet the same initial states, or every member its own."""
    healthy_bonus: dict[str, float] = field(default_factory=dict)
    """Factor on a task's healthy bonus in training, such as Hopper-v5 0.5; a variant of it has its own. Evaluation
    always has all of it."""
    perturb: Literal["active", "layers", "all"] = "active"
    """Whether candidates perturb only the parameters that their task uses; all of the layers that it uses, idle outputs
    of a shared head too; or all of θ."""
    carry: Literal["last", "best", "best-population"] = "last"
    """Which θ of a task the next one starts from: the last, the best evaluated on it, or the one that came of the
    generation whose members had the best mean return on it."""
    engine: str = "auto"
    """What simulates episodes (planar, mujoco, gymnasium, or a plug-in's); auto takes the fastest that supports the
    task."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    optimizer: Optimizer = field(default_factory=Plain)
    method: Method = field(default_factory=Naive)
    evaluation: Evaluation = field(default_factory=Evaluation)
    plugins: tuple[str, ...] = added(())
    """Python modules of your own that add methods, optimizers, engines or tasks; --import names them on the command
    line."""

    def __post_init__(self) -> None:
        """Refuse what is of another kind than its field, such as steps=None, wherever it comes from."""
        for name, value in settled(self).items():
            object.__setattr__(self, name, value)
        bonus = {_canonical(name): factor for name, factor in self.healthy_bonus.items()}
        object.__setattr__(self, "healthy_bonus", bonus)

    def trust(self) -> None:
        """Whoever trains a config trusts the modules that it names."""
        for module in self.plugins:
            trust_module(module)
        for task in (*self.stream_tasks, *map(parse_task, self.tasks)):
            trust(task)

    def with_plugins(self) -> "Config":
        """The same, with the modules that its parts come from."""
        parts = [type(part) for part in (*self.method.parts, self.optimizer)]
        modules = {plugin_of(part) for part in (*parts, ENGINES.get(self.engine))}
        return replace(self, plugins=tuple(sorted({*self.plugins, *modules} - {""})))

    @property
    def stream_tasks(self) -> tuple[Task, ...]:
        """The stream, parsed."""
        return parse_stream(self.stream)

    def stages(self) -> tuple[Stage, ...]:
        """The phases of this run, in order."""
        return self.method.stages(self.stream_tasks, self.pairs, self.seed)

    def build_policy(self) -> Policy:
        """The policy for all tasks of this run."""
        return Policy.build(self.policy, (*self.stream_tasks, *map(parse_task, self.tasks)))

    def check(self) -> None:
        """Raise EvergaitError for the first setting that cannot work, before any work starts."""
        _check_engine(self.engine)
        require(0 <= self.seed < 2**64, "seed", self.seed, "from 0 to 2⁶⁴ - 1")
        check_finite(to_data(self))
        within(self.generations, 1, 2**32 - 1, "generations")
        within(self.pairs, 1, MOST_ROWS // 2, "pairs")
        require(self.sigma > 0, "sigma", self.sigma, "above 0")
        require(0 < self.anneal <= 1, "anneal", self.anneal, "above 0 and at most 1")
        within(self.starts, 1, 2**16, "starts")
        require(0 < self.starting < 1, "starting", self.starting, "above 0 and below 1")
        within(self.episodes, 1, 2**16, "episodes")
        within(self.horizon, 0, 2**31 - 1, "horizon")
        within(self.evaluation.every, 1, 2**32 - 1, "evaluation.every")
        within(self.evaluation.episodes, 1, 2**16, "evaluation.episodes")
        self._check_steps()
        within(self.evaluation.random_policies, 1, 2**16, "evaluation.random_policies")
        within(self.evaluation.snapshots, 0, 2**16, "evaluation.snapshots")
        within(len(self.tasks), 0, MOST_TASKS, "tasks (how many)")
        self.policy.check()
        self.optimizer.check()
        stages = self.stages()
        alone = all(len(stage.tasks) == 1 for stage in stages)
        right = "false where several tasks are learnt in turn: one's episodes would be cut by another's lengths"
        require(alone or not self.adaptive_horizon, "adaptive_horizon", self.adaptive_horizon, right)
        right = "last or best where several tasks are learnt in turn: their mean returns cannot be compared"
        require(alone or self.carry != "best-population", "carry", self.carry, right)
        right = "last with policy.normalise: the statistics that an earlier θ had are not kept"
        require(self.carry == "last" or not self.policy.normalise, "carry", self.carry, right)
        self._check_starts(alone)
        if not self.adaptive_horizon:
            over, right = self.adaptive_horizon_over, "'learning' unless adaptive_horizon is true"
            require(over == "learning", "adaptive_horizon_over", over, right)
            right = "false unless training episodes are cut, by horizon or adaptive_horizon"
            require(not self.evaluation.cut or self.horizon > 0, "evaluation.cut", self.evaluation.cut, right)
        check_parts([type(part) for part in self.method.parts], "method")
        self.method.check(stages)
        partial = any(batch.update == "shared" for s in stages for batch in self.method.plan(s, 1, s.batches, {}))
        right = "active or layers where replay updates shared layers only"
        require(not partial or self.perturb != "all", "perturb", self.perturb, right)
        policy = self.build_policy()
        policy.check()  # asks Gymnasium for every task's spaces, which refuses what has none
        self._check_sizes(policy)
        names = [task.name for task in policy.tasks]
        for name, factor in self.healthy_bonus.items():
            if name not in names and not is_registered(parse_task(name)):  # a preset may speak of more than this stream
                raise EvergaitError(f"healthy_bonus: the run has no task {name!r}{nearest(name, names)}")
            require(factor >= 0, f"healthy_bonus.{name}", factor, "at least 0")
        for task in policy.tasks:
            engine_name(self.engine, task)
        if self.steps:
            self._check_evaluations()

    def _check_starts(self, alone: bool) -> None:
        """Starts must be comparable."""
        if self.starts > 1:
            right = "1 where several tasks are learnt in turn: returns on different tasks cannot be compared"
            require(alone, "starts", self.starts, right)
            right = "1 with adaptive_horizon: a start's episodes would be cut by another's lengths"
            require(not self.adaptive_horizon, "starts", self.starts, right)
            if not self.steps:
                self._check_room(1)

    def _check_room(self, most: int) -> None:
        """Every start, and the one that goes on, has a generation of its own, which takes so much length at most."""
        if self.starts == 1:
            return
        if any(part.pauses for part in self.method.parts):
            most *= 2  # the generation that would tell may be a replay
        length = self.phase_length
        room = int(self.starting * length / most)
        right = (
            f"at most {max(room, 1)}: each needs a generation, and all of them together have the share `starting` "
            f"({self.starting}) of {length} {self.unit}"
        )
        require(self.starts <= room, "starts", self.starts, right)
        right = f"at most {max(length - most, 0) / length:g}, so that the best start has a generation after them"
        require(self.starting * length + most <= length, "starting", self.starting, right)

    def _check_sizes(self, policy: Policy) -> None:
        """What will be held in memory, and that what will be written can be read again."""
        first, last = self.stages()[0], self.stages()[-1]
        n_rows = max(sum(b.n_pairs for b in self.method.plan(s, 1, s.batches, {})) for s in (first, last))
        right = (
            f"fewer: with pairs and replay they are {2 * n_rows * self.episodes} of a generation, at most {MOST_ROWS}"
        )
        require(2 * n_rows * self.episodes <= MOST_ROWS, "episodes", self.episodes, right)
        evaluation, n_tasks = self.evaluation, len(policy.tasks)
        line = NUMBER_BYTES * n_tasks * max(evaluation.episodes, evaluation.random_policies)
        right = f"fewer: a line of the ledger would have {line} bytes, at most {JSON_LIMIT}"
        require(line <= JSON_LIMIT, "evaluation.episodes", evaluation.episodes, right)
        every = "every_steps" if self.steps else "every"
        between = getattr(evaluation, every)
        n_evaluations = self.phase_length // between + 2
        ledger = n_evaluations * (NUMBER_BYTES * n_tasks * evaluation.episodes + 400)
        right = f"greater: a ledger of {n_evaluations} evaluations would have {ledger} bytes, at most {LEDGER_LIMIT}"
        require(ledger <= LEDGER_LIMIT, f"evaluation.{every}", between, right)
        snapshots = min(evaluation.snapshots, n_evaluations)
        state = sum(part.nbytes for part in self.optimizer.start(1).values())
        rival = 4 + state if self.starts > 1 else 0
        size = (4 * (2 + snapshots) + 16 + state + rival) * policy.n_parameters
        right = f"smaller, or have fewer evaluation.snapshots: a checkpoint would have {size} bytes, at most {LIMIT}"
        require(size <= LIMIT, "policy", f"{policy.n_parameters} parameters", right)
        kept = max(sum(map(self._kept_bytes, stage.earlier)) for stage in self.stages())
        right = f"one that keeps fewer observations: those of earlier tasks would have {kept} bytes, at most {LIMIT}"
        require(kept <= LIMIT, "method", self.method.name, right)

    def _kept_bytes(self, task: Task) -> int:
        """What a checkpoint has of an earlier task, if its episodes are as long as they can be."""
        space, parts = spaces(task), self.method.parts
        n_rows = sum(min(part.n_kept, part.n_recorded * (space.n_steps or part.n_kept)) for part in parts)
        return 4 * n_rows * (space.n_observations + space.n_actions)

    def _check_steps(self) -> None:
        steps, every = self.steps, self.evaluation.every_steps
        within(steps, 0, 2**63 - 1, "steps")
        if not steps:
            require(every == 0, "evaluation.every_steps", every, "0 unless steps is set")
            return
        right = f"a divisor of steps ({steps:,}), which gives every phase equally many evaluations"
        require(0 < every <= steps and steps % every == 0, "evaluation.every_steps", every, right)

    def _check_evaluations(self) -> None:
        """No evaluation may be skipped: then all ledgers have equally many, at the same steps."""
        every, most = self.evaluation.every_steps, 0
        n_recorded = sum(part.n_recorded for part in self.method.parts)
        for stage in self.stages():
            limits = {task: spaces(task).n_steps for task in (*stage.tasks, *stage.earlier)}
            endless = [task.name for task, limit in limits.items() if not limit]
            right = f"0 for {', '.join(endless)}, whose episodes have no time limit"
            require(not endless or (self.horizon > 0 and not n_recorded), "steps", self.steps, right)
            longest = max(limits.values())
            n_pairs = sum(batch.n_pairs for batch in self.method.plan(stage, 1, stage.batches, {}))
            generation = 2 * n_pairs * self.episodes * min(filter(None, (longest, self.horizon)))
            most = max(most, generation, n_recorded * longest + 1)
        right = f"at least {most}, what a generation or a collection may take, or an evaluation could be skipped"
        require(every >= most, "evaluation.every_steps", every, right)
        self._check_room(most)

    @property
    def phase_length(self) -> int:
        """How long a phase is: environment steps if they decide it, else generations."""
        return self.steps or self.generations

    @property
    def unit(self) -> str:
        """What a phase's length counts."""
        return "steps" if self.steps else "generations"

    def in_generations(self) -> "Config":
        """The same, with a length that counts generations."""
        return replace(self, steps=0, evaluation=replace(self.evaluation, every_steps=0))

    def to_toml(self) -> str:
        """This config as a TOML file."""
        return to_toml({"format": FORMAT, **to_data(self)})


def read_config(path: str | Path, base: Config | None = None) -> Config:
    """A config from a TOML file; fields that it lacks come from `base`, or are the defaults."""
    path = as_path(path, "path")
    return config_from_data(read_toml(path), str(path), base)


def _canonical(name: str) -> str:
    """A task's name however it is spelt; what is none is told by `check`."""
    try:
        return parse_task(name).name
    except EvergaitError:
        return name


def _check_engine(name: str) -> None:
    if name != "auto" and name not in ENGINES:
        raise EvergaitError(f"engine: is {name!r}{nearest(name, ('auto', *ENGINES))}")


def trust_file(path: Path) -> None:
    """Let the modules that a TOML file of settings names be imported: its user is about to train it."""
    for module in named_plugins(read_toml(path)):
        trust_module(module)


def named_plugins(data: Mapping[str, Any]) -> list[str]:
    """The modules that parsed TOML names."""
    named = data.get("plugins", [])
    return [str(module) for module in named] if isinstance(named, list) else []


@functools.cache
def presets() -> dict[str, Any]:
    """Name → the settings that presets.toml has under it."""
    return tomllib.loads((importlib.resources.files("evergait") / "presets.toml").read_text())


def preset(name: str) -> Config:
    """A config that ships with the package."""
    known = presets()
    if name not in list(known):
        raise EvergaitError(f"preset: there is no preset {name!r}{nearest(name, sorted(known))}")
    return config_from_data(known[name], name)


def config_from_data(data: Mapping[str, Any], where: str, base: Config | None = None) -> Config:
    """A config from parsed TOML; `preset = "name"` in it is what the rest of it changes.

    A length in generations takes the place of one in steps that it starts from.
    """
    data = dict(data)
    version = data.pop("format", FORMAT)
    if not isinstance(version, int) or not 1 <= version <= FORMAT:
        raise EvergaitError(f"{where}: format is {version!r}; this evergait reads format 1 to {FORMAT}")
    if "preset" in data:
        base = preset(str(data.pop("preset")))
    import_trusted(named_plugins(data), f"{where}: plugins")
    try:
        base = base or Config()
        by_generations = "generations" in data and not data.get("steps")
        config = from_data(Config, data, base=base.in_generations() if by_generations else base)
        _check_engine(config.engine)
        return config
    except EvergaitError as error:
        raise EvergaitError(f"{where}: {error}") from error
