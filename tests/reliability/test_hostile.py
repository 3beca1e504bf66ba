"""Files from strangers: nothing in them is executed, nothing written outside, memory is bounded, errors are clear.

A sentinel file outside the run would tell if any of it had been executed or followed.
"""

import io
import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small import tiny_config, tiny_study

from evergait.cli import main
from evergait.core.errors import EvergaitError
from evergait.core.files import canonical_json, read_json, read_tensors, sha256, write_json, write_tensors
from evergait.figures.artifacts import write_artifacts
from evergait.paper.study import analyse
from evergait.report.gait import moments, recorder
from evergait.store.phases import PhaseFolder, identity_hash
from evergait.studies.folder import load_results
from evergait.training.phases import plan_phases
from evergait.training.run import Run

MEMORY = 1 << 30
"""What a command may use at most while it reads a hostile file: of that some 700 MB are address space of libraries."""

Ask = Callable[..., tuple[int, str]]


class Evil:
    """Leaves a sentinel when it is unpickled."""

    def __init__(self, sentinel: Path) -> None:
        self.sentinel = sentinel

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.write_text, (self.sentinel, "executed"))


def phase(run: Path, stage: int = 0) -> Path:
    return run / "phases" / json.loads((run / "run.json").read_text())["phases"][stage]  # type: ignore[no-any-return]


def seal(run: Path) -> None:
    """Make all digests right again, as a stranger who knows the format would."""
    described = read_json(run / "run.json")
    write_json(run / "run.json", {**described, "config": sha256((run / "config.toml").read_bytes())})
    for name in described["phases"]:
        folder = run / "phases" / name
        if (folder / "progress.json").exists():
            progress = read_json(folder / "progress.json")
            parts = ("config.toml", "ledger.jsonl", "theta.safetensors")
            progress["sha256"] = {part: sha256((folder / part).read_bytes()) for part in parts}
            write_json(folder / "progress.json", progress)


def pickled(sentinel: Path) -> bytes:
    return pickle.dumps(Evil(sentinel))


def archive(sentinel: Path) -> bytes:
    content = io.BytesIO()
    np.savez(content, theta=np.array([Evil(sentinel)], object), allow_pickle=True)
    return content.getvalue()


def header(data: object, tail: bytes = b"") -> bytes:
    text = json.dumps(data).encode()
    return len(text).to_bytes(8, "little") + text + tail


def shaped(shape: list[int], kind: str = "F32") -> bytes:
    return header({"theta": {"dtype": kind, "shape": shape, "data_offsets": [0, 4]}, "__metadata__": {}}, b"1234")


TENSORS: dict[str, Callable[[Path], bytes]] = {
    "a pickle": pickled,
    "an npz with a pickle": archive,
    "a header of 2^63 bytes": lambda _: b"\xff" * 7 + b"\x7f" + b"{}",
    "a header of 90 MB": lambda _: (90_000_000).to_bytes(8, "little") + b" " * 90_000_000,
    "a shape of 2^60": lambda _: shaped([2**60]),
    "a shape that overflows": lambda _: shaped([2**32, 2**32]),
    "a negative shape": lambda _: shaped([-1]),
    "an unknown type": lambda _: shaped([1], "OBJECT"),
    "a deep header": lambda _: (200_000).to_bytes(8, "little") + b"[" * 200_000,
    "metadata that is no text": lambda _: header({"__metadata__": {"evergait": "[1]"}}),
    "nothing": lambda _: b"",
}


@pytest.mark.parametrize("what", TENSORS)
def test_tensors(what: str, trained: Path, tmp_path: Path) -> None:
    run, sentinel = tmp_path / "run", tmp_path / "sentinel"
    shutil.copytree(trained, run)
    (phase(run, 1) / "theta.safetensors").write_bytes(TENSORS[what](sentinel))
    seal(run)
    with pytest.raises(EvergaitError, match=r"theta\.safetensors: is not a whole \.safetensors file of evergait's"):
        Run.load(run).state()
    assert not sentinel.exists()


