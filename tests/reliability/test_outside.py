"""No command deletes, writes or follows anything outside its folder; nothing is left over after a kill."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import Forks, tree, write_counts
from small import tiny_study

from evergait.core.errors import EvergaitError
from evergait.core.files import read_json, write_atomically, write_json
from evergait.store.phases import PhaseStore
from evergait.training.run import Run

Ask = Callable[..., tuple[int, str]]
NAME = ".table.csv.abcdefgh"
"""As a temporary file of ours is called."""


def precious(folder: Path) -> Path:
    """A folder of someone else's, with files that look like leftovers of ours."""
    folder.mkdir()
    for name in (NAME, "notes.txt", "lock", "study.json.bak", ".study.json.abcdefgh"):
        (folder / name).write_text("precious")
    return folder


def linked(folder: Path, part: str, ask: Ask) -> None:
    """A study whose folder has a link in place of a part is refused, and what the link leads to stays as it was."""
    folder.mkdir()
    theirs, out = precious(folder / "precious"), folder / "st"
    before = tree_of(theirs)
    out.mkdir()
    (folder / "s.toml").write_text(tiny_study(generations=1, every=1, replay=False))
    (out / part).symlink_to(theirs)
    code, output = ask("study", "run", folder / "s.toml", "--out", out)
    assert tree_of(theirs) == before
    assert code == 2
    assert "link" in output or "not empty" in output


def tree_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


PARTS = ("tables", "figures", "phases", "lock", "study.json", "failures.json")


@pytest.mark.parametrize("part", ["tables", "phases"])
def test_a_link_in_a_studys_folder_leads_nowhere(part: str, ask: Ask, tmp_path: Path) -> None:
    linked(tmp_path / "f", part, ask)


def test_phases_that_are_links_are_refused(trained: Path, tmp_path: Path, ask: Ask) -> None:
    name = Run.load(trained).phases[0].name
    for part in ("phases", f"phases/{name}"):
        out = tmp_path / part.replace("/", "-")
        shutil.copytree(trained, out)
        shutil.move(out / part, tmp_path / f"elsewhere-{out.name}")
        (out / part).symlink_to(tmp_path / f"elsewhere-{out.name}")
        code, output = ask("show", out)
        assert code == 2
        assert "is a link" in output


def test_a_store_outside_the_folder_is_asked_for(trained: Path, tmp_path: Path, ask: Ask) -> None:
    out = tmp_path / "run"
    shutil.copytree(trained, out)
    shutil.move(out / "phases", tmp_path / "store")
    for named in ("../store", str(tmp_path / "store"), "phases/../../store"):
        write_json(out / "run.json", {**read_json(out / "run.json"), "store": named})
        for command in ("show", "verify", "report", "export", "eval", "play"):
            code, output = ask(command, out)
            assert code == 2
            assert "outside its folder" in output
            assert "--store" in output
        assert ask("show", out, "--store", tmp_path / "store")[0] == 0


def test_what_a_killed_writer_left_is_removed_by_the_next_and_nothing_else(tmp_path: Path) -> None:
    for name in (".page.html.abcdefgh", ".page.html.abcdefg", ".other.html.abcdefgh", "page.html.abcdefgh"):
        (tmp_path / name).touch()
    write_atomically(tmp_path / "page.html", b"new")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"page.html", ".page.html.abcdefg", ".other.html.abcdefgh", "page.html.abcdefgh"}


def test_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    pids = []
    for i in range(4):
        if (pid := os.fork()) == 0:
            try:
                for _ in range(100):
                    write_atomically(tmp_path / "f", str(i).encode() * 1000)
                os._exit(0)
            except BaseException:
                os._exit(1)
        pids.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 4
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_writer_whose_file_another_takes_for_a_dead_one_writes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, taken = Path.replace, list[Path]()

    def late(path: Path, target: Path) -> Path:
        if not taken:  # the other one looked before our lock, and removes it after
            taken.append(path)
            path.unlink()
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", late)
    write_atomically(tmp_path / "f", b"ours")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"f": b"ours"}


def test_a_finished_run_whose_checkpoint_stayed_is_tidied(trained: Path, tmp_path: Path, ask: Ask) -> None:
    out = tmp_path / "run"
    shutil.copytree(trained, out)
    whole = tree(out)
    leftover = Run.load(out).phases[-1].path / "checkpoint.safetensors"
    leftover.write_bytes(b"left by a kill between the end of the phase and its tidying")
    (tmp_path / "c.toml").write_bytes((out / "config.toml").read_bytes())
    assert ask("train", "--config", tmp_path / "c.toml", "--out", out)[0] == 0
    assert tree(out) == whole


COMMANDS = {"export": "policy.safetensors", "report": "page.html", "play": "gait.html"}


def killed_and_again(command: str, forks: Forks, trained: Path, folder: Path) -> int:
    """Kill a command before, after and inside every call that writes; the same again leaves its file alone."""
    folder.mkdir()
    output = folder / COMMANDS[command]
    assert forks.run("command", command, trained, "--output", output, fault=(folder, 0, 0)) == 0
    n_calls, whole = int((folder.parent / f"{folder.name}.count").read_text()), tree(folder)
    for n in range(1, n_calls + 1):
        for kind in (-1, -2, -3):
            forks.run("command", command, trained, "--output", output, fault=(folder, n, kind))
            assert forks.run("command", command, trained, "--output", output) == 0
            assert set(tree(folder)) == set(whole)
    return 3 * n_calls


def test_a_killed_export_leaves_nothing(forks: Forks, trained: Path, tmp_path: Path) -> None:
    killed_and_again("export", forks, trained, tmp_path / "out")


@pytest.mark.prove
def test_no_kill_of_a_report_leaves_anything(forks: Forks, trained: Path, tmp_path: Path) -> None:
    own = shutil.copytree(trained, tmp_path / "run")  # a report keeps gaits there
    n = sum(killed_and_again(command, forks, own, tmp_path / command) for command in COMMANDS)
    write_counts("leftovers", n, 0, "every call of export, report and play that changes a file, before, after, inside")


@pytest.mark.prove
def test_no_link_leads_outside(ask: Ask, tmp_path: Path) -> None:
    for part in PARTS:
        linked(tmp_path / part, part, ask)
    for name in ("..", "a/b", "../x", "", "a\0"):
        with pytest.raises(EvergaitError):
            PhaseStore(tmp_path).folder(name)
    write_counts(
        "outside", len(PARTS) + 5, 0, "links and names that lead out of a folder: nothing read, written, deleted"
    )
