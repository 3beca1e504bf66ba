"""Finished phases into an archive, and back into folders; nothing is removed before its copy is whole."""

from collections.abc import Collection
from pathlib import Path

from evergait.core.errors import EvergaitError
from evergait.core.files import make_own_folder, remove_leftovers
from evergait.store.archive import LEDGERS, POLICIES, TEXTS, open_archive, write_archive
from evergait.store.phases import PARTS, PhaseStore

OWN_FILES = (*PARTS, "progress.json", "lock")


def pack(root: Path, without_policy: Collection[str] = ()) -> int:
    """Pack every finished phase of a store; those named keep no policy. Phases in training stay folders."""
    store = PhaseStore(make_own_folder(root))
    remove_leftovers(root, LEDGERS, POLICIES)
    folders = [folder for name in store.names() if (folder := store.folder(name)).is_done()]
    texts, policies = {}, {}
    for folder in folders:
        folder.verify(needs=("config.toml", "ledger.jsonl"))
        texts[folder.name] = {part: folder.read(part) for part in TEXTS}
        if folder.has_policy and folder.name not in without_policy:
            policies[folder.name] = folder.read("theta.safetensors")
    if not folders:
        raise EvergaitError(f"{root}: has no finished phase to pack")
    write_archive(root, texts, policies)
    if not policies:
        (root / POLICIES).unlink(missing_ok=True)
    written = open_archive(root)
    for folder in folders:
        if not written or any(
            written.read(folder.name, part) != content for part, content in texts[folder.name].items()
        ):
            raise EvergaitError(f"{root / LEDGERS}: was not written as it should be; {folder.path} stays as it is")
        if folder.archive is None:
            _remove(folder.path)
    return len(folders)


def _remove(path: Path) -> None:
    """A phase's folder, if it holds nothing but what we wrote."""
    for name in OWN_FILES:
        (path / name).unlink(missing_ok=True)
    remove_leftovers(path, *OWN_FILES)
    if not any(path.iterdir()):
        path.rmdir()


def unpack(root: Path) -> int:
    """Make folders of all packed phases again, byte by byte as they were."""
    archive = open_archive(make_own_folder(root))
    if archive is None:
        raise EvergaitError(f"{root}: has no {LEDGERS}; nothing is packed there")
    store = PhaseStore(root)
    for name in archive.phases:
        store.folder(name).copy_to(root / name)
    for file in (LEDGERS, POLICIES):
        (root / file).unlink(missing_ok=True)
    return len(archive.phases)
