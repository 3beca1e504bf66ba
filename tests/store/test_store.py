"""Files are whole or absent, changes are noticed, locks die with their holder."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergait.core.errors import EvergaitError
from evergait.core.files import locked, read_json, read_tensors, write_atomically, write_json, write_tensors
from evergait.store.ledger import Ledger, Record, header_line, parse_ledger, record_line
from evergait.store.phases import PhaseStore
from evergait.training.run import Run


def test_tensors_and_back(tmp_path: Path) -> None:
    tensors: dict[str, Any] = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.zeros((), np.float64),
        "c": np.zeros(0),
    }
    write_tensors(tmp_path / "t", tensors, {"text": "θ"})
    read, metadata = read_tensors(tmp_path / "t")
    assert metadata == {"text": "θ"}
    for name, tensor in tensors.items():
        assert read[name].dtype == tensor.dtype
        assert read[name].shape == tensor.shape
        assert (read[name] == tensor).all()


def test_any_flipped_bit_of_a_tensor_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_tensors(path, {"a": np.arange(20, dtype=np.float32)}, {"generation": "7"})
    content = path.read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << (position % 8)
        path.write_bytes(bytes(damaged))
        try:
            read, metadata = read_tensors(path)
        except EvergaitError as error:
            assert str(path) in str(error)  # noqa: PT017 - what must hold in either case differs
        else:  # a bit that carries nothing, such as in the padding of the header
            assert (read["a"] == np.arange(20)).all()
            assert metadata == {"generation": "7"}


@pytest.mark.parametrize("length", [0, 1, 7, 8, 50, 150])
def test_a_cut_tensor_file_is_noticed(tmp_path: Path, length: int) -> None:
    write_tensors(tmp_path / "t", {"a": np.arange(20)}, {})
    os.truncate(tmp_path / "t", length)
    with pytest.raises(EvergaitError, match=r"not a whole \.safetensors file of evergait's"):
        read_tensors(tmp_path / "t")


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_broken_json_is_noticed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "j").write_bytes(content)
    with pytest.raises(EvergaitError, match=str(tmp_path / "j")):
        read_json(tmp_path / "j")


def test_links_are_not_followed(tmp_path: Path) -> None:
    write_json(tmp_path / "real", {"a": 1})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(EvergaitError, match="missing or not a plain file"):
        read_json(tmp_path / "link")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from typing import Any
from evergait.core.files import locked
with locked(Path({str(tmp_path / "lock")!r})):
    print("held", flush=True)
    signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with locked(tmp_path / "lock", wait=False) as ours:
            assert not ours
        holder.kill()
        holder.wait()
    with locked(tmp_path / "lock", wait=False) as ours:
        assert ours


def test_who_only_looks_at_a_lock_keeps_nobody_out(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from evergait.core.files import is_locked
print("looks", flush=True)
while True:
    is_locked(Path({str(tmp_path / "lock")!r}))
"""
    (tmp_path / "lock").touch()
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as looker:
        assert looker.stdout
        assert looker.stdout.readline() == "looks\n"
        n_refused = 0
        for _ in range(2000):
            with locked(tmp_path / "lock", wait=False) as ours:
                n_refused += not ours
        looker.kill()
    assert not n_refused


def copy_of(folder: Path, target: Path) -> Path:
    subprocess.run(["cp", "-r", str(folder), str(target)], check=True)
    return target


PARTS = ("config.toml", "ledger.jsonl", "theta.safetensors")
CHANGES = {
    "edit": lambda content: content.replace(b"1", b"2", 1),
    "cut": lambda content: content[: len(content) // 2],
    "lose digests": lambda content: content.replace(b'"sha256"', b'"sha"', 1),
}


@pytest.mark.parametrize(
    ("part", "damage"),
    [(p, d) for p in PARTS for d in ("edit", "cut", "remove") if (p, d) != ("theta.safetensors", "remove")]
    + [("progress.json", d) for d in ("cut", "lose digests")],
)
def test_a_changed_phase_is_refused_by_name(trained: Path, tmp_path: Path, part: str, damage: str) -> None:
    run = copy_of(trained, tmp_path / "run")
    path = Run.load(run).phases[0].path / part
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(CHANGES[damage](path.read_bytes()))
    with pytest.raises(EvergaitError, match="progress.json" if damage == "lose digests" else part):
        _ = Run.load(run).metrics


def test_a_phase_without_its_policy_still_has_its_curves(trained: Path, tmp_path: Path) -> None:
    run = copy_of(trained, tmp_path / "run")
    for phase in Run.load(run).phases:
        (phase.path / "theta.safetensors").unlink()
    assert Run.load(run).metrics == Run.load(trained).metrics
    assert not Run.load(run).has_policies
    with pytest.raises(EvergaitError, match=f"{Run.load(run).phases[-1].name}: was kept without its policy"):
        _ = Run.load(run).theta


@pytest.mark.parametrize("lengths", [[], [5], [5, 5, 5]])
def test_an_evaluation_has_a_length_for_every_return(lengths: list[int]) -> None:
    def content(lengths: list[int]) -> bytes:
        record = Record(0, {"a": [1.0, 2.0]}, {"a": lengths}, {})
        return header_line(Ledger(0, ("a",), ("a",))) + record_line(record)

    assert parse_ledger(content([5, 5]), "l").records[0].lengths == {"a": [5, 5]}
    with pytest.raises(EvergaitError, match=r"l, line 2: is not a ledger line \(it has 2 returns and \d lengths"):
        parse_ledger(content(lengths), "l")


def test_names_cannot_lead_outside(tmp_path: Path) -> None:
    for name in ("../x", "a/b", "", "..", "."):
        with pytest.raises(EvergaitError, match="is not the name of a phase"):
            PhaseStore(tmp_path).folder(name)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("ledger.jsonl", lambda content: content.replace(b"1", b"2", 1), "ledger.jsonl: does not match its digest"),
        ("ledger.jsonl", lambda content: content[:5], "ledger.jsonl: does not match its digest"),
        ("checkpoint.safetensors", lambda content: content[:50], "checkpoint.safetensors: is not a whole"),
        ("checkpoint.safetensors", lambda content: content[:-1] + b"!", "checkpoint.safetensors: its content does not"),
        ("config.toml", lambda content: b"seed = 9", "config.toml: does not match its folder's name"),
    ],
)
def test_a_changed_phase_in_training_is_not_resumed(
    tmp_path: Path, name: str, change: Callable[[bytes], bytes], message: str
) -> None:
    store, identity = PhaseStore(tmp_path), {"seed": 1}
    with store.writing(identity) as writer:
        assert writer
        writer.append(b'{"a": 1}\n')
        writer.checkpoint({"theta": np.ones(5, np.float32)}, {"state": "{}"}, {"generation": 3})
        writer.append(b'{"b": 2}\n')  # after the checkpoint: cut off on resuming
        folder = writer.folder.path
    path = folder / name
    content = path.read_bytes()
    path.write_bytes(change(content))
    with pytest.raises(EvergaitError, match=message), store.writing(identity):
        pass
    path.write_bytes(content)
    with store.writing(identity) as writer:
        assert writer
        assert writer.resumed
    assert (folder / "ledger.jsonl").read_bytes() == b'{"a": 1}\n'
