"""Finished phases into an archive, and back into folders; nothing is removed before its copy is whole."""

import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path

from evergait.core.errors import EvergaitError
from evergait.core.files import make_own_folder, refuse_link, remove_leftovers, sync_folder, write_atomically
from evergait.store.archive import BESIDE, TEXTS, archive_path, gives_back, open_archive, read_beside, write_archive
from evergait.store.phases import PARTS, PhaseStore

OWN_FILES = (*PARTS, "progress.json", "lock")


def pack(root: Path, without_policy: Collection[str] = ()) -> int:
    """Pack every finished phase of a store, and what its study says of them; those named keep no policy.

    Phases in training stay folders.
    """
    store, path = PhaseStore(refuse_link(root)), archive_path(root)
    remove_leftovers(path.parent, path.name)
    folders = [folder for name in store.names() if (folder := store.folder(name)).is_done()]
    texts, policies = {}, {}
    for folder in folders:
        folder.verify(needs=("config.toml", "ledger.jsonl"))
        texts[folder.name] = {part: folder.read(part) for part in TEXTS}
        if folder.has_policy and folder.name not in without_policy:
            policies[folder.name] = folder.read("theta.safetensors")
    if not folders:
        raise EvergaitError(f"{root}: has no finished phase to pack")
    beside = _beside(root)
    new = root.with_name(f".{root.name}.unchecked")
    try:
        write_archive(archive_path(new), texts, policies, beside)
        if not _is_whole(new, texts, policies):
            raise EvergaitError(f"{path}: was not written as it should be; {root.parent} stays as it is")
        archive_path(new).replace(path)
    finally:
        archive_path(new).unlink(missing_ok=True)
    sync_folder(path.parent)
    for folder in folders:
        if folder.archive is None:
            _remove(folder.path)
    for name in beside:
        (root.parent / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # what is in training stays
        root.rmdir()
    return len(folders)


def _is_whole(root: Path, texts: Mapping[str, Mapping[str, bytes]], policies: Mapping[str, bytes]) -> bool:
    """Whether the archive gives back all that was to be written."""
    written = open_archive(root)
    if not written or not gives_back(written.path, policies):
        return False
    return all(written.read(name, part) == text for name, parts in texts.items() for part, text in parts.items())


def _beside(root: Path) -> dict[str, bytes]:
    """What stands beside a store and belongs to it: the file, or what was packed before."""
    return {name: content for name in BESIDE if (content := read_beside(root, name)) is not None}


def _remove(path: Path) -> None:
    """A phase's folder, if it holds nothing but what we wrote."""
    for name in OWN_FILES:
        (path / name).unlink(missing_ok=True)
    remove_leftovers(path, *OWN_FILES)
    if not any(path.iterdir()):
        path.rmdir()


def unpack(root: Path) -> int:
    """Make folders of all packed phases again, byte by byte as they were."""
    archive = open_archive(refuse_link(root))
    if archive is None:
        raise EvergaitError(f"{archive_path(root)}: is not there; nothing is packed")
    store = PhaseStore(make_own_folder(root))
    for name in archive.phases:
        store.folder(name).copy_to(root / name)
    for name, content in _beside(root).items():
        write_atomically(root.parent / name, content)
    archive.path.unlink()
    return len(archive.phases)
