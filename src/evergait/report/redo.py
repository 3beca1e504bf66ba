"""Everything that is needed to do it again: commands, versions, seeds, settings."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from evergait.core.files import parse_toml
from evergait.core.versions import in_words, versions
from evergait.store.phases import PhaseFolder
from evergait.studies.base import SHIPPED, read_study, shipped_studies
from evergait.studies.cells import seeds_of, study_cells
from evergait.studies.folder import is_study, read_description
from evergait.studies.results import Entry, Results


@dataclass(frozen=True)
class Setting:
    """The config of one condition, and the phases of each of its runs."""

    title: str
    toml: str
    phases: tuple[tuple[str, tuple[str, ...]], ...]
    """(order and seed, hashes of the phases)."""


def commands(results: Results) -> list[str]:
    """What to type; the folder is called as it was when the report was made."""
    path = results.path
    here = quote(str(path))
    again = quote(f"{path}-again")
    bits = f"other bits: {'; '.join(results.outdated)}" if results.outdated else "the same bits"
    if (path / "run.json").exists():
        train = f"evergait train --config {quote(str(path / 'config.toml'))} --out {again}"
        return [
            f"{train}   # {bits}",
            f"evergait verify {here}   # against plain Gymnasium",
            f"evergait report {here}",
        ]
    study = _study_words(results)
    run = f"evergait study run {study} --out {again}   # {bits}" if study else ""
    return [*([run] if run else []), f"evergait report {here}"]


def _study_words(results: Results) -> str:
    """What `study run` takes: the study's file, or name and scale of one that ships and has these very runs."""
    path = results.path
    if (path / "study.toml").exists():
        return quote(str(path / "study.toml"))
    if not is_study(path):
        return ""
    told = read_description(path)
    titles = {parse_toml((SHIPPED / f"{name}.toml").read_bytes(), name)["title"]: name for name in shipped_studies()}
    name, scale = titles.get(told.get("title"), ""), str(told.get("scale") or "")
    if not name or scale not in ("", *read_study(name).scales):
        return ""
    study = read_study(name).at_scale(scale)
    n_seeds = max(map(len, seeds_of((entry.condition, entry.seed) for entry in results.entries).values()), default=0)
    more = n_seeds > study.outline.seeds
    configs = [cell.config for cell in study_cells(study.with_seeds(n_seeds) if more else study)]
    if any(entry.run.config not in configs for entry in results.entries):
        return ""  # the study has been changed since then
    return name + (f" --scale {quote(scale)}" if scale else "") + (f" --seeds {n_seeds}" if more else "")


def facts(results: Results, scale_words: str = "") -> list[tuple[str, str]]:
    """Versions and seeds, as the phases themselves recorded them."""
    folders = {phase.name: phase for entry in results.entries for phase in entry.run.phases}
    identities = {name: phase.identity() for name, phase in folders.items()}
    engines = {name for identity in identities.values() for name in dict(identity.get("engine", {})).values()}
    steps: dict[str, dict[str, int]] = {}
    diverged: dict[str, int] = {}
    for entry in results.entries:
        for phase, ledger in zip(entry.run.phases, entry.run.ledgers, strict=True):
            steps[phase.name], diverged[phase.name] = ledger.total_steps(), ledger.n_diverged
    total = sum(sum(kinds.values()) for kinds in steps.values())
    found = [
        ("conditions", ", ".join(dict.fromkeys(entry.condition for entry in results.entries))),
        ("orders", "; ".join(dict.fromkeys(entry.order for entry in results.entries))),
        ("seeds", ", ".join(map(str, sorted({entry.seed for entry in results.entries})))),
        ("phases", f"{len(identities)}, each trained once however many runs share it"),
        ("environment steps", f"{total:,}".replace(",", "\u202f")),
        ("training episodes that diverged", str(sum(diverged.values()) or "")),
        ("engines", ", ".join(sorted(engines))),
        ("mujoco", _values(identities.values(), "mujoco")),
        ("algorithm", _values(identities.values(), "algorithm")),
        ("parts that changed since", "; ".join(results.outdated)),
        ("trained with", _trained_with(folders.values())),
        ("page written with", in_words(versions())),
        ("scores", scale_words),
    ]
    return [(name, value) for name, value in found if value]


def _trained_with(phases: Iterable[PhaseFolder]) -> str:
    """What the phases' own machines ran; more than one if phases were trained in several places."""
    found = Counter(_recorded(phase.progress().get("versions")) for phase in phases)
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{words} ({n} phases)" for words, n in found.most_common())


def _recorded(found: Any) -> str:
    if not isinstance(found, dict) or not found:
        return "not recorded, apart from what decides the bits: mujoco and algorithm"
    return in_words({str(name): str(value) for name, value in found.items()})


def _values(identities: Iterable[Mapping[str, Any]], key: str) -> str:
    return ", ".join(sorted({str(identity[key]) for identity in identities if key in identity}))


def settings(entries: Sequence[Entry]) -> list[Setting]:
    """One config per condition: its runs differ only in stream and seed, or else are listed on their own."""
    together: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        common = replace(entry.run.config, stream=(), seed=0).to_toml()
        together.setdefault((entry.condition, common), []).append(entry)
    found = []
    for (condition, _), alike in together.items():
        phases = tuple(
            (f"{entry.order}, seed {entry.seed}", tuple(phase.name for phase in entry.run.phases)) for entry in alike
        )
        found.append(Setting(f"{condition}, as trained on {alike[0].order}", alike[0].run.config.to_toml(), phases))
    return found
