"""Packed phases: the same bytes back, read in place by every command, damage noticed, hostile archives refused."""

import contextlib
import io
import json
import random
import shutil
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import tree
from hypothesis import example, given
from hypothesis import strategies as st
from small import tiny_study

from evergait import EvergaitError
from evergait.analysis.study import measure_references, measured_references
from evergait.cli import main
from evergait.commands.study import run_study
from evergait.core.files import canonical_json, read_json, write_json
from evergait.store import archive
from evergait.store.archive import COLUMNS, archive_path, open_archive, put_numbers, take_numbers
from evergait.store.pack import pack, unpack
from evergait.store.phases import PhaseStore
from evergait.studies.folder import load_results
from evergait.studies.progress import study_status
from evergait.studies.results import Results
from evergait.training.run import Run
from evergait.zoo import card

N_PHASES = 12


def files(root: Path) -> dict[str, bytes]:
    return {name: content for name, content in tree(root).items() if not name.endswith("lock")}


@pytest.fixture
def study(trained_study: Results, tmp_path: Path) -> Path:
    """A trained study of its own."""
    shutil.copytree(trained_study.path, tmp_path / "study")
    return tmp_path / "study"


@pytest.fixture
def packed(study: Path) -> Path:
    pack(study / "phases")
    return study


def read_all(root: Path) -> list[object]:
    """Everything that a store says of its phases."""
    store = PhaseStore(root)
    found: list[object] = []
    for name in store.names():
        folder = store.folder(name)
        folder.verify()
        tensors, metadata = folder.result()
        found += [name, folder.progress(), folder.identity(), folder.ledger(), metadata]
        found += [(key, tensor.tobytes()) for key, tensor in tensors.items()]
    return found


def test_there_and_back_again(study: Path) -> None:
    root = study / "phases"
    before, said, names = files(study), read_all(root), {path.name for path in study.iterdir()}
    assert pack(root) == N_PHASES
    assert {path.name for path in study.iterdir()} == names - {"phases", "study.json"} | {"phases.zip"}
    assert read_all(root) == said
    assert unpack(root) == N_PHASES
    assert files(study) == before


def test_what_was_measured_is_packed_and_read_in_place(study: Path) -> None:
    measure_references(load_results(study), threads=1)
    measured, before = measured_references(study), files(study)
    assert set(measured) == {entry.run.phases[0].name for entry in load_results(study).entries}
    pack(study / "phases")
    assert not (study / "references.json").exists()
    assert measured_references(study) == measured
    unpack(study / "phases")
    assert files(study) == before


def test_the_same_phases_give_the_same_archive(study: Path) -> None:
    root = study / "phases"
    pack(root)
    once = files(study)
    pack(root)
    assert files(study) == once
    unpack(root)
    pack(root)
    assert files(study) == once


def test_anyone_can_read_it(packed: Path) -> None:
    with np.load(packed / "phases.zip") as columns:  # which refuses pickles
        assert set(COLUMNS) < set(columns)
        ledger = PhaseStore(packed / "phases").folder(columns["phases"][0].decode()).ledger()
        returns = [value for task in ledger.tasks for value in ledger.records[0].returns[task]]
        assert set(returns) <= set(columns["floats"].tolist())
        assert len(json.loads(columns["study.json"])["cells"]) > 0
        assert sum(name.endswith(".safetensors") for name in columns) == N_PHASES


