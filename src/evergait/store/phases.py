"""Phases on disk: a folder per phase, named by the hash of all that decides its bits.

    <store>/<hash>/config.toml             what decides the bits; its hash is the folder's name
                   ledger.jsonl            evaluations, appended
                   checkpoint.safetensors  while training: all that resuming needs, and how much of the ledger counts
                   theta.safetensors       when done: final and best θ, observation statistics; what has curves only
                                           does without
                   progress.json           how far it is; when done, the versions in use and digests of the other files
                   lock                    held while training; the kernel lets go of it when the process dies

A phase is done when progress.json says so, and that file is written last. Every file is replaced whole, except for the
ledger: what it has beyond the checkpoint's count is cut off on resuming. Finished phases may be packed into an archive
(`archive.py`), which is read in place: it has the same files, and a phase that is in it is in it for all readers.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evergait.core.arrays import Array
from evergait.core.data import to_toml
from evergait.core.errors import EvergaitError
from evergait.core.files import (
    JSON_LIMIT,
    LEDGER_LIMIT,
    LIMIT,
    TOML_LIMIT,
    canonical_json,
    locked,
    make_own_folder,
    open_own,
    parse_object,
    parse_tensors,
    parse_toml,
    read_bytes,
    read_tensors,
    refuse_link,
    remove_leftovers,
    sha256,
    write_atomically,
    write_json,
    write_tensors,
)
from evergait.store.archive import Archive, open_archive
from evergait.store.ledger import Ledger, parse_ledger

PARTS = ("config.toml", "ledger.jsonl", "theta.safetensors")
CHECKPOINT = "checkpoint.safetensors"


def identity_hash(identity: Mapping[str, Any]) -> str:
    """The name of a phase: a hash of all that decides its bits."""
    return sha256(canonical_json(identity).encode())[:24]


@dataclass(frozen=True)
class PhaseFolder:
    """One phase on disk."""

    path: Path
    archive: Archive | None = field(default=None, compare=False, repr=False)
    """Where the phase is packed; none if it is a folder."""

    def _where(self, part: str) -> str:
        """What messages call a file."""
        return f"{self.archive.path}: {self.name}/{part}" if self.archive else str(self.path / part)

    def _has(self, part: str) -> bool:
        return self.archive.has(self.name, part) if self.archive else (self.path / part).exists()

    def read(self, part: str, limit: int = LIMIT) -> bytes:
        """A file of the phase."""
        if self.archive is None:
            return read_bytes(self.path / part, limit)
        content = self.archive.read(self.name, part)
        if len(content) > limit:
            raise EvergaitError(f"{self._where(part)}: has {len(content)} bytes; at most {limit} are read")
        return content

    def copy_to(self, path: Path) -> None:
        """The files of a finished phase as a folder; what makes it done comes last."""
        make_own_folder(path)
        for part in (*PARTS, "progress.json"):
            if self._has(part):
                write_atomically(path / part, self.read(part))

    @property
    def name(self) -> str:
        """The phase's hash."""
        return self.path.name

    def is_done(self) -> bool:
        """Whether training has finished; no file but progress.json is looked at."""
        return self._has("progress.json") and self.progress()["status"] == "done"

    def progress(self) -> dict[str, Any]:
        """How far it is."""
        where = self._where("progress.json")
        progress = parse_object(self.read("progress.json", JSON_LIMIT), where)
        if progress.get("status") not in ("training", "done"):
            raise EvergaitError(f"{where}: its status is neither `training` nor `done`; it was damaged or edited")
        return progress

    def write_progress(self, progress: Mapping[str, Any]) -> None:
        """Tell others how far it is."""
        write_json(self.path / "progress.json", progress)

    def identity(self) -> dict[str, Any]:
        """What decides the phase's bits, checked against the folder's name."""
        path = self._where("config.toml")
        identity = parse_toml(self.read("config.toml", TOML_LIMIT), path)
        try:
            name = identity_hash(identity)
        except (ValueError, TypeError) as error:  # what TOML has and JSON has not, such as infinity and dates
            raise EvergaitError(f"{path}: is not a phase's config: {error}") from error
        if name != self.name:
            raise EvergaitError(f"{path}: does not match its folder's name; it was damaged or edited")
        engines = identity.get("engine", {})
        if not isinstance(engines, dict) or not all(isinstance(engine, str) for engine in engines.values()):
            raise EvergaitError(f"{path}: `engine` must be a table of names")
        versions = identity.get("versions", {})
        if not isinstance(versions, dict) or not all(type(version) is int for version in versions.values()):
            raise EvergaitError(f"{path}: `versions` must be a table of whole numbers")
        return identity

    @property
    def has_policy(self) -> bool:
        """Whether θ is there; a collection of results may do without."""
        return self._has("theta.safetensors")

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is something to go on from."""
        return (self.path / CHECKPOINT).exists()

    def verify(self, needs: Sequence[str] = PARTS) -> None:
        """Raise EvergaitError if any file of a finished phase was changed, or is needed and gone."""
        self.identity()
        digests = self.progress().get("sha256")
        for part in PARTS:
            if not self._has(part) and part not in needs:
                continue
            if not isinstance(digests, dict) or sha256(self.read(part)) != digests.get(part):
                raise EvergaitError(
                    f"{self._where(part)}: does not match its digest in progress.json; it was damaged or edited"
                )

    def ledger(self) -> Ledger:
        """The evaluations; of a phase in training, those that its checkpoint counts."""
        where = self._where("ledger.jsonl")
        if self.is_done():
            self.verify(needs=("ledger.jsonl",))
            return parse_ledger(self.read("ledger.jsonl", LEDGER_LIMIT), where)
        _, metadata = self.saved()
        return parse_ledger(self._counted(metadata), where)

    def saved(self) -> tuple[dict[str, Array], dict[str, str]]:
        """Tensors and text of the last checkpoint."""
        return read_tensors(self.path / CHECKPOINT)

    def result(self) -> tuple[dict[str, Array], dict[str, str]]:
        """Tensors and text of a finished phase."""
        if not self.has_policy:
            raise EvergaitError(f"{self.path}: was kept without its policy; train it in a new folder to have that")
        self.verify()
        return parse_tensors(self.read("theta.safetensors"), self._where("theta.safetensors"))

    def _counted(self, metadata: Mapping[str, str]) -> bytes:
        path = self.path / "ledger.jsonl"
        try:
            n_bytes, digest = int(metadata["ledger_bytes"]), metadata["ledger_sha256"]
        except (KeyError, ValueError) as error:
            raise EvergaitError(f"{self.path / CHECKPOINT}: does not say how much of the ledger counts") from error
        content = read_bytes(path, LEDGER_LIMIT)[: max(n_bytes, 0)]
        if len(content) != n_bytes or sha256(content) != digest:
            raise EvergaitError(f"{path}: does not match its digest in the checkpoint; it was damaged or edited")
        return content

    def checkpoint(self) -> tuple[dict[str, Array], dict[str, str]] | None:
        """Tensors and text to resume from, with the ledger cut to what they count; none before the first one."""
        if not self.has_checkpoint:
            return None
        tensors, metadata = self.saved()
        if metadata.get("phase") != self.name:
            raise EvergaitError(
                f"{self.path / CHECKPOINT}: belongs to phase {metadata.get('phase')!r}, not to {self.name!r}"
            )
        counted = self._counted(metadata)
        with open_own(self.path / "ledger.jsonl") as ledger:
            ledger.truncate(len(counted))
        return tensors, metadata

    def tidy(self) -> None:
        """Remove what a crash at the very end of a finished phase left behind."""
        (self.path / CHECKPOINT).unlink(missing_ok=True)


class PhaseWriter:
    """Writes one phase; made by `PhaseStore.writing`, which holds the lock."""

    def __init__(self, folder: PhaseFolder) -> None:
        self.folder = folder
        path = folder.path / "ledger.jsonl"
        self.resumed = folder.checkpoint()
        """What an earlier process left to go on from."""
        self._file = open_own(path)
        if self.resumed is None:
            self._file.truncate(0)
        content = read_bytes(path)
        self._digest, self._n_bytes = hashlib.sha256(content), len(content)

    def append(self, line: bytes) -> None:
        """Add a line to the ledger; it counts from the next checkpoint on."""
        self._file.write(line)
        self._digest.update(line)
        self._n_bytes += len(line)

    def checkpoint(
        self, tensors: Mapping[str, Array], metadata: Mapping[str, str], progress: Mapping[str, Any]
    ) -> None:
        """Make everything so far survive a crash."""
        self._sync()
        counted = {"ledger_bytes": str(self._n_bytes), "ledger_sha256": self._digest.hexdigest()}
        path = self.folder.path / CHECKPOINT
        write_tensors(path, tensors, {**metadata, **counted, "phase": self.folder.name})
        self.folder.write_progress({**progress, "status": "training"})

    def finish(self, tensors: Mapping[str, Array], metadata: Mapping[str, str], progress: Mapping[str, Any]) -> None:
        """Write the result; the phase is done when the last of these files is in place."""
        self._sync()
        path = self.folder.path
        write_tensors(path / "theta.safetensors", tensors, metadata)
        digests = {part: sha256(read_bytes(path / part)) for part in PARTS}
        self.folder.write_progress({**progress, "status": "done", "sha256": digests})
        self.folder.tidy()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the ledger file."""
        self._file.close()


