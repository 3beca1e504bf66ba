"""A flipped bit or a cut tail in any file: refused by name, or proven irrelevant. Never a wrong number.

Full, failing, read-only and vanished disks: a loud error, the last checkpoint intact, and on it goes after.
"""

import errno
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import Forks, evergait, small_disk, tree, wait_until, write_counts
from small import tiny_config, tiny_study

from evergait.commands.show import describe
from evergait.commands.study import run_study
from evergait.config import Config
from evergait.core.errors import EvergaitError
from evergait.core.files import sha256, write_json
from evergait.es import Adam
from evergait.paper.study import all_tables, analyse
from evergait.studies.folder import load_results
from evergait.studies.progress import study_status
from evergait.training.observer import Observer, Position
from evergait.training.run import Run, train

Look = Callable[[Path], object]


def look_at_run(folder: Path) -> object:
    """All that any report says of a finished run comes from these."""
    run = Run.load(folder)
    states = [run.state(stage) for stage in range(len(run.phases))]
    tensors = [{name: sha256(tensor.tobytes()) for name, tensor in state.tensors().items()} for state in states]
    identities = [phase.identity() for phase in run.phases]
    told = [describe(run, run.metrics), tensors, [state.metadata() for state in states], identities]
    return json.dumps(told, sort_keys=True), run.config


def look_at_study(folder: Path) -> object:
    """Likewise, of a study."""
    results = load_results(folder)
    tables = [table.to_csv() for table in all_tables(analyse(results))]
    return tables, results.title, results.description, [entry.run.config for entry in results.entries]


def look_at_status(folder: Path) -> object:
    """What `study status` says."""
    return study_status(folder)


def go_on(folder: Path) -> object:
    """What becomes of a run that was stopped on the way."""
    run = train(Run.load(folder).config, folder, threads=1)
    assert run.is_done
    return tree(folder)


def damage(file: Path, chance: random.Random) -> str:
    """Flip a bit, or cut a tail."""
    content = bytearray(file.read_bytes())
    if not content:
        return ""
    place = chance.randrange(len(content))
    if chance.random() < 0.2:
        file.write_bytes(content[:place])
        return f"{file.name} cut to {place} bytes"
    bit = chance.randrange(8)
    content[place] ^= 1 << bit
    file.write_bytes(content)
    return f"{file.name}: bit {bit} of byte {place}"


def try_damages(folder: Path, look: Look, n_tries: int, scratch: Path, rewrites: bool = False) -> dict[str, int]:
    """Damage one file of a fresh copy at a time; tells how many were refused and how many made no difference."""
    chance, copy, counts = random.Random(n_tries), scratch / "copy", {"refused": 0, "irrelevant": 0}
    shutil.copytree(folder, copy)
    expected = look(copy)
    if rewrites:
        shutil.rmtree(copy)
        shutil.copytree(folder, copy)
    files = sorted(file for file in copy.rglob("*") if file.is_file() and file.stat().st_size)
    for _ in range(n_tries):
        file = chance.choice(files)
        original = file.read_bytes()
        what = damage(file, chance)
        try:
            seen = look(copy)
        except EvergaitError as error:
            assert file.name in str(error), f"{what}: {error}"  # noqa: PT017 - otherwise nothing may differ
            counts["refused"] += 1
        else:
            assert seen == expected, what
            counts["irrelevant"] += 1
        if rewrites:
            shutil.rmtree(copy)
            shutil.copytree(folder, copy)
        else:
            file.write_bytes(original)
    return counts


def report(fault: str, counts: dict[str, int]) -> None:
    words = f"{counts['refused']} refused by name, {counts['irrelevant']} proven irrelevant"
    write_counts(fault, sum(counts.values()), 0, words)


@pytest.mark.parametrize("n_tries", [60, pytest.param(1000, marks=pytest.mark.prove)])
def test_a_finished_run(trained: Path, tmp_path: Path, n_tries: int) -> None:
    counts = try_damages(trained, look_at_run, n_tries, tmp_path)
    assert counts["refused"] > counts["irrelevant"]
    if n_tries == 1000:
        report("damage-run", counts)


