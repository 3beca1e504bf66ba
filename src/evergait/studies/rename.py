"""Gives the phases of a study the names that they have now: python -m evergait.studies.rename OLD NEW

For phases whose bits are those that a training would give today, although a version in their identity has been raised
since: only who knows that they were trained with the fix, or are not touched by it, may say so. Settings must be the
same; nothing is trained, and OLD stays as it is.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evergait.config import config_from_data
from evergait.core.data import to_toml
from evergait.core.errors import EvergaitError
from evergait.core.files import (
    make_own_folder,
    read_bytes,
    sha256,
    write_atomically,
    write_json,
    write_tensors,
)
from evergait.store.phases import CHECKPOINT, PARTS, PhaseFolder, PhaseStore
from evergait.studies.folder import read_cells, read_description
from evergait.training.phases import Phase, plan_phases

MAY_DIFFER = ("algorithm", "libm", "mujoco", "parent", "plugins", "versions")
"""Between the old identity of a phase and the new one."""


def rename_study(old: Path, new: Path) -> dict[str, str]:
    """Copy a study's phases under the names that its configs plan now; old name → new name."""
    _, cells = read_cells(old)
    data, store, names = read_description(old), PhaseStore(old / "phases"), {}
    if new.exists():
        raise EvergaitError(f"{new}: is there already; choose another folder")
    new.mkdir(parents=True)
    make_own_folder(new / "phases")
    for cell, written in zip(cells, data["cells"], strict=True):
        planned = plan_phases(config_from_data(cell.config, str(old / "study.json")))
        for name, phase in zip(cell.phases, planned, strict=True):
            folder = store.folder(name)
            if name not in names and (folder.is_done() or folder.has_checkpoint):
                _copy(folder, new / "phases" / phase.name, phase)
            names[name] = phase.name
        written["phases"] = [phase.name for phase in planned]
    if (old / "study.toml").exists():
        write_atomically(new / "study.toml", read_bytes(old / "study.toml"))
    write_json(new / "study.json", data)
    return names


def _copy(folder: PhaseFolder, path: Path, phase: Phase) -> None:
    before = folder.identity()
    changed = {key for key, _ in _settings(before).items() ^ _settings(phase.identity).items()}
    if changed:
        raise EvergaitError(f"{folder.path}: not only versions would change, but {', '.join(sorted(changed))}")
    make_own_folder(path)
    config = to_toml(phase.identity).encode()
    write_atomically(path / "config.toml", config)
    progress = folder.progress()
    if folder.is_done():
        folder.verify(needs=("config.toml", "ledger.jsonl"))
        digests = {**progress["sha256"], "config.toml": sha256(config)}
        for part in PARTS[1:]:
            if part != "theta.safetensors" or folder.has_policy:
                write_atomically(path / part, folder.read(part))
        write_json(path / "progress.json", {**progress, "sha256": digests})
        return
    write_atomically(path / "ledger.jsonl", folder.read("ledger.jsonl"))
    tensors, metadata = folder.saved()
    write_tensors(path / CHECKPOINT, tensors, {**metadata, "phase": phase.name})
    write_json(path / "progress.json", progress)


def _settings(identity: Mapping[str, Any]) -> dict[str, str]:
    return {key: repr(value) for key, value in identity.items() if key not in MAY_DIFFER}


if __name__ == "__main__":
    done = rename_study(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"{len(done)} phases, {sum(old != new for old, new in done.items())} of them renamed")  # noqa: T201
