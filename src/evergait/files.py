"""Files that are whole or absent, and tensors that notice when a bit has changed. Loading executes nothing."""

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from evergait.types import Array, EvergaitError

LIMIT = 1 << 28
"""Largest file in bytes that is read whole; a run's files are far below it."""


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file so that every reader, and every crash, sees either the old content or the new."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # noqa: PTH101 - a name of tempfile's, not a Path
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def remove_leftovers(folder: Path) -> None:
    """Of writes that a crash cut short; for those only who know that nobody else is writing there."""
    for leftover in folder.glob(".*.*.????????"):
        leftover.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_bytes(path: Path) -> bytes:
    """A file's content, refusing what is missing, not a plain file, or absurdly large."""
    try:
        if not path.is_file() or path.is_symlink():
            raise EvergaitError(f"{path}: is missing or not a plain file")
        if path.stat().st_size > LIMIT:
            raise EvergaitError(f"{path}: has {path.stat().st_size} bytes; at most {LIMIT} are read")
        return path.read_bytes()
    except OSError as error:
        raise EvergaitError(f"{path}: cannot be read: {error.strerror}") from error


def sha256(content: bytes) -> str:
    """Hexadecimal digest."""
    return hashlib.sha256(content).hexdigest()


def canonical_json(data: Any) -> str:
    """The one spelling of plain data that hashes are made of."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        data = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise EvergaitError(f"{path}: is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise EvergaitError(f"{path}: must hold a JSON object")
    return data


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """A JSON object to a file, for people to read, atomically."""
    write_atomically(path, (json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def _digest(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> str:
    whole = hashlib.sha256(canonical_json(dict(metadata)).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        whole.update(f"{name}{tensor.dtype.str}{tensor.shape}".encode())
        whole.update(tensor.tobytes())
    return whole.hexdigest()


def write_tensors(path: Path, tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Named arrays and text to a .safetensors file with a digest of both in its header, atomically."""
    contiguous = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    # one entry, for the library writes several in random order
    header = {"evergait": canonical_json({**metadata, "sha256": _digest(contiguous, metadata)})}
    write_atomically(path, safetensors.numpy.save(contiguous, header))


def read_tensors(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Named arrays and text from a file that `write_tensors` wrote; any change since is an error."""
    read_bytes(path)  # for its checks
    try:
        with safetensors.safe_open(path, "numpy") as file:
            metadata = dict(json.loads((file.metadata() or {})["evergait"]))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, RecursionError, OSError) as error:
        raise EvergaitError(f"{path}: is not a whole .safetensors file of evergait's: {error}") from error
    expected = metadata.pop("sha256", "")
    if _digest(tensors, metadata) != expected:
        raise EvergaitError(f"{path}: its content does not match its own digest; it was damaged or edited")
    return tensors, metadata


@contextlib.contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[bool]:
    """Hold a lock that dies with the process; yields False if someone else holds it and we do not wait."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
