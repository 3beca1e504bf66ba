"""Versions of the parts that decide a phase's bits.

A fix that changes the bits of one part raises that part's version, and the version is in the identity of every phase
that uses the part: so these phases get new names, and all others keep theirs. Version 1 is left out of identities.
Methods and optimizers have `version` in their class; the parts that are no classes have theirs here.
"""

from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any

from evergait.core.data import Family
from evergait.core.fingerprint import MACHINE_ENGINES, libm_fingerprint
from evergait.core.plugins import plugin_of, plugin_version
from evergait.engines import ENGINES
from evergait.es.optimizers import Optimizer
from evergait.methods import Method

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
    for name in sorted(set(dict(identity.get("engine", {})).values())):
        found[f"engine.{name}"] = VERSIONS.get(f"engine.{name}", 1)
    return found


def _name(options: object) -> str:
    return str(options.get("name", "")) if isinstance(options, Mapping) else ""


def plugin_versions(identity: Mapping[str, Any], named: Iterable[str]) -> dict[str, str]:
    """Module → version, for every plug-in that a phase uses: whose parts it has, or that has no parts but tasks."""
    parts = [(family, name) for family in FAMILIES for name in _name(identity.get(family)).split("+")]
    used = {plugin_of(FAMILIES[family].members.get(name)) for family, name in parts}
    used |= {plugin_of(ENGINES.get(name)) for name in dict(identity.get("engine", {})).values()}
    owners = {plugin_of(member) for family in FAMILIES.values() for member in family.members.values()}
    owners |= {plugin_of(engine) for engine in ENGINES.values()}
    return {module: plugin_version(module) for module in sorted(used | (set(named) - owners)) if module}


def with_versions(identity: Mapping[str, Any], is_recorded: bool = False) -> dict[str, Any]:
    """An identity, complete: with all that decides bits beside settings. What a method records comes from Gymnasium."""
    whole = {**identity, "algorithm": ALGORITHM, "mujoco": metadata.version("mujoco")}
    if is_recorded or set(identity["engine"].values()) & MACHINE_ENGINES:
        whole["libm"] = libm_fingerprint()
    later = {name: version for name, version in part_versions(identity).items() if version != 1}
    return {**whole, "versions": later} if later else whole


def outdated(identity: Mapping[str, Any]) -> list[str]:
    """What a stored phase was trained with and would not be trained with now, in words; empty if it is up to date."""
    now: dict[str, Any] = {"algorithm": ALGORITHM, "mujoco": metadata.version("mujoco"), **part_versions(identity)}
    if "libm" in identity:
        now["libm"] = libm_fingerprint()
    before = {**dict.fromkeys(now, 1), **identity.get("versions", {})}
    before |= {key: identity.get(key) for key in ("algorithm", "mujoco", "libm")}
    return [f"{part} {before[part]}, now {now[part]}" for part in now if before[part] != now[part]]