@pytest.fixture(scope="module")
def finished_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "tiny.toml").write_text(tiny_study(generations=6, engine="mujoco"))
    run_study(folder / "tiny.toml", folder / "out", threads=1, artifacts=False)
    (folder / "out" / "study.toml").unlink()  # for people: nothing is read from it
    return folder / "out"


@pytest.mark.parametrize("n_tries", [20, pytest.param(1000, marks=pytest.mark.prove)])
def test_a_study(finished_study: Path, tmp_path: Path, n_tries: int) -> None:
    counts = try_damages(finished_study, look_at_study, n_tries, tmp_path)
    assert counts["refused"] > counts["irrelevant"]
    if n_tries == 1000:
        report("damage-study", counts)


@pytest.fixture(scope="module")
def stopped(long_config: Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped in the middle of its first phase."""

    class Enough(Observer):
        def generation_done(self, at: Position, seen: object) -> None:
            if at.generation == 15:
                raise KeyboardInterrupt

    out = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.raises(KeyboardInterrupt):
        train(long_config, out, threads=1, observers=[Enough()], checkpoint_seconds=0)
    assert list(out.glob("phases/*/checkpoint.safetensors"))
    return out


@pytest.mark.parametrize("n_tries", [15, pytest.param(1000, marks=pytest.mark.prove)])
def test_a_run_in_training(stopped: Path, undisturbed: Path, tmp_path: Path, n_tries: int) -> None:
    counts = try_damages(stopped, go_on, n_tries, tmp_path, rewrites=True)
    assert counts["refused"] > counts["irrelevant"]
    shutil.copytree(stopped, tmp_path / "whole")
    assert go_on(tmp_path / "whole") == tree(undisturbed)
    if n_tries == 1000:
        report("damage-training", counts)


@pytest.mark.parametrize("name", ["failures.json", "running.json", "study.json"])
def test_the_files_of_status(finished_study: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(finished_study, tmp_path / "study")
    if name != "study.json":
        write_json(tmp_path / "study" / name, {"0123": "no reason"})
    try_damages(tmp_path / "study", look_at_status, 10, tmp_path)
    file = tmp_path / "study" / name
    content, expected = file.read_bytes(), look_at_status(tmp_path / "study")
    for place in range(0, len(content), max(1, len(content) // 40)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        try:
            seen = look_at_status(tmp_path / "study")
        except EvergaitError as error:
            assert name in str(error)  # noqa: PT017
        else:
            assert seen == expected, place
    file.write_bytes(content)


def test_a_missing_phase_does_not_move_the_others(trained: Path, tmp_path: Path) -> None:
    """The second phase must never be taken for the first."""
    shutil.copytree(trained, tmp_path / "run")
    first = Run.load(trained).phases[0].name
    shutil.rmtree(tmp_path / "run" / "phases" / first)
    assert Run.load(tmp_path / "run").phases == ()


Ask = Callable[..., tuple[int, str]]
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EDQUOT": errno.EDQUOT, "EROFS": errno.EROFS}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("share", [25, pytest.param(1, marks=pytest.mark.prove)])
def test_every_system_call_fails_once(
    forks: Forks,
    small: tuple[Config, Path],
    calls: tuple[int, dict[str, bytes]],
    tmp_path: Path,
    error: str,
    share: int,
) -> None:
    (_, path), (n_calls, expected) = small, calls
    n_tried = 0
    for nth in range(1 + n_calls % share, n_calls + 1, share):
        out = tmp_path / str(nth)
        code = forks.run("train", path, out, fault=(out, nth, ERRORS[error]))
        if code == 0:  # a call whose failure is harmless, such as that of a file which is taken away
            assert tree(out) == expected
        else:
            assert code == 2, f"call {nth} of {n_calls}"
            assert os.strerror(ERRORS[error]) in Path(f"{out}.error").read_text()
            assert forks.run("train", path, out) == 0, f"call {nth} of {n_calls}: {Path(f'{out}.error').read_text()}"
            assert tree(out) == expected, f"call {nth} of {n_calls}"
        n_tried += 1
    if share == 1:
        write_counts(f"call-fails-{error}", n_tried, 0, f"all {n_calls} calls that change a file")


@pytest.mark.parametrize("n_sizes", [2, pytest.param(20, marks=pytest.mark.prove)])
def test_a_full_disk(tmp_path: Path, n_sizes: int) -> None:
    config = tiny_config(generations=6, optimizer=Adam())
    whole = tree(train(config, tmp_path / "whole", threads=1).path)
    n_full = 0
    for i in range(n_sizes):
        size = 4 * (10 + 60 * i // n_sizes)  # kB, in pages
        with small_disk(tmp_path / f"disk{i}", f"size={size}k") as disk:
            with pytest.raises(EvergaitError, match="No space left on device"):
                train(config, disk / "run", threads=1, checkpoint_seconds=0)
            n_full += 1
            subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
            train(config, disk / "run", threads=1)
            assert tree(disk / "run") == whole
    if n_sizes > 2:
        write_counts("disk-full", n_full, 0, "a tmpfs of 40 to 268 kB, enlarged afterwards")


def test_a_full_disk_under_a_study(ask: Ask, tmp_path: Path, study: Path) -> None:
    run_study(study, tmp_path / "whole", threads=1, artifacts=False)
    with small_disk(tmp_path / "disk", "size=400k") as disk:
        code, output = ask("study", "run", study, "--out", disk / "out", "--threads", 1)
        assert code == 2
        assert "No space left on device" in output
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        run_study(study, disk / "out", threads=1, artifacts=False)
        assert tree(disk / "out") == tree(tmp_path / "whole")


def test_a_finished_run_can_be_read_where_nothing_can_be_written(
    ask: Ask, trained: Path, tmp_path: Path, study: Path
) -> None:
    run_study(study, tmp_path / "study", threads=1, artifacts=False)
    with small_disk(tmp_path / "disk", "size=8m") as disk:
        shutil.copytree(trained, disk / "run")
        shutil.copytree(tmp_path / "study", disk / "study")
        config = disk / "run" / "config.toml"
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for command in (
            ("show", disk / "run"),
            ("eval", disk / "run", "--episodes", 1),
            ("verify", disk / "run", "--episodes", 1),
            ("train", "--config", config, "--out", disk / "run"),
            ("study", "status", disk / "study"),
            ("report", disk / "run", "--output", tmp_path / "page.html"),
            ("export", disk / "run", "--output", tmp_path / "policy.safetensors"),
        ):
            code, output = ask(*command)
            assert code == 0, output
        for command in (  # type: ignore[assignment]
            ("report", disk / "run"),
            ("export", disk / "run", "--output", disk / "policy.safetensors"),
            ("play", disk / "run", "--output", disk / "gait.html"),
            ("train", "--config", config, "--out", disk / "other"),
            ("study", "run", study, "--out", disk / "other"),
            ("study", "run", study, "--out", disk / "study", "--seeds", 2),
        ):
            code, output = ask(*command)
            assert (code, "Read-only file system" in output) == (2, True), output


def test_a_folder_that_vanishes(tmp_path: Path) -> None:
    config = tiny_config(generations=100_000, pairs=4)
    (tmp_path / "c.toml").write_text(config.to_toml())
    out = tmp_path / "run"
    arguments = ("train", "--config", tmp_path / "c.toml", "--out", out, "--checkpoint-seconds", 0)
    with evergait(*arguments) as process:
        wait_until(lambda: list(out.glob("phases/*/checkpoint.safetensors")))
        out.rename(tmp_path / "moved")
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "No such file or directory" in output
    assert "Traceback" not in output
    (tmp_path / "moved").rename(out)
    with evergait(*arguments) as process:
        assert process.stdout
        assert any("goes on after generation" in line for line in process.stdout)
        process.terminate()


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """As a quota, or `ulimit -f`, makes it."""
    config = tiny_config()
    (tmp_path / "c.toml").write_text(config.to_toml())

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    command = [sys.executable, "-m", "evergait", "train", "--config", tmp_path / "c.toml", "--out", tmp_path / "run"]
    done = subprocess.run(
        command,  # type: ignore[arg-type]
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    train(config, tmp_path / "run", threads=1)
    assert tree(tmp_path / "run") == tree(train(config, tmp_path / "whole", threads=1).path)
