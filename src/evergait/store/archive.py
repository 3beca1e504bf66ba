"""Finished phases of a store in one file beside it, which is read in place.

    <store>.zip    *.npy               config.toml, progress.json and ledger.jsonl of every phase, as columns
                   <hash>.safetensors  theta.safetensors of the phases that have one
                   study.json          what a study's folder says of its phases, if it is a study's
                   references.json     and what was measured of them

`numpy.load` and any unzip read it, too. Text stays as it is, except for the lists of numbers in ledgers: they become
columns, which take a quarter of the space, and give back the same bytes.
"""

import functools
import io
import math
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evergait.core.arrays import Array, Float64, Int64
from evergait.core.errors import EvergaitError
from evergait.core.files import JSON_LIMIT, LEDGER_LIMIT, LIMIT, read_bytes, write_atomically

_LIST = re.compile(rb"\[(-?\d[\d.e+-]*(?:,-?\d[\d.e+-]*)*)\]")
_MARK = re.compile(rb"\[([fi])(\d{1,9})\]")


def take_numbers(text: bytes) -> tuple[bytes, list[float], list[int]]:
    """Text without its lists of numbers, and these; what would not come back as it was stays.

    >>> take_numbers(b'{"a":[1,2],"b":[0.5,-3.0],"c":[1,2.0],"d":[007]}')
    (b'{"a":[i2],"b":[f2],"c":[1,2.0],"d":[007]}', [0.5, -3.0], [1, 2])
    """
    floats: list[float] = []
    ints: list[int] = []
    if _MARK.search(text):  # in a name
        return text, floats, ints

    def take(found: re.Match[bytes]) -> bytes:
        words = found[1].decode().split(",")
        for kind, column, convert in (("i", ints, _int), ("f", floats, _float)):
            values = [convert(word) for word in words]
            if None not in values:
                column.extend(values)  # type: ignore[arg-type]
                return f"[{kind}{len(words)}]".encode()
        return found[0]

    return _LIST.sub(take, text), floats, ints


def _int(word: str) -> int | None:
    return int(word) if word.isdigit() and len(word) < 19 and str(int(word)) == word else None


def _float(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) and repr(value) == word else None


def put_numbers(text: bytes, floats: Float64, ints: Int64) -> bytes:
    """Text with its lists of numbers again.

    >>> put_numbers(*take_numbers(b'{"a":[1,2],"b":[0.5,-3.0]}'))
    b'{"a":[1,2],"b":[0.5,-3.0]}'
    """
    if not len(floats) and not len(ints):
        return text
    columns: dict[bytes, list[Any]] = {b"f": list(map(float, floats)), b"i": list(map(int, ints))}
    used = dict.fromkeys(columns, 0)

    def put(found: re.Match[bytes]) -> bytes:
        kind, n = found[1], int(found[2])
        words = map(repr, columns[kind][used[kind] : used[kind] + n])
        used[kind] += n
        return f"[{','.join(words)}]".encode()

    whole = _MARK.sub(put, text)
    if used != {kind: len(column) for kind, column in columns.items()}:
        raise ValueError("another number of numbers than it tells")
    return whole


BESIDE = ("study.json", "runs.json", "references.json", "fresh.json")
"""Files beside a store that are packed with it: what its runs are, and what final policies earned in more episodes."""
TEXTS = {"config.toml": "config", "progress.json": "progress", "ledger.jsonl": "ledger"}
NUMBERS = {"floats": np.dtype("<f8"), "ints": np.dtype("<i8")}
COLUMNS = ("phases", *(name + end for name in (*TEXTS.values(), *NUMBERS) for end in ("", "_end")))
DIRECTORY_LIMIT = 1 << 23
"""Largest table of contents in bytes: some eighty thousand policies."""
MOST_PHASES = 1 << 18
"""Phases of one archive: their configs alone take more than is packed into one."""
BROKEN = (
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    RuntimeError,
    EOFError,
)
"""What reading a damaged zip file may raise."""


