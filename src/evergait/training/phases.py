"""Phases of a run: what decides their bits, and training the ones that a store does not have yet.

A fix that changes the bits of one part raises that part's version, and the version is in the identity of every phase
that uses the part: so these phases get new names, and all others keep theirs. Version 1 is left out of identities.
Methods and optimizers have `version` in their class; the parts that are no classes have theirs here.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evergait.config import Config
from evergait.core.data import Family, to_identity
from evergait.core.errors import EvergaitError
from evergait.core.plugins import code_version, is_trusted, plugin_of, plugin_version, script_version
from evergait.core.signals import interruptible
from evergait.core.versions import MACHINE_ENGINES, libm_fingerprint, version_of, versions
from evergait.engines import ENGINES, engine_name
from evergait.es import Optimizer
from evergait.methods import Method, Naive, Stage
from evergait.policy import Policy, Statistics
from evergait.store.phases import PhaseFolder, PhaseStore, identity_hash
from evergait.tasks.base import Task, parse_task
from evergait.tasks.process import code_of, registration
from evergait.tasks.robot_file import robot_digest, robot_digests
from evergait.training.evaluate import Evaluator
from evergait.training.keeping import progress
from evergait.training.observer import Observer
from evergait.training.state import State
from evergait.training.train import Trainer
from evergait.workers import Workers

ALGORITHM = 1
"""Version of everything that every phase uses and that has no version of its own: search, training loop, evaluation."""
VERSIONS: dict[str, int] = {
    "policy": 2,  # 2: tanh is right near ±√3, where it was zero
}
"""`policy`, `shaping.<name>`, `engine.<name>` → version, if it is not 1."""

FAMILIES: dict[str, type[Family]] = {"optimizer": Optimizer, "method": Method}


def part_versions(identity: Mapping[str, Any]) -> dict[str, int]:
    """Part → its version now, for every part that a phase uses; an unknown plug-in is left out.

    >>> part_versions({"shaping": "nes", "method": {"name": "replay+project"}, "engine": {"Hopper-v5": "planar"}})
    {'policy': 2, 'shaping.nes': 1, 'method.replay': 1, 'method.project': 1, 'engine.planar': 1}
    """
    found = {name: VERSIONS.get(name, 1) for name in ("policy", f"shaping.{identity.get('shaping')}")}
    for kind, family in FAMILIES.items():
        for name in _name(identity.get(kind)).split("+"):
            if name in family.members:
                found[f"{kind}.{name}"] = family.members[name].version
    engines = dict(identity.get("engine", {}))
    for name in sorted(set(engines.values())):
        found[f"engine.{name}"] = VERSIONS.get(f"engine.{name}", 1)
    still = any(parse_task(task).variant.reset_noise == 0 for task in engines)
    if "engine.planar" in found and ("robots" in identity or still):
        # 2: links that begin exactly parallel; with reset noise, none do. 3: limits and contacts that rounding decides,
        # costs of eight motors and more; Gymnasium's robots have been seen to meet neither.
        found["engine.planar"] = 3 if "robots" in identity else 2
    return found


def _name(options: object) -> str:
    return str(options.get("name", "")) if isinstance(options, Mapping) else ""


def plugin_versions(identity: Mapping[str, Any], named: Iterable[str], tasks: Iterable[Task] = ()) -> dict[str, str]:
    """Module → version, for all code of other people's that a phase uses: parts, environments, what has none of them.

    A part that the program itself defines stands by its own name.
    """
    names = [(family, name) for family in FAMILIES for name in _name(identity.get(family)).split("+")]
    parts = [FAMILIES[family].members.get(name) for family, name in names]
    environments = {code_of(task) for task in tasks}  # which processes of their own load anew
    used = {plugin_of(part) for part in parts} | environments
    used |= {plugin_of(ENGINES.get(name)) for name in dict(identity.get("engine", {})).values()}
    owners = {plugin_of(member) for family in FAMILIES.values() for member in family.members.values()}
    owners |= {plugin_of(engine) for engine in ENGINES.values()}
    modules = sorted(module for module in used | (set(named) - owners) if module and is_trusted(module))
    found = {name: code_version(name) if name in environments else plugin_version(name) for name in modules}
    return found | {
        f"__main__.{part.__name__}": version for part in parts if part and (version := script_version(part))
    }


def with_versions(identity: Mapping[str, Any], is_recorded: bool = False) -> dict[str, Any]:
    """An identity, complete: with all that decides bits beside settings. What a method records comes from Gymnasium."""
    whole = {**identity, "algorithm": ALGORITHM, "mujoco": version_of("mujoco")}
    if is_recorded or set(identity["engine"].values()) & MACHINE_ENGINES:
        whole["libm"] = libm_fingerprint()
    if "gymnasium" in identity["engine"].values():
        whole["gymnasium"] = version_of("gymnasium")
    later = {name: version for name, version in part_versions(identity).items() if version != 1}
    return {**whole, "versions": later} if later else whole


def outdated(identity: Mapping[str, Any]) -> list[str]:
    """What a stored phase was trained with and would not be trained with now, in words; empty if it is up to date.

    Code and files of other people's are not looked at: that takes whoever trains.
    """
    now: dict[str, Any] = {"algorithm": ALGORITHM, "mujoco": version_of("mujoco"), **part_versions(identity)}
    if "libm" in identity:
        now["libm"] = libm_fingerprint()
    if "gymnasium" in identity:
        now["gymnasium"] = version_of("gymnasium")
    before = {**dict.fromkeys(now, 1), **identity.get("versions", {})}
    before |= {key: identity.get(key) for key in ("algorithm", "mujoco", "libm", "gymnasium")}
    return [f"{part} {before[part]}, now {now[part]}" for part in now if before[part] != now[part]]


def changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The same of a stored identity and the one that would be trained now, with the code and files of other people's.

    >>> changed({"plugins": {"mine": "1.0"}}, {"plugins": {"mine": "1.1"}})
    ['mine 1.0, now 1.1']
    """
    keys = ("algorithm", "mujoco", "libm", "gymnasium")
    one, other = ({key: side[key] for key in keys if key in side} for side in (before, now))
    words = _differences(one, {key: other.get(key, "unknown") for key in one})
    words += _differences(before.get("versions", {}), now.get("versions", {}), 1)
    for group in ("plugins", "registered", "robots"):
        words += _differences(before.get(group, {}), now.get(group, {}))
    return words or _differences(one, other)  # what older phases do not tell is a reason only where there is no other


