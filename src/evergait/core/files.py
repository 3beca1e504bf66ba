"""Files that are whole or absent, and that notice when a bit of them has changed. Loading executes nothing.

What is read may come from strangers: no link is followed, nothing of absurd size, depth or magnitude is taken.
"""

import contextlib
import fcntl
import hashlib
import json
import logging
import math
import os
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import safetensors
import safetensors.numpy

from evergait.core.arrays import Array
from evergait.core.errors import EvergaitError

log = logging.getLogger("evergait")

LIMIT = 1 << 28
"""Largest file in bytes that is read whole; a run's files are far below it."""
JSON_LIMIT = 1 << 24
"""Largest JSON text in bytes: its objects take up to twenty times as much memory."""
LEDGER_LIMIT = 1 << 25
"""Largest ledger in bytes: its numbers take up to sixteen times as much memory."""
TOML_LIMIT = 1 << 20
"""Largest TOML file in bytes: a config has some two thousand."""
DEPTH = 50
"""Deepest nesting of tables and lists in a TOML file."""
DOTS = 4096
"""Most dots in a TOML file: the time to parse a dotted key grows with the square of its parts."""
WRITERS = 20
"""How often a write is tried while others write the same file."""
LOOKS = 1000
"""How often a lock is tried while others look whether it is held, which takes them no time."""
CHECKSUM = "checksum"
"""The field of our JSON files that holds a digest of all others."""


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file so that every reader, and every crash, sees either the old content or the new."""
    _remove_dead(path)
    for _ in range(WRITERS):
        with contextlib.suppress(_TakenError):
            _write_once(path, content)
            return
    raise EvergaitError(f"{path}: too many processes write it at once")


class _TakenError(Exception):
    """Another writer of the same file took our temporary one, before it was locked, for that of a dead process."""


def _write_once(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            with contextlib.suppress(OSError):  # some file systems have no locks
                fcntl.flock(file, fcntl.LOCK_EX)  # tells others that its writer lives
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o644)
            try:
                Path(name).replace(path)
            except FileNotFoundError as error:
                raise _TakenError from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _remove_dead(path: Path) -> None:
    """Remove what killed processes left of earlier writes of this file: nobody holds a lock on it."""
    for name in os.listdir(path.parent):  # noqa: PTH208 - names are enough
        if name.startswith(f".{path.name}.") and len(name) == len(path.name) + 10:
            leftover = path.parent / name
            if not leftover.is_symlink() and not is_locked(leftover):
                leftover.unlink(missing_ok=True)


def remove_leftovers(folder: Path, *names: str) -> None:
    """Remove what writes of these files (or patterns) left behind that a crash cut short; the caller holds the lock."""
    refuse_link(folder)
    for name in names:
        for leftover in folder.glob(f".{name}.????????"):
            leftover.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_own_folder(path: Path) -> Path:
    """A folder inside one of ours; a link in its place could lead anywhere and is refused."""
    refuse_link(path)
    path.mkdir(parents=True, exist_ok=True)
    return path


def require_own(path: Path, content: bytes) -> None:
    """Refuse to write over a file that has something else in it: it is not of ours."""
    if path.exists() and read_bytes(path) != content:
        raise EvergaitError(f"out: {path} is there already, with something else in it; choose another folder")


def refuse_link(path: Path) -> Path:
    """The path, unless it is a link: inside a folder of ours it could lead anywhere."""
    if path.is_symlink():
        raise EvergaitError(f"{path}: is a link; remove it")
    return path


def open_own(path: Path) -> BinaryIO:
    """A file to append to, made if missing; a link in its place is refused, for it could lead anywhere."""
    try:
        return os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o644), "ab")
    except OSError as error:
        if path.is_symlink():
            raise EvergaitError(f"{path}: is a link; remove it") from error
        raise


def read_bytes(path: Path, limit: int = LIMIT) -> bytes:
    """A file's content, refusing what is missing, not a plain file, or absurdly large."""
    try:
        if not path.is_file() or path.is_symlink():
            raise EvergaitError(f"{path}: is missing or not a plain file")
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise EvergaitError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > limit:
        raise EvergaitError(f"{path}: has {path.stat().st_size} bytes; at most {limit} are read")
    return content


def as_path(value: object, where: str) -> Path:
    """A path that a caller has passed; what cannot be one is refused by the name of its argument."""
    try:
        text = os.fsdecode(os.fsencode(value)) if isinstance(value, str | os.PathLike) else ""
    except (TypeError, ValueError):
        text = ""
    if not text or "\0" in text:
        raise EvergaitError(f"{where}: is {value!r}; it must be the name of a file or a folder")
    return Path(text)


def sha256(content: bytes) -> str:
    """Hexadecimal digest."""
    return hashlib.sha256(content).hexdigest()


