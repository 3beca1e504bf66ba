"""A flipped bit or a cut tail in any file: refused by name, or proven irrelevant. Never a wrong number."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import tree, write_counts
from small import tiny_study

from evergait.commands.show import describe
from evergait.commands.study import run_study
from evergait.config import Config
from evergait.core.errors import EvergaitError
from evergait.core.files import sha256, write_json
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