def _differences(before: Mapping[str, Any], now: Mapping[str, Any], missing: object = "unknown") -> list[str]:
    both = {name: (before.get(name, missing), now.get(name, missing)) for name in {**before, **now}}
    return [f"{name} {one}, now {other}" for name, (one, other) in both.items() if one != other]


log = logging.getLogger("evergait")

WAIT_SECONDS = 0.2
"""Between looks at a phase that another process trains."""


@dataclass(frozen=True)
class Phase:
    """One phase of a run: its stage, its place in the tree, and all that decides its bits."""

    stage: Stage
    parent: str
    """Hash of the phase before; empty for the first."""
    identity: dict[str, Any]

    @property
    def name(self) -> str:
        """The phase's hash."""
        return identity_hash(self.identity)


def plan_phases(config: Config) -> list[Phase]:
    """The phases of a run, in order, by hash; runs that begin alike share their first phases."""
    phases: list[Phase] = []
    policy = config.build_policy()
    for stage in config.stages():
        parent = phases[-1].name if phases else ""
        phases.append(Phase(stage, parent, _identity(config, stage, policy, parent)))
    return phases


def _identity(config: Config, stage: Stage, policy: Policy, parent: str) -> dict[str, Any]:
    """Plain data of all that decides a phase's bits: not names, threads or paths."""
    involved = [task.name for task in (*stage.tasks, *stage.earlier)]
    data = to_identity(config)
    for name in ("stream", "method"):
        del data[name]
    named = data.pop("plugins", ())
    del data["generations" if config.steps else "steps"]
    del data["evaluation"]["every" if config.steps else "every_steps"]
    if not parent and config.carry != "best-population":  # the others' θ are both kept, whatever will be carried
        del data["carry"]
    identity = {
        **data,
        "parent": parent,
        "stage": stage.index,
        "learning": [task.name for task in stage.tasks],
        "earlier": [task.name for task in stage.earlier],
        "tasks": [task.name for task in policy.tasks],
        "engine": {task.name: engine_name(config.engine, task) for task in policy.tasks},
        "healthy_bonus": {name: factor for name, factor in data["healthy_bonus"].items() if name in involved},
        "method": dict(config.method.settings(stage)),
    }
    if robots := robot_digests(policy.tasks):
        identity["robots"] = robots
    if registered := {task.name: words for task in policy.tasks if (words := registration(task))}:
        identity["registered"] = registered
    if plugins := plugin_versions(identity, named, policy.tasks):
        identity["plugins"] = plugins
    active = identity["method"]["name"].split("+")
    is_recorded = any(part.n_recorded for part in config.method.parts if part.name in active)
    return with_versions(identity, is_recorded)


