"""What `evergait watch` tells, who it answers, and how fast."""

import fcntl
import http.client
import itertools
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from synthetic import make_config, write_run

import evergait
from evergait.cli import main
from evergait.core.errors import EvergaitError
from evergait.core.files import read_json, write_json
from evergait.live.answers import Answers, read_curve
from evergait.live.lab import SAMPLE
from evergait.live.server import Server
from evergait.live.trainings import find_trainings
from evergait.store.pack import unpack
from evergait.store.phases import PhaseFolder, PhaseStore
from evergait.studies.progress import study_status


def ask(address: str, path: str = "", method: str = "GET", **headers: str) -> tuple[int, bytes]:
    """One request, with headers that a browser would not let a page set."""
    split = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", split.port, timeout=20)
    connection.putrequest(method, path or split.path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_only_its_own_page_is_answered(watching: Any) -> None:
    address = watching.address
    path = urlsplit(address).path
    host = urlsplit(address).netloc
    assert ask(address)[0] == 200
    assert ask(address, "/")[0] == 403
    assert ask(address, f"/{'x' * 32}/")[0] == 403
    assert ask(address, Host="evil.example")[0] == 403, "a name rebound to this machine"
    assert ask(address, f"{path}curves", Origin="http://evil.example")[0] == 403
    assert ask(address, f"{path}curves", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(address, Host=host, Origin=f"http://{host}")[0] == 200
    assert ask(address, method="POST")[0] == 501
    assert ask(address, f"{path}../../etc/passwd")[0] == 404
    assert ask(address, f"{path}report?training=/etc")[0] == 400
    assert urlsplit(address).hostname == "127.0.0.1"
    assert ask(address, f"{path}curves", Origin="null")[0] == 403, "as a page in a sandbox asks"


def test_tunnels_and_the_port_80(watching: Any) -> None:
    """A browser names the port of its own end of a tunnel, and leaves out 80; another name is another page's."""
    address = watching.address
    for host in ("localhost:9999", "127.0.0.1"):
        status, said = ask(address, Host=host)
        assert (status, b"the same port number at both ends" in said) == (403, True)
    assert ask(address, Host="127.0.0.1.evil.example:80") == (403, b"This address is not for you.")
    watching._server.server_address = ("127.0.0.1", 80)
    path = f"{urlsplit(address).path}curves?training=x&names=y"
    assert ask(address, Host="localhost")[0] == 200
    assert ask(address, path, Host="127.0.0.1", Origin="http://127.0.0.1")[0] == 400, "answered: there is none"
    assert ask(address, path, Host="127.0.0.1", Origin="http://evil.example")[0] == 403
    assert ask(address, Host="evil.example")[0] == 403


def test_curves_and_policies(watching: Any, folder: Path) -> None:
    path = urlsplit(watching.address).path
    answers = Answers(folder)
    (training,) = answers.everything()["trainings"]
    assert {state["state"] for state in training["phases"].values()} == {"done"}
    assert answers.changes() == []
    names = training["cells"][0]["phases"]
    where = f"training={quote(str(folder), safe='')}"
    curves = json.loads(ask(watching.address, f"{path}curves?{where}&names={','.join(names)},unknown")[1])
    assert sorted(curves) == sorted(names)
    first, ledger = curves[names[0]], PhaseStore(folder / "phases").folder(names[0]).ledger()
    assert first["generations"] == ledger.generations
    assert first["returns"]["Walker2d-v5"] == pytest.approx(ledger.curve("Walker2d-v5"), abs=1e-3)
    policy = json.loads(ask(watching.address, f"{path}policy?{where}&name={names[1]}")[1])
    assert [robot["name"] for robot in policy["robots"]] == ["Hopper-v5", "Swimmer-v5", "Walker2d-v5"]
    assert "no phase" in json.loads(ask(watching.address, f"{path}policy?{where}&name=zz")[1])["error"]


def test_a_robot_of_ones_own_lives_in_a_page(tmp_path: Path) -> None:
    for file in (Path(__file__).parents[2] / "examples" / "robot").iterdir():
        shutil.copy(file, tmp_path)
    name, out = str(tmp_path / "crawler.toml"), tmp_path / "run"
    run = write_run(out, make_config([name]))
    phase = run.phases[0].path.name
    assert [robot["name"] for robot in Answers(out).policy(str(out), phase)["robots"]] == [name]
    rules, before = Path(name), Path(name).read_text()
    rules.write_text(before.replace("forward = 1.0", "forward = 2.0"))
    with pytest.raises(EvergaitError, match="edited since this training"):  # its θ was never trained on that robot
        Answers(out).policy(str(out), phase)
    rules.write_text(before)
    assert Answers(out).policy(str(out), phase)["robots"]
    model = tmp_path / "crawler.xml"
    model.write_text(model.read_text().replace('damping="1"', 'damping="1" frictionloss="0.1"'))
    with pytest.raises(
        EvergaitError, match="does not live in a page: joint 'hip': dry joint friction is not supported"
    ):
        Answers(out).policy(str(out), phase)


@pytest.mark.parametrize("trusted", ["", "evil"])
def test_a_task_that_a_file_names_is_not_imported(
    trusted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    shutil.copy(Path(__file__).parents[2] / "examples/robot/crawler.xml", tmp_path)
    (tmp_path / "evil.toml").write_text('model = "crawler.xml"\nreward = { function = "evil:reward" }\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("EVERGAIT_TRUSTED_MODULES", trusted)
    phase = write_run(tmp_path / "run", make_config(["InvertedPendulum-v5"])).phases[0].path.name
    config = tmp_path / "run" / "config.toml"
    plain = config.read_text()
    for task, why in (("evil:Evil-v0", "is not one of"), (str(tmp_path / "evil.toml"), "its reward is a Python")):
        config.write_text(plain.replace("InvertedPendulum-v5", task))
        with pytest.raises(EvergaitError, match=f"{task} does not live in a page: .*{why}"):
            Answers(tmp_path / "run").policy(str(tmp_path / "run"), phase)
    assert "evil" not in sys.modules


def test_what_is_added_to_a_known_training_is_answered(tmp_path: Path, folder: Path) -> None:
    """A study that grows by a seed, and one that could not be read when it was first seen."""
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    described = read_json(study / "study.json")
    cell, other = described["cells"]
    write_json(study / "study.json", {**described, "cells": [cell]})
    answers = Answers(study)
    new = other["phases"][1]
    for change in (lambda: None, lambda: (study / "study.json").write_text("{")):
        change()
        answers.refresh()
        assert answers.curves(str(study), [new]) == {}
        write_json(study / "study.json", described)
        assert list(answers.curves(str(study), [new])) == [new]
        assert answers.policy(str(study), new)["generation"] > 0


def test_a_finished_phase_is_looked_at_again_when_its_files_change(tmp_path: Path, folder: Path) -> None:
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    answers = Answers(study)
    before = dict(answers.everything()["trainings"][0]["phases"])
    name = next(iter(before))
    shutil.move(study / "phases" / name, tmp_path / "away")
    ((_, gone, state),) = answers.changes()
    assert (gone, state["state"], state["done"]) == (name, "queued", 0.0)
    shutil.copytree(tmp_path / "away", study / "phases" / name, copy_function=shutil.copyfile)
    ((_, back, state),) = answers.changes()
    assert (back, state["state"]) == (name, "done")
    assert state["version"] != before[name]["version"], "the page asks for its curve again"
    assert answers.changes() == []


def test_a_name_that_is_not_utf8(tmp_path: Path, folder: Path) -> None:
    study = tmp_path / os.fsdecode(b"b\xff")
    try:
        shutil.copytree(folder, study)
    except OSError:
        pytest.skip("this file system has no such names")
    answers = Answers(tmp_path)
    (training,) = answers.everything()["trainings"]
    assert training["path"].encode().endswith(b"\\udcff"), "it can be part of an address"
    name = training["cells"][0]["phases"][0]
    assert list(answers.curves(training["path"], [name])) == [name]
    page_of = evergait.watch(study)
    assert ask(page_of.address)[0] == 200
    page_of.close()


def begun(folder: Path, tmp_path: Path) -> tuple[Path, str]:
    """A study of which one phase is being trained, and that phase's name."""
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    name = find_trainings(study)[0].cells[0].phases[1]
    shutil.rmtree(study / "phases" / name)
    (study / "phases" / name).mkdir()
    PhaseFolder(study / "phases" / name).write_progress({"generation": 96, "generations": 480, "status": "training"})
    return study, name


def test_a_pause_is_no_part_of_a_speed(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, name = begun(folder, tmp_path)
    answers = Answers(study)

    def at(seconds: float, generation: int | None) -> Any:
        clock = SimpleNamespace(monotonic=lambda: seconds)
        monkeypatch.setattr("evergait.live.trainings.time", clock)
        write_json(study / "running.json", {name: {"at": f"{generation} of 480 generations", "seconds_left": 60.0}})
        with (study / "phases" / name / "lock").open("w") as lock:
            if generation is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            return answers.everything()["trainings"][0]["phases"][name].get("rate")

    assert [at(0, 100), at(10, 110), at(20, None)] == [None, 1.0, None]
    assert [at(9_000, 105), at(9_010, 125)] == [None, 2.0], "stopped for hours"
    assert [at(9_020, 100), at(9_030, 130)] == [None, 3.0], "begun again from an older checkpoint"


def test_states_without_touching_anything(tmp_path: Path, folder: Path) -> None:
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    cells = find_trainings(study)[0].cells
    walker, swimmer, distilled = cells[0].phases[0], cells[0].phases[1], cells[1].phases[1]
    for name, progress in ((swimmer, {"generation": 96, "generations": 480, "status": "training"}), (distilled, None)):
        shutil.rmtree(study / "phases" / name)
        if progress:
            (study / "phases" / name).mkdir()
            PhaseFolder(study / "phases" / name).write_progress(progress)
    before = {path: path.stat().st_mtime_ns for path in study.rglob("*")}
    answers = Answers(study)
    states = answers.everything()["trainings"][0]["phases"]
    assert states[walker]["state"] == "done"
    assert states[distilled]["state"] == "queued"
    assert (states[swimmer]["state"], states[swimmer]["done"]) == ("running", 0.2)  # its file has just changed
    with PhaseStore(study / "phases").folder(swimmer).path.joinpath("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody else holds it, not even while we look
        assert Answers(study).everything()["trainings"][0]["phases"][swimmer]["state"] == "running"
    (study / "phases" / swimmer / "lock").unlink()
    assert {path: path.stat().st_mtime_ns for path in study.rglob("*") if path.name != swimmer} == {
        path: time for path, time in before.items() if path.name != swimmer
    }


def test_a_killed_study_is_stopped_for_the_page_as_for_study_status(tmp_path: Path, folder: Path) -> None:
    """A kill leaves running.json behind, and a lock that nobody holds."""
    study, name = begun(folder, tmp_path)
    write_json(study / "running.json", {name: {"at": "100 of 480 generations", "seconds_left": 60.0}})

    def seen() -> tuple[tuple[str, str], tuple[str, str]]:
        page = Answers(study).everything()["trainings"][0]["phases"][name]
        status = next(status for status in study_status(study) if name in status.cell.phases)
        return (page["state"], page["detail"]), (status.state, status.detail)

    with (study / "phases" / name / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert seen() == (("running", "100 of 480 generations"), ("running", "100 of 480 generations, 1 min left"))
    assert seen() == (
        ("stopped", "96 of 480 generations at the last checkpoint"),
        ("stopped", "at generation 96 of 480"),
    )


def test_a_line_that_is_being_written_is_left_for_later(tmp_path: Path, folder: Path) -> None:
    name = find_trainings(folder)[0].cells[0].phases[0]
    phase = tmp_path / name
    shutil.copytree(folder / "phases" / name, phase)
    whole = (phase / "ledger.jsonl").read_bytes()
    (phase / "ledger.jsonl").write_bytes(whole[:-200])
    found, everything = read_curve(PhaseFolder(phase)), read_curve(PhaseFolder(folder / "phases" / name))
    assert found
    assert everything
    assert len(found["generations"]) == len(everything["generations"]) - 1
    (phase / "ledger.jsonl").write_bytes(b"\xff\n{}\n")
    assert read_curve(PhaseFolder(phase)) is None


def test_a_damaged_study_does_not_hide_the_others(tmp_path: Path, folder: Path) -> None:
    shutil.copytree(folder, tmp_path / "fine")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "study.json").write_text("{")
    damaged, fine = Answers(tmp_path).everything()["trainings"]
    assert "is not valid JSON" in damaged["title"]
    assert len(fine["phases"]) == 3


def test_what_is_no_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(EvergaitError, match="is not a folder"):
        Server(tmp_path / "nothing")
    assert Answers(tmp_path).everything()["trainings"] == []


def test_folders_that_nobody_made_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the kernel, which may not be read or go while one looks, and too many of them."""
    assert find_trainings(Path("/proc/self")) == []
    assert find_trainings(Path("/proc/1")) == []
    (tmp_path / "self").symlink_to(tmp_path)
    for name in "abc":
        (tmp_path / name).mkdir()
    monkeypatch.setattr("evergait.live.trainings.MOST_FOLDERS", 4)
    assert find_trainings(tmp_path) == []
    (tmp_path / "d").mkdir()
    with pytest.raises(EvergaitError, match="more than 4 folders in it; name one"):
        find_trainings(tmp_path)


def many(path: Path, n_phases: int) -> Path:
    """A study with so many finished phases."""
    shutil.copytree(SAMPLE, path)
    unpack(path / "phases")
    described = read_json(path / "study.json")
    cell = described["cells"][0]
    names = [f"{i:024x}" for i in range(n_phases)]
    for name in names:
        shutil.copytree(path / "phases" / cell["phases"][0], path / "phases" / name)
    described["cells"] = [{**cell, "seed": i, "phases": names[2 * i : 2 * i + 2]} for i in range(n_phases // 2)]
    write_json(path / "study.json", described)
    return path


def events_of(address: str) -> Iterator[tuple[str, Any]]:
    """What the page hears."""
    with closing(http.client.HTTPConnection("127.0.0.1", urlsplit(address).port, timeout=5)) as connection:
        connection.request("GET", f"{urlsplit(address).path}events")
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Content-Type")) == (200, "text/event-stream")
        while line := answer.fp.readline():
            yield line.decode().split()[1], json.loads(answer.fp.readline().removeprefix(b"data: "))
            answer.fp.readline()


def test_a_folder_that_is_away_for_a_moment(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAST_SECONDS", "SEARCH_SECONDS"):
        monkeypatch.setattr(f"evergait.live.server.{name}", 0.05)
    here, away = tmp_path / "here", tmp_path / "away"
    shutil.copytree(folder, here / "study")
    with closing(evergait.watch(here)) as page_of:
        heard = (data for name, data in events_of(page_of.address) if name == "everything")
        assert len(next(heard)["trainings"]) == 1
        here.rename(away)
        assert next(heard)["trainings"] == []
        assert next(events_of(page_of.address))[1]["trainings"] == [], "who asks now is not sent away"
        away.rename(here)
        assert len(next(heard)["trainings"]) == 1
        monkeypatch.setattr("evergait.live.trainings.MOST_FOLDERS", 1)
        name, why = next(events_of(page_of.address))
        assert (name, "has more than 1 folders in it" in why) == ("refused", True)


@pytest.mark.parametrize(("slow", "quiet"), [("refresh", 1000.0), ("changes", 0.1)])
def test_looks_go_on_however_long_one_takes(
    slow: str, quiet: float, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search does not put off the next look; nor does a look, for longer than a page is left without a word."""
    settings = {"LEAST_SECONDS": 0.02, "SEARCH_SECONDS": 0.02, "QUIET_SECONDS": quiet, "SHARE": 0.001}
    for name, value in settings.items():
        monkeypatch.setattr(f"evergait.live.server.{name}", value)

    def works(answers: Answers) -> list[Any]:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return []

    monkeypatch.setattr(Answers, "changes", lambda answers: [["a path", "a name", {}]])
    monkeypatch.setattr(Answers, slow, works)
    with closing(evergait.watch(folder)) as page_of:
        heard = [name for name, _ in itertools.islice(events_of(page_of.address), 5)]
    assert heard == ["everything", *["changes"] * 4]


def test_500_phases_in_a_second(tmp_path: Path) -> None:
    """Of processor time: other work of this machine is not the page's."""
    folder = many(tmp_path / "many", 500)
    with closing(evergait.watch(folder)) as with_page:
        began = time.process_time()
        name, everything = next(events_of(with_page.address))
        seconds = time.process_time() - began
    assert name == "everything"
    assert len(everything["trainings"][0]["phases"]) == 500
    assert seconds < 1.0, f"{seconds:.2f} s"


def test_a_report_that_comes_or_goes_is_told(tmp_path: Path, folder: Path) -> None:
    study = tmp_path / "study"
    shutil.copytree(folder, study)
    report = study / "report.html"
    report.unlink(missing_ok=True)
    answers = Answers(study)
    for change, there in ((report.touch, True), (report.unlink, False)):
        assert not answers.refresh()
        change()
        assert answers.refresh()
        assert answers.everything()["trainings"][0]["report"] is there


def test_a_port_in_use_is_named(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["watch", str(trained), "--no-open", "--port", str(port)]) == 2
    assert f"port: {port} on 127.0.0.1: Address already in use" in capsys.readouterr().err
