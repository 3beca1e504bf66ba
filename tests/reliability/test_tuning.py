"""Tuning keeps the promises of training: nothing lost, nothing believed that the store does not say."""

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import evergait, tree, write_counts
from small import tiny_study

from evergait.commands.tune import tune
from evergait.core.errors import EvergaitError
from evergait.core.files import read_json, write_json

pytest.importorskip("optuna")
Ask = Callable[..., tuple[int, str]]
SEARCH = """
[search]
condition = "naive"
trials = 4
[search.space]
sigma = { low = 0.05, high = 0.2 }
"""


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("search") / "s.toml"
    path.write_text(tiny_study(generations=20, every=4, engine="mujoco", replay=False) + SEARCH)
    return path


@pytest.fixture(scope="module")
def whole(search: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a search that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole") / "out"
    tune(search, out, threads=1)
    return out


def copy(folder: Path, out: Path) -> Path:
    import shutil

    shutil.copytree(folder, out)
    return out


def edited(out: Path, what: str) -> None:
    """A stranger's edit of trials.json, resealed or not."""
    path = out / "trials.json"
    data = read_json(path)
    trials = data["trials"]
    if what == "score":
        trials[-1]["score"] = 1e9
    elif what == "values":
        trials[0]["values"] = {step: value + 1 for step, value in trials[0]["values"].items()}
    elif what == "params":
        trials[1]["params"] = {"sigma": 0.07}
    elif what == "state":
        trials[0] |= {"state": "undefined", "score": None}
    elif what == "shape":
        data["trials"] = "none"
    if what == "cut":
        path.write_bytes(path.read_bytes()[:-40])
    elif what == "unsealed":
        path.write_text(path.read_text().replace('"complete"', '"pruned"', 1))
    else:
        write_json(path, data)


EDITS = ("score", "values", "params", "state", "shape", "cut", "unsealed")


@pytest.mark.parametrize("what", EDITS)
def test_an_edited_trial_is_refused(what: str, search: Path, whole: Path, tmp_path: Path) -> None:
    out = copy(whole, tmp_path / "out")
    edited(out, what)
    with pytest.raises(EvergaitError, match=r"trials.json.*"):
        tune(search, out, threads=1)


@pytest.mark.parametrize("what", ["fifo", "link", "phases"])
def test_nothing_hangs_or_leads_outside(what: str, search: Path, tmp_path: Path) -> None:
    out, outside = tmp_path / "out", tmp_path / "outside"
    out.mkdir()
    outside.mkdir()
    if what == "fifo":
        os.mkfifo(out / "trials.json")
    else:
        (out / ("trials.json" if what == "link" else "phases")).symlink_to(outside)
    with pytest.raises(EvergaitError):
        tune(search, out, threads=1)
    assert not list(outside.iterdir())


def killed_and_again(search: Path, out: Path, chance: random.Random, whole: Path, number: int) -> int:
    """Kill a search now and then until it ends; its files are those of one that nothing disturbed."""
    n_kills = 0
    while True:
        process = evergait("tune", search, "--out", out, "--threads", 1, start_new_session=True)
        try:
            process.wait(chance.uniform(1.5, 5.0))
        except Exception:
            os.killpg(process.pid, number if n_kills < 6 else signal.SIGCONT)
            n_kills += n_kills < 6
        process.communicate(timeout=120)
        if process.returncode == 0:
            break
    assert tree(out) == tree(whole)
    return n_kills


def test_a_killed_search_ends_as_if_nothing_had_happened(search: Path, whole: Path, tmp_path: Path) -> None:
    killed_and_again(search, tmp_path / "out", random.Random(0), whole, signal.SIGKILL)


@pytest.mark.prove
def test_no_kill_and_no_edit_changes_a_search(search: Path, whole: Path, tmp_path: Path) -> None:
    chance, n = random.Random(1), 0
    for i, number in enumerate((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)):
        n += killed_and_again(search, tmp_path / f"killed{i}", chance, whole, number)
    for what in EDITS:
        out = copy(whole, tmp_path / what)
        edited(out, what)
        with pytest.raises(EvergaitError):
            tune(search, out, threads=1)
    note = f"{n} kills and signals in 4 searches, every file compared; {len(EDITS)} edits, refused by name"
    write_counts("tuning", n + len(EDITS), 0, note)