@dataclass(frozen=True)
class Archive:
    """What the file holds."""

    path: Path
    phases: Mapping[str, int]
    """Hash → its place in the columns."""
    columns: Mapping[str, Array]
    policies: frozenset[str]
    beside: frozenset[str]
    """Which of `BESIDE` it has."""

    def has(self, name: str, part: str) -> bool:
        """Whether a phase has that file."""
        return name in self.policies if part == "theta.safetensors" else name in self.phases and part in TEXTS

    def read(self, name: str, part: str) -> bytes:
        """A file of a phase, as it was when it was packed."""
        if part == "theta.safetensors":
            return read_member(self.path, f"{name}.safetensors")
        text = self._slice(TEXTS[part], name).tobytes()
        if part != "ledger.jsonl":
            return text
        floats, ints = self._slice("floats", name), self._slice("ints", name)
        try:
            if len(text) + 4 * len(floats) + 2 * len(ints) > LEDGER_LIMIT:  # such as `0.0,` and `0,`
                raise ValueError(f"more numbers than fit into {LEDGER_LIMIT} bytes")
            return put_numbers(text, floats, ints)
        except ValueError as error:
            raise EvergaitError(f"{self.path}: phase {name} has {error}; it was damaged or edited") from error

    def _slice(self, column: str, name: str) -> Array:
        place, ends = self.phases[name], self.columns[f"{column}_end"]
        return self.columns[column][ends[place - 1] if place else 0 : ends[place]]


def archive_path(root: Path) -> Path:
    """Where the archive of a store is."""
    return root.parent / f"{root.name}.zip"


def open_archive(root: Path) -> Archive | None:
    """The archive of a store, if there is one; it is kept in memory until the file changes."""
    path = archive_path(root)
    if not path.exists():
        return None
    state = path.lstat()
    return _open(path, (state.st_ino, state.st_size, state.st_mtime_ns))


@functools.lru_cache(2)
def _open(path: Path, state: object) -> Archive:
    try:
        with _zip(path) as file:
            sizes = {info.filename: info.file_size for info in file.infolist()}
            others = sizes.keys() - {f"{name}.npy" for name in COLUMNS}
            policies = frozenset(name.removesuffix(".safetensors") for name in others if name.endswith(".safetensors"))
            beside = others & set(BESIDE)
            if len(sizes) != len(file.infolist()) or len(sizes) != len(COLUMNS) + len(policies) + len(beside):
                raise ValueError("it has other members")
            if sum(sizes[f"{name}.npy"] for name in COLUMNS) > LIMIT:
                raise ValueError(f"unpacked, its columns have more than {LIMIT} bytes")
            columns = {name: parse_column(_read(file, file.getinfo(f"{name}.npy"))) for name in COLUMNS}
        if len(columns["phases"]) > MOST_PHASES:
            raise ValueError(f"it has {len(columns['phases'])} phases; at most {MOST_PHASES} are taken")
        phases = {name.decode(): i for i, name in enumerate(columns["phases"].tolist())}
        _check(columns, phases)
    except BROKEN as error:
        raise EvergaitError(f"{path}: is not a whole archive of phases ({error})") from error
    return Archive(path, phases, columns, policies, frozenset(beside))


def _zip(path: Path) -> zipfile.ZipFile:
    """A zip file whose table of contents is of reasonable size."""
    if path.is_symlink() or not path.is_file():
        raise EvergaitError(f"{path}: is not a plain file")
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(size - 42, 0))
        before, end = file.read(20), file.read(22)
    if end[:4] != b"PK\5\6" or before[:4] == b"PK\6\7" or int.from_bytes(end[12:16], "little") > DIRECTORY_LIMIT:
        raise ValueError("its table of contents is missing or too large")
    whole = zipfile.ZipFile(path)
    if not all(info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in whole.infolist()):
        whole.close()
        raise ValueError("it is compressed in another way")
    return whole