def canonical_json(data: Any) -> str:
    """The one spelling of plain data that hashes are made of."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:20]} is not a finite number")
    return number


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a field stands there twice")
    return data


def parse_json(content: bytes | str) -> Any:
    """JSON of finite numbers without repeated fields; raises ValueError for anything else."""
    if len(content) > JSON_LIMIT:
        raise ValueError(f"it has {len(content)} bytes; at most {JSON_LIMIT} are read")
    try:
        return json.loads(content, parse_float=_finite, parse_constant=_finite, object_pairs_hook=_no_twins)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; if it has a checksum, as all of ours have, any change since is an error."""
    return parse_object(read_bytes(path, JSON_LIMIT), path)


def parse_object(content: bytes, path: object) -> dict[str, Any]:
    """The same from a file's content."""
    try:
        data = parse_json(content)
    except ValueError as error:
        raise EvergaitError(f"{path}: is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise EvergaitError(f"{path}: must hold a JSON object")
    expected = data.pop(CHECKSUM, None)
    if expected is not None and expected != sha256(canonical_json(data).encode()):
        raise EvergaitError(f"{path}: does not match its own checksum; it was damaged or edited")
    return data


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """A JSON object to a file, for people to read, with a checksum at its end, atomically."""
    whole = {**data, CHECKSUM: sha256(canonical_json(dict(data)).encode())}
    text = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if len(text) > JSON_LIMIT // 4 and len(text.encode(errors="backslashreplace")) > JSON_LIMIT:
        raise EvergaitError(f"{path}: would have more than {JSON_LIMIT} bytes and could not be read again")
    # Names of files need not be UTF-8; what Python has for such bytes is written as JSON's own escapes.
    write_atomically(path, text.encode(errors="backslashreplace"))


def parse_toml(content: bytes, where: object) -> dict[str, Any]:
    """TOML from a file's content, refusing numbers and nestings that no file of ours has."""
    if len(content) > TOML_LIMIT:
        raise EvergaitError(f"{where}: has {len(content)} bytes; at most {TOML_LIMIT} are read")
    if content.count(b".") > DOTS:
        raise EvergaitError(f"{where}: has {content.count(b'.')} dots; at most {DOTS} are read")
    try:
        data = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise EvergaitError(f"{where}: is not valid TOML: {error}") from error
    level: list[Any] = [data]
    for _ in range(DEPTH):
        level = [item for part in level for item in (part.values() if isinstance(part, dict) else part)]
        if any(isinstance(item, int) and item.bit_length() > 64 for item in level):
            raise EvergaitError(f"{where}: a whole number in it has more than 64 bits")
        level = [item for item in level if isinstance(item, dict | list)]
    if level:
        raise EvergaitError(f"{where}: is nested more than {DEPTH} deep")
    return data


def read_toml(path: Path) -> dict[str, Any]:
    """TOML from a file."""
    return parse_toml(read_bytes(path, TOML_LIMIT), path)


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
    if (n := sum(tensor.nbytes for tensor in contiguous.values())) > LIMIT - 2**20:
        raise EvergaitError(f"{path}: would have {n} bytes and could not be read again; at most {LIMIT} are")
    write_atomically(path, safetensors.numpy.save(contiguous, header))


def read_tensors(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Named arrays and text from a file that `write_tensors` wrote; any change since is an error."""
    return parse_tensors(read_bytes(path), path)


def parse_tensors(content: bytes, path: object) -> tuple[dict[str, Array], dict[str, str]]:
    """The same from a file's content."""
    try:
        header = parse_json(content[8 : 8 + int.from_bytes(content[:8], "little")])
        metadata = dict(parse_json(header["__metadata__"]["evergait"]))
        tensors = dict(sorted(safetensors.numpy.load(content).items()))
        expected = metadata.pop("sha256", "")
        digest = _digest(tensors, metadata)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EvergaitError(f"{path}: is not a whole .safetensors file of evergait's: {error}") from error
    if digest != expected:
        raise EvergaitError(f"{path}: its content does not match its own digest; it was damaged or edited")
    if not all(isinstance(value, str) for value in metadata.values()):
        raise EvergaitError(f"{path}: its header must hold text")
    return tensors, metadata


@contextlib.contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[bool]:
    """Hold a lock that dies with the process; yields False if someone else holds it and we do not wait."""
    with open_own(path) as file:
        if not _take(file):
            if not wait:
                yield False
                return
            log.warning("waiting for another process, which holds %s", path)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield True


def _take(file: BinaryIO) -> bool:
    """Take a lock, unless someone else holds it; who only looks whether someone does (`is_locked`) is waited for."""
    for _ in range(LOOKS):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # can be had beside those who look
        except BlockingIOError:
            return False
        fcntl.flock(file, fcntl.LOCK_UN)
        time.sleep(0.001)
    return False


def is_locked(path: Path) -> bool:
    """Whether a process holds a lock, found out without writing anything."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