def _check_robots(phase: Phase, policy: Policy) -> None:
    """A robot that was edited since the phase was planned would be stored under the other one's name."""
    planned = phase.identity.get("robots", {})
    for task in policy.tasks:
        if robot_digest(task) != planned.get(task.name, ""):
            raise EvergaitError(
                f"task {task.name!r}: its file, or one of its model, has been edited since this training was planned; "
                "put it back, or train anew"
            )


@dataclass(frozen=True)
class PhaseTrainer:
    """Trains the phases of one run into a store."""

    config: Config
    store: PhaseStore
    workers: Workers
    observers: Sequence[Observer] = ()
    checkpoint_seconds: float = 30.0
    before: PhaseFolder | None = None
    """The phase before, if it is not to be taken from the store."""

    def ensure(self, phase: Phase) -> PhaseFolder:
        """The phase, trained, here or by another process that is at it."""
        is_waiting = False
        while not (folder := self.store.folder(phase.name)).is_done():  # looked up again: it may have been packed
            with self.store.writing(phase.identity) as writer:
                if writer:
                    trainer = self._trainer(phase)
                    _check_robots(phase, trainer.policy)
                    state = trainer.train(phase.stage, self._start(phase, trainer.policy), writer)
                    _check_robots(phase, trainer.policy)
                    told = {**progress(self.config, state), "versions": versions()}
                    writer.finish(state.result(), state.metadata(), told)
                    break
            if not is_waiting:
                log.warning("waiting for another process, which trains phase %s in %s", phase.name, self.store.root)
            is_waiting = True
            with interruptible():
                time.sleep(WAIT_SECONDS)
        folder.tidy()
        return folder

    def _trainer(self, phase: Phase) -> Trainer:
        config = self.config
        if phase.identity["method"] == Naive().settings(phase.stage):  # it is shared, so it must be what it is called
            config = replace(config, method=Naive())
        policy = config.build_policy()
        engines = {task: engine_name(config.engine, task) for task in policy.tasks}
        evaluator = Evaluator(policy, engines, self.workers, config.evaluation, config.seed)
        return Trainer(config, policy, evaluator, self.workers, self.observers, self.checkpoint_seconds)

    def _start(self, phase: Phase, policy: Policy) -> State:
        """θ, statistics and memory from the parent; the optimizer and the horizon begin anew with every phase."""
        optimizer, horizon = self.config.optimizer.start(policy.n_parameters), self.config.horizon
        if not phase.parent:
            return State(policy.initial(self.config.seed), optimizer, Statistics.empty(policy.tasks), horizon=horizon)
        parent = self.before or self.store.folder(phase.parent)
        before = State.load(*parent.result(), policy, parent.path)
        has_best = self.config.carry != "last" and before.best_theta.size  # no evaluation may have had a value
        theta = before.best_theta if has_best else before.theta
        return State(theta, optimizer, before.statistics, horizon=horizon, memory=before.memory)