def _read(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """A member; never more of it than its size tells, for a small one may unpack to gigabytes."""
    with file.open(info) as member:
        return member.read(info.file_size)


def _check(columns: Mapping[str, Array], phases: Mapping[str, int]) -> None:
    n = len(columns["phases"])
    if len(phases) != n or not all(name.isalnum() for name in phases):
        raise ValueError("names of phases are wrong")
    kinds = {**dict.fromkeys(TEXTS.values(), np.dtype("u1")), **NUMBERS}
    for name, kind in kinds.items():
        ends, column = columns[f"{name}_end"], columns[name]
        if ends.dtype != np.dtype("<i8") or column.dtype != kind or len(ends) != n:
            raise ValueError(f"column {name} has another type or size")
        if (np.diff(ends, prepend=0) < 0).any() or (ends[-1] if n else 0) != len(column):
            raise ValueError(f"column {name} is cut in the wrong places")


def parse_column(content: bytes) -> Array:
    """One flat array of a .npy file; nothing is made room for that is not there."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("a column has another format")
    shape, _, kind = np.lib.format.read_array_header_1_0(stream)
    column = np.frombuffer(content, kind, offset=stream.tell())
    if column.shape != shape:
        raise ValueError("a column has another size")
    return column


def read_member(path: Path, name: str, limit: int = LIMIT) -> bytes:
    """One file of an archive: a policy, or what stood beside the store."""
    try:
        with _zip(path) as file:
            info = file.getinfo(name)
            if info.file_size > limit:
                raise ValueError(f"it has {info.file_size} bytes; at most {limit} are read")
            return _read(file, info)
    except BROKEN as error:
        raise EvergaitError(f"{path}: has no whole {name} ({error})") from error


def read_beside(root: Path, name: str) -> bytes | None:
    """A file beside a store, or what was packed of it; the file is the newer one."""
    if (path := root.parent / name).exists():
        return read_bytes(path, JSON_LIMIT)
    archive = open_archive(root)
    return read_member(archive.path, name, JSON_LIMIT) if archive and name in archive.beside else None


def write_archive(
    path: Path,
    texts: Mapping[str, Mapping[str, bytes]],
    policies: Mapping[str, bytes],
    beside: Mapping[str, bytes],
) -> None:
    """Hash → its texts, hash → its policy, and files beside the store, as one file; equal content gives equal files."""
    pieces: dict[str, list[bytes]] = {name: [] for name in (*TEXTS.values(), *NUMBERS)}
    for parts in texts.values():
        skeleton, floats, ints = take_numbers(parts["ledger.jsonl"])
        numbers = {"floats": np.array(floats, "<f8").tobytes(), "ints": np.array(ints, "<i8").tobytes()}
        for column, content in {**numbers, "config": parts["config.toml"], "progress": parts["progress.json"]}.items():
            pieces[column].append(content)
        pieces["ledger"].append(skeleton)
    columns: dict[str, Array] = {"phases": np.array([name.encode() for name in texts], "S")}
    for name, found in pieces.items():
        kind = NUMBERS.get(name, np.dtype("u1"))
        columns[name] = np.frombuffer(b"".join(found), kind)
        columns[f"{name}_end"] = np.cumsum([len(piece) // kind.itemsize for piece in found], dtype="<i8")
    n_bytes = sum(column.nbytes for column in columns.values())
    if n_bytes > LIMIT // 2:
        raise EvergaitError(
            f"{path}: its ledgers have {n_bytes} bytes; at most {LIMIT // 2} are packed into one archive"
        )
    members = {f"{name}.npy": _npy(columns[name]) for name in COLUMNS}
    members |= {f"{name}.safetensors": policies[name] for name in sorted(policies)}
    try:
        content = _zipped({**members, **dict(sorted(beside.items()))})
    except zipfile.LargeZipFile as error:
        raise EvergaitError(
            f"{path}: would be more than 65,535 files or 2 GiB, which is not read again; `--policies last` packs less"
        ) from error
    write_atomically(path, content)


def gives_back(path: Path, policies: Mapping[str, bytes]) -> bool:
    """Whether an archive has these policies, byte by byte; it is opened once for all of them."""
    try:
        with _zip(path) as file:
            return all(_read(file, file.getinfo(f"{name}.safetensors")) == policies[name] for name in policies)
    except BROKEN:
        return False


def _npy(column: Array) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, column, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def _zipped(members: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    # Without 64-bit extensions, which `_zip` refuses: the size of their table of contents is not where it looks.
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, allowZip64=False, compresslevel=9) as file:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)  # of 1980, so that the time of packing is no part of it
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            file.writestr(info, content)
    return stream.getvalue()