@dataclass(frozen=True)
class PhaseStore:
    """A folder of phases."""

    root: Path

    @staticmethod
    def inside(folder: Path) -> "PhaseStore":
        """The store of a run's or a study's own folder; a link in its place could lead anywhere and is refused."""
        return PhaseStore(refuse_link(folder / "phases"))

    def folder(self, name: str) -> PhaseFolder:
        """The phase of that hash, which need not exist."""
        if not (name.isascii() and name.isalnum()):
            raise EvergaitError(f"phase {name!r}: is not the name of a phase")
        archive = open_archive(self.root)
        folder = refuse_link(self.root / name)
        return PhaseFolder(folder, archive if archive and name in archive.phases else None)

    def names(self) -> list[str]:
        """Hashes of all phases that are there, done or not."""
        archive = open_archive(self.root)
        entries = self.root.iterdir() if self.root.is_dir() else ()
        folders = {path.name for path in entries if path.is_dir() and not path.is_symlink() and path.name.isalnum()}
        return sorted(folders | set(archive.phases if archive else ()))

    @contextlib.contextmanager
    def writing(self, identity: Mapping[str, Any]) -> Iterator[PhaseWriter | None]:
        """Make or reopen a phase and hold its lock; yields None if it is done, or if somebody else holds the lock."""
        folder = self.folder(identity_hash(identity))
        make_own_folder(folder.path)
        with locked(folder.path / "lock", wait=False) as ours:
            if not ours or folder.is_done():
                yield None
                return
            if not (folder.path / "config.toml").exists():
                write_atomically(folder.path / "config.toml", to_toml(identity).encode())
            folder.identity()
            remove_leftovers(folder.path, *PARTS, CHECKPOINT, "progress.json")
            writer = PhaseWriter(folder)
            try:
                yield writer
            finally:
                writer.close()