DEEP = "[" * 100_000
JSONS = {
    "deep": DEEP,
    "deep objects": '{"a":' * 100_000,
    "infinity": '{"phases": [], "store": "phases", "x": 1e999}',
    "not a number": '{"phases": [], "store": "phases", "x": NaN}',
    "a number of 10,000 digits": '{"x": ' + "9" * 10_000 + "}",
    "a field twice": '{"phases": [], "store": "phases", "phases": ["x"]}',
    "a list": "[1, 2]",
    "20 MB": '{"x": [' + "[]," * 7_000_000 + "[]]}",
    "lone surrogates": '{"phases": ["\\ud800"], "store": "phases"}',
    "names that lead outside": '{"phases": ["../../etc"], "store": "phases"}',
    "no names": '{"phases": [1, null, {}], "store": "phases"}',
}


@pytest.mark.parametrize("name", ["run.json", "study.json", "progress.json"])
@pytest.mark.parametrize("what", JSONS)
def test_json(name: str, what: str, trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    target = phase(run) / name if name == "progress.json" else run / name
    target.write_text(JSONS[what], errors="surrogatepass")
    assert_refused(run, ("show", "report", "study status") if name == "study.json" else ("show", "report"))


def assert_refused(run: Path, commands: tuple[str, ...]) -> None:
    """Every command says in a sentence what is wrong, in bounded memory."""
    for command in commands:
        arguments = [*command.split(), str(run)]
        if command == "show" and (run / "study.json").exists():
            continue  # does not look at it
        assert main(arguments) == 2, command


TOMLS = {
    "deep lists": "a = " + "[" * 50_000,
    "deep tables": "a" + ".a" * 20_000 + " = 1",
    "a number of 20,000 digits": "seed = 0x" + "f" * 20_000,
    "a large number for a float": "sigma = 0x" + "f" * 400,
    "2 MB": "# " + "x" * 2_000_000,
    "many tables": "".join(f"[t{i}]\n" for i in range(5000)),
    "a date": "seed = 2020-01-01",
    "infinity": "sigma = inf",
    "not text": "stream = [[[]]]",
}


@pytest.mark.parametrize("what", TOMLS)
def test_toml(what: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    (run / "config.toml").write_text(TOMLS[what])
    seal(run)
    assert_refused(run, ("show", "eval", "verify", "export", "report", "play"))
    assert main(["train", "--config", str(run / "config.toml"), "--out", str(tmp_path / "other")]) == 2
    (tmp_path / "study.toml").write_text(TOMLS[what])
    assert main(["study", "plan", str(tmp_path / "study.toml")]) == 2
    assert "Traceback" not in capsys.readouterr().err
    (phase(run) / "config.toml").write_text(TOMLS[what])
    seal(run)
    with pytest.raises(EvergaitError, match=r"config\.toml"):
        Run.load(run).phases[0].identity()


def disguised(run: Path, change: Callable[[dict[str, np.ndarray], dict[str, str]], None]) -> None:
    """Other tensors in a file whose digests are right."""
    path = phase(run, 1) / "theta.safetensors"
    tensors, metadata = read_tensors(path)
    change(tensors, metadata)
    write_tensors(path, tensors, metadata)
    seal(run)


def keep(name: str, part: slice) -> Callable[[dict[str, np.ndarray], dict[str, str]], None]:
    return lambda tensors, _: tensors.update({name: tensors[name][part]})


LIES: dict[str, Callable[[dict[str, np.ndarray], dict[str, str]], None]] = {
    "θ too short: the native core would read behind its end": keep("theta", slice(3)),
    "a best θ too short": keep("best_theta", slice(3)),
    "a snapshot too short": keep("snapshot.2", slice(3)),
    "statistics too short": keep("statistics.Reacher-v5", slice(1)),
    "θ of other numbers": lambda t, _: t.update(theta=t["theta"].astype(np.float64)),
    "θ of two dimensions": lambda t, _: t.update(theta=t["theta"][None]),
    "no θ": lambda t, _: t.pop("theta"),  # type: ignore[dict-item]
    "a snapshot of no generation": lambda t, _: t.update({"snapshot.../x": t["theta"]}),
    "no state": lambda _, m: m.pop("state"),  # type: ignore[dict-item]
    "a state that is a list": lambda _, m: m.update(state="[]"),
    "a generation that is text": lambda _, m: m.update(
        state=m["state"].replace('"generation": 4', '"generation": "4"')
    ),
    "a return of 400 digits": lambda _, m: m.update(state='{"best_return": ' + "9" * 400 + "}"),
}


@pytest.mark.parametrize("what", LIES)
def test_tensors_that_do_not_fit(what: str, trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    disguised(run, LIES[what])
    with pytest.raises(EvergaitError, match=phase(run, 1).name):
        Run.load(run).state()


LEDGERS = {
    "no line": lambda lines: [],
    "no evaluation": lambda lines: lines[:1],
    "no returns": lambda lines: [lines[0], lines[1].replace('"returns":[', '"returns":[],"x":[')],
    "text for a return": lambda lines: [lines[0], lines[1].replace('"returns":[', '"returns":["nan",')],
    "a return of 400 digits": lambda lines: [
        lines[0],
        lines[1].replace('"returns":[', '"returns":[' + "9" * 400 + ","),
    ],
    "an infinite return": lambda lines: [lines[0], lines[1].replace('"returns":[', '"returns":[1e999,')],
    "a generation twice": lambda lines: [*lines, lines[-1]],
    "another stage": lambda lines: [lines[0].replace('"stage":1', '"stage":0'), *lines[1:]],
    "other tasks": lambda lines: [line.replace("Reacher-v5", "Reacher-v4") for line in lines],
    "a task that is no text": lambda lines: [lines[0].replace('"tasks":["', '"tasks":[1,"'), *lines[1:]],
    "a later format": lambda lines: [lines[0].replace('"ledger":1', '"ledger":2'), *lines[1:]],
    "a deep line": lambda lines: [*lines, DEEP],
}


@pytest.mark.parametrize("what", LEDGERS)
def test_ledgers_that_make_no_sense(what: str, trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    path = phase(run, 1) / "ledger.jsonl"
    path.write_text("".join(f"{line}\n" for line in LEDGERS[what](path.read_text().splitlines())))  # type: ignore[no-untyped-call]
    seal(run)
    with pytest.raises(EvergaitError, match=r"ledger\.jsonl"):
        _ = Run.load(run).metrics


@pytest.mark.parametrize("name", ["ledger.jsonl", "lock", "config.toml", "progress.json", "checkpoint.safetensors"])
def test_links_inside_a_phase_are_not_followed(ask: Ask, name: str, tmp_path: Path) -> None:
    """A stranger's half-trained run whose files lead to ours: going on with it must not touch them."""
    config, target, out = tiny_config(), tmp_path / "precious", tmp_path / "run"
    target.write_text("precious")
    folder = out / "phases" / plan_phases(config)[0].name
    folder.mkdir(parents=True)
    (folder / name).symlink_to(target)
    (out / "config.toml").write_text(config.to_toml())
    code, output = ask("train", "--config", out / "config.toml", "--out", out, "--threads", 1)
    assert (code == 2 and name in output) or not (folder / name).is_symlink(), output
    assert target.read_text() == "precious"


@pytest.mark.parametrize("name", ["phases", "phases/PHASE", "lock", "run.json"])
def test_links_in_place_of_folders_are_not_followed(ask: Ask, name: str, tmp_path: Path) -> None:
    outside, out, config = tmp_path / "outside", tmp_path / "out", tiny_config()
    outside.mkdir()
    link = out / name.replace("PHASE", plan_phases(config)[0].name)
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    (tmp_path / "c.toml").write_text(config.to_toml())
    code, output = ask("train", "--config", tmp_path / "c.toml", "--out", out, "--threads", 1)
    assert code == 2, output
    assert not list(outside.iterdir())


def test_links_in_place_of_a_studys_folders_are_not_followed(trained: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    run, results = Run.load(trained), load_results(trained)
    for name in ("tables", "figures"):
        (tmp_path / name).symlink_to(outside)
        with pytest.raises(EvergaitError, match=f"{name}: is a link"):
            write_artifacts(analyse(results), tmp_path)
        (tmp_path / name).unlink()
    (tmp_path / "gaits").symlink_to(outside)
    with pytest.raises(EvergaitError, match="gaits: is a link"):
        recorder("Reacher-v5", tmp_path / "gaits").record(run, moments(run)[-1])
    assert not list(outside.iterdir())


@pytest.mark.parametrize("command", ["show", "eval", "verify", "export", "report", "play"])
def test_a_task_that_names_a_module_does_not_import_it(
    ask: Ask, command: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "run"))
    run, sentinel = tmp_path / "run", tmp_path / "sentinel"
    shutil.copytree(trained, run)
    (run / "evil.py").write_text(f"open({str(sentinel)!r}, 'w').write('executed')")
    for path in (run / "config.toml", *run.glob("phases/*/ledger.jsonl")):
        path.write_text(path.read_text().replace("Reacher-v5", "evil:Reacher-v5"))
    seal(run)
    code, output = ask(command, run)
    assert not sentinel.exists()
    if command not in ("show", "report"):  # which can do without the environment
        assert code == 2, output
        assert "EVERGAIT_TRUSTED_MODULES=evil" in output


@pytest.mark.parametrize("command", ["plan", "tune", "run"])
def test_only_training_imports_the_modules_of_a_study_and_says_so(
    ask: Ask, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("EVERGAIT_TRUSTED_MODULES", "")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    sentinel, study = tmp_path / "sentinel", tmp_path / "s.toml"
    (tmp_path / "wicked.py").write_text(f"open({str(sentinel)!r}, 'w').write('executed')")
    search = "[search]\n[search.space]\nsigma = { low = 0.1, high = 0.2 }\n"
    study.write_text(tiny_study().replace("InvertedPendulum-v5", "wicked:Walker-v0") + search)
    words = {"plan": ("study", "plan", study), "run": ("study", "run", study, "--out", tmp_path / "out")}
    code, output = ask(*words.get(command, ("tune", study, "--out", tmp_path / "out")))
    assert code == 2
    assert sentinel.exists() == (command == "run")
    said = "imports the Python module 'wicked'" if command == "run" else "EVERGAIT_TRUSTED_MODULES=wicked"
    assert said in output + caplog.text


def test_pipes_devices_and_folders_in_place_of_files(ask: Ask, trained: Path, tmp_path: Path) -> None:
    for i, make in enumerate((os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero"))):
        for name in ("run.json", "config.toml"):
            run = tmp_path / f"{i}{name}"
            shutil.copytree(trained, run)
            (run / name).unlink()
            make(run / name)  # type: ignore[no-untyped-call]
            code, output = ask("show", run)
            assert code == 2
            assert name in output


def test_memory_is_bounded(trained: Path, tmp_path: Path) -> None:
    """Files as large as any that is read, under a limit on the process's memory."""
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    sizes = {"run.json": '{"phases": [' + "[]," * 5_500_000 + "[]]}", "config.toml": "a = [" + "[]," * 340_000 + "]"}
    for name, content in sizes.items():
        (run / name).write_text(content)
        before = (trained / name).read_bytes()

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))

        command = [sys.executable, "-m", "evergait", "show", str(run)]
        done = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert name in done.stderr
        assert "not enough memory" not in done.stderr
        (run / name).write_bytes(before)


def test_a_policy_that_no_file_could_hold(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    config = Run.load(run).config
    absurd = replace(config, policy=replace(config.policy, hidden=(512,) * 1000))
    (run / "config.toml").write_text(absurd.to_toml())
    seal(run)
    assert_refused(run, ("eval", "verify", "export", "play"))


def test_a_phase_that_says_it_is_another(tmp_path: Path) -> None:
    """The folder's name is the hash of its config, so a phase cannot be passed off as one of another config."""
    folder = tmp_path / identity_hash({"seed": 1})
    folder.mkdir()
    (folder / "config.toml").write_text("seed = 2\n")
    with pytest.raises(EvergaitError, match="does not match its folder's name"):
        PhaseFolder(folder).identity()
    assert identity_hash({"seed": 1}) == sha256(canonical_json({"seed": 1}).encode())[:24]


@pytest.mark.parametrize("change", ["pairs = 0", "seed = -1", "every = 0", "sigma = -1.0", "episodes = 1000000000000"])
def test_settings_that_cannot_be_trained_are_refused_when_trained_again(
    ask: Ask, change: str, trained: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    lines = (run / "config.toml").read_text().splitlines()
    name = change.partition(" ")[0]
    lines = [change if line.startswith(f"{name} = ") else line for line in lines]
    (run / "config.toml").write_text("\n".join(lines))
    seal(run)
    hash_ = phase(run).name
    for words in (("verify", run, "--train"), ("reproduce", hash_, "--results", run)):
        code, output = ask(*words, "--threads", "1")
        assert code == 2, output
        assert f"{name}: is " in output