def test_commands_read_it_in_place(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def answers() -> list[str]:
        said = []
        for command in (["study", "status"], ["verify", "--episodes", "1"], ["report"]):
            assert main([command[0], *command[1:], str(study)]) in (0, 1), command
            said.append(capsys.readouterr().out)
        return said

    before = answers()
    assert main(["study", "pack", str(study)]) == 0
    assert f"{N_PHASES} phases are packed" in capsys.readouterr().out.replace("\n", " ")
    assert answers() == before
    assert main(["study", "unpack", str(study)]) == 0
    assert sorted(path.name for path in (study / "phases").iterdir()) == PhaseStore(study / "phases").names()


def test_a_study_finds_its_packed_phases_done(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(tiny_study())
    shutil.copytree(packed, tmp_path / "clone")
    before = files(tmp_path / "clone")
    run_study(tmp_path / "tiny.toml", tmp_path / "clone", seeds=2, threads=1, artifacts=False)
    assert {status.state for status in study_status(tmp_path / "clone")} == {"done"}
    assert files(tmp_path / "clone") == before
    grown = run_study(tmp_path / "tiny.toml", tmp_path / "clone", seeds=3, threads=1, artifacts=False)
    assert {entry.seed for entry in grown.entries} == {0, 1, 2}
    assert len(PhaseStore(tmp_path / "clone" / "phases").names()) == N_PHASES // 2 * 3
    pack(tmp_path / "clone" / "phases")  # study.json has grown, and its older copy goes
    assert {entry.seed for entry in load_results(tmp_path / "clone").entries} == {0, 1, 2}


def test_new_phases_join_the_archive(packed: Path, trained: Path) -> None:
    root = packed / "phases"
    shutil.copytree(trained / "phases", root, dirs_exist_ok=True)
    assert pack(root) == N_PHASES + 2
    assert not root.exists()
    assert len(read_all(root)) > 0


def test_policies_can_be_left_out(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = PhaseStore(study / "phases")
    first = {entry.run.phases[0].name for entry in load_results(study).entries}
    pack(store.root, without_policy=first)
    assert {name for name in store.names() if not store.folder(name).has_policy} == first
    assert main(["study", "pack", str(study), "--policies", "none"]) == 0
    assert "12 phases are packed" in capsys.readouterr().out
    assert not any(name.endswith(".safetensors") for name in members_of(study / "phases.zip"))
    folder = store.folder(first.pop())
    assert folder.ledger().records
    with pytest.raises(EvergaitError, match="was kept without its policy"):
        folder.result()


@pytest.mark.parametrize("policies", ["last", "none"])
def test_what_unfinished_runs_start_from_is_kept(
    study: Path, policies: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store, told = PhaseStore(study / "phases"), read_json(study / "study.json")
    told["cells"] = [cell for cell in told["cells"] if cell["condition"] != "single"]  # whose last phase is a first one
    write_json(study / "study.json", told)
    first, second = next(entry.run.phases for entry in load_results(study).entries if entry.condition == "replay")
    shutil.rmtree(second.path)
    assert main(["study", "pack", str(study), "--policies", policies]) == 0
    last = {entry.run.phases[-1].name for entry in load_results(study).entries} if policies == "last" else set()
    assert {name for name in store.names() if store.folder(name).has_policy} == {first.name, *last}
    (study / "tiny.toml").write_text(tiny_study())
    run_study(study / "tiny.toml", study, seeds=2, threads=1, artifacts=False)
    assert store.folder(second.name).is_done()


def test_no_folder_is_removed_before_its_policy_is_read_back(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(study)

    def careless(path: Path, texts: Any, policies: dict[str, bytes], beside: Any) -> None:
        name = max(policies)
        archive.write_archive(path, texts, {**policies, name: policies[name][:-1]}, beside)

    monkeypatch.setattr("evergait.store.pack.write_archive", careless)
    with pytest.raises(EvergaitError, match=r"phases\.zip: was not written as it should be"):
        pack(study / "phases")
    assert files(study) == before


def test_more_than_a_plain_zip_file_holds_is_refused_in_words(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(study)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", N_PHASES)
    assert main(["study", "pack", str(study)]) == 2
    assert "would be more than 65,535 files or 2 GiB" in capsys.readouterr().err.replace("\n", " ")
    assert files(study) == before


def test_a_phase_in_training_is_left_alone(study: Path) -> None:
    root = study / "phases"
    name = PhaseStore(root).names()[0]
    progress = root / name / "progress.json"
    progress.unlink()
    before = files(root / name)
    assert pack(root) == N_PHASES - 1
    assert files(root / name) == before
    assert not PhaseStore(root).folder(name).is_done()


def test_folders_that_a_crash_left_beside_the_archive_do_no_harm(study: Path) -> None:
    root = study / "phases"
    shutil.copytree(root, study / "copy")
    said = read_all(root)
    pack(root)
    name = PhaseStore(root).names()[0]
    (root / name).mkdir(parents=True)
    shutil.copy(study / "copy" / name / "ledger.jsonl", root / name)  # as if the removal had been cut short
    assert read_all(root) == said
    pack(root)
    assert read_all(root) == said
    unpack(root)
    assert read_all(root) == said


def test_damage_is_noticed(packed: Path) -> None:
    root, rng = packed / "phases", random.Random(0)
    said = read_all(root)
    file = archive_path(root)
    whole = file.read_bytes()
    places = [*range(0, len(whole), len(whole) // 120), *range(len(whole) - 30, len(whole))]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.randrange(8)
        file.write_bytes(damaged)
        archive._open.cache_clear()
        with contextlib.suppress(EvergaitError):
            assert read_all(root) == said, place  # bits of a zip file that mean nothing, such as its dates
    for n_kept in (0, 10, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:n_kept])
        archive._open.cache_clear()
        with pytest.raises(EvergaitError, match="archive"):
            read_all(root)


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return stream.getvalue()


def npy(array: np.ndarray, **options: bool) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def hostile(members: dict[str, bytes]) -> dict[str, bytes]:
    """Archives that a stranger may have made."""
    huge = npy(np.zeros(0)).replace(b"(0,)", b"(9999999999999,)").replace(b" " * 13 + b"\n", b"\n")
    wrong_end = npy(np.array([10**12] * N_PHASES, "<i8"))
    return {
        "a bomb": zipped({**members, "ledger.npy": bytes(archive.LIMIT)}),  # type: ignore[attr-defined]
        "a pickle": zipped({**members, "floats.npy": npy(np.array([print], object), allow_pickle=True)}),
        "a size without content": zipped({**members, "floats.npy": huge}),
        "cuts outside": zipped({**members, "floats_end.npy": wrong_end}),
        "cuts that fall": zipped({**members, "ints_end.npy": npy(np.arange(N_PHASES, 0, -1).astype("<i8"))}),
        "another type": zipped({**members, "floats.npy": npy(np.zeros(3, "<f4"))}),
        "a column less": zipped({name: content for name, content in members.items() if name != "floats.npy"}),
        "a column more": zipped({**members, "more.npy": npy(np.zeros(3))}),
        "a file more": zipped({**members, "run.py": b"raise SystemExit"}),
        "names that lead outside": zipped({**members, "phases.npy": npy(np.array([b"../../etc"] * N_PHASES))}),
        "another compression": zipped(members, zipfile.ZIP_LZMA),
        "no zip file": b"PK" * 1000,
        "a table of contents as 64-bit files have it": zipped(members)[:-22]
        + b"PK\6\7".ljust(20)
        + zipped(members)[-22:],
        "a table of contents of a gigabyte": zipped(members)[:-10] + b"\xff\xff\xff\x3f" + zipped(members)[-6:],
    }


def test_hostile_archives_are_refused(packed: Path) -> None:
    path = packed / "phases.zip"
    for what, content in hostile(members_of(path)).items():
        path.write_bytes(content)
        with pytest.raises(EvergaitError, match=r"phases\.zip: is not a whole archive of phases"):
            open_archive(packed / "phases")
        assert main(["study", "status", str(packed)]) == 2, what


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def archive_targets(scratch: Path, trained: Path) -> Iterator[tuple[str, Callable[[Path], None], bytes, Any, Any]]:
    """For the fuzzer: name, loader, content, data and how content is made of data; by columns, and by other members."""
    folder = scratch / "packed"
    shutil.copytree(trained, folder)
    pack(folder / "phases")
    file = folder / "phases.zip"
    good, members = file.read_bytes(), members_of(file)

    def load(path: Path) -> None:
        path.replace(file)
        archive._open.cache_clear()
        try:
            run = Run.load(folder)
            assert card(run, "someone/it")
            assert all(run.state(stage) for stage in range(len(run.phases)))
        finally:
            file.write_bytes(good)

    columns = {name: archive.parse_column(content) for name, content in members.items() if name.endswith(".npy")}

    def by_columns(data: dict[str, Any]) -> bytes:
        kinds = {key: columns[key].dtype if key in columns else None for key in data}
        changed = {key: npy(np.array(value, kinds[key]), allow_pickle=False) for key, value in data.items()}
        return zipped({**{key: content for key, content in members.items() if key not in columns}, **changed})

    def by_members(data: dict[str, Any]) -> bytes:
        return zipped({str(key): members.get(key, b"") + str(value).encode() for key, value in data.items()})

    yield "columns", load, good, {key: column.tolist() for key, column in columns.items()}, by_columns
    yield "archive", load, good, dict.fromkeys(members, ""), by_members


def test_a_small_file_takes_little_memory(packed: Path) -> None:
    path = packed / "phases.zip"
    members, size = members_of(path), 123_456_789
    lie = zipped({**members, "floats.npy": bytes(size)}).replace(size.to_bytes(4, "little"), b"\x64\0\0\0")
    names = zipped({**members, "phases.npy": npy(np.zeros(archive.MOST_PHASES + 1, "S1"))})
    for content, problem in ((lie, "Bad CRC"), (names, "262145 phases; at most 262144")):
        path.write_bytes(content)
        tracemalloc.start()
        with pytest.raises(EvergaitError, match=problem):
            open_archive(packed / "phases")
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
        tracemalloc.stop()


def test_a_ledger_of_too_many_numbers_is_not_written_out(packed: Path) -> None:
    path, n = packed / "phases.zip", 1 << 23
    members = members_of(path)
    floats, ends = (archive.parse_column(members[f"{name}.npy"]) for name in ("floats", "floats_end"))
    more = {"floats.npy": npy(np.append(floats, np.zeros(n))), "floats_end.npy": npy(ends + n * (ends == ends[-1]))}
    path.write_bytes(zipped({**members, **more}))
    with pytest.raises(EvergaitError, match="more numbers than fit into 33554432 bytes"):
        read_all(packed / "phases")


def test_links_are_refused(packed: Path, tmp_path: Path) -> None:
    path = packed / "phases.zip"
    path.rename(tmp_path / "elsewhere.zip")
    path.symlink_to(tmp_path / "elsewhere.zip")
    with pytest.raises(EvergaitError, match="is not a plain file"):
        open_archive(packed / "phases")
    assert main(["study", "status", str(packed)]) == 2


def test_packing_follows_no_link(study: Path, tmp_path: Path) -> None:
    root = study / "phases"
    name = PhaseStore(root).names()[0]
    (root / name).rename(tmp_path / "precious")
    (root / name).symlink_to(tmp_path / "precious")
    before = tree(tmp_path / "precious")
    pack(root)
    assert tree(tmp_path / "precious") == before
    root.rename(tmp_path / "moved")
    root.symlink_to(tmp_path / "moved")
    for what in (pack, unpack):
        with pytest.raises(EvergaitError, match="is a link"):
            what(root)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@example({"a task [f1]": [1.5]})
@given(JSON | st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_come_back_as_they_were(data: object) -> None:
    text = canonical_json(data).encode()
    skeleton, floats, ints = take_numbers(text)
    assert json.loads(put_numbers(skeleton, np.array(floats), np.array(ints, np.int64))) == data
    assert put_numbers(skeleton, np.array(floats), np.array(ints, np.int64)) == text
