"""Phases trained again: the same bits, or where they part and why."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from small import tiny_config

from evergait import train
from evergait.cli import main
from evergait.config import Evaluation
from evergait.core.data import to_toml
from evergait.core.files import read_json, read_toml, sha256, write_json
from evergait.methods import Naive
from evergait.store.phases import identity_hash
from evergait.training.run import Run


def retrained(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = main([str(argument) for argument in arguments])
    return code, json.loads(capsys.readouterr().out)


def test_an_honest_run_has_the_same_bits(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = retrained(capsys, "verify", trained, "--train", "--json")
    assert code == 0
    assert said["agrees"]
    assert len(said["rows"]) == len(Run.load(trained).phases)
    assert all(row["tensors"] >= 2 and row["evaluations"] == 3 for row in said["rows"])
    code, said = retrained(capsys, "verify", trained, "--train", "--phase", 2, "--generations", 1, "--json")
    assert (code, len(said["rows"]), said["rows"][0]["generations"]) == (0, 1, 2)


def test_one_phase_is_played_too_and_generations_are_for_training(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = retrained(capsys, "verify", trained, "--phase", 2, "--json")
    assert (code, len(said["rows"])) == (0, 2)
    assert main(["verify", str(trained), "--generations", "3"]) == 2
    assert "generations: is 3; it must be 0 without --train" in capsys.readouterr().err


def reseal(trained: Path, out: Path, **changes: object) -> Path:
    """A run whose phases say that they are others, with every name and digest made right again."""
    shutil.copytree(trained, out)
    if "sigma" in changes:
        text = (out / "config.toml").read_text()
        (out / "config.toml").write_text(text.replace("sigma = 0.1", f"sigma = {changes['sigma']}"))
    described, names, parent = read_json(out / "run.json"), [], ""
    for old in described["phases"]:
        folder = out / "phases" / old
        identity = {**read_toml(folder / "config.toml"), **changes, "parent": parent}
        (folder / "config.toml").write_text(to_toml(identity))
        progress = read_json(folder / "progress.json")
        progress["sha256"]["config.toml"] = sha256((folder / "config.toml").read_bytes())
        write_json(folder / "progress.json", progress)
        parent = identity_hash(identity)
        folder.rename(out / "phases" / parent)
        names.append(parent)
    digest = sha256((out / "config.toml").read_bytes())
    write_json(out / "run.json", {**described, "phases": names, "config": digest})
    return out


def test_a_resealed_config_is_found_out(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = reseal(trained, tmp_path / "run", sigma=0.11)
    assert main(["verify", str(out), "--json"]) == 0, "returns alone do not tell"
    capsys.readouterr()
    code, said = retrained(capsys, "verify", out, "--train", "--phase", 1, "--json")
    assert code == 1
    assert said["rows"][0]["differences"][0].startswith("the evaluation after generation 2 differs")
    assert "the tensor 'theta' has other bits" in said["rows"][0]["differences"]


def test_a_published_phase_is_reproduced_or_differs_by_name(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the beginning of its hash, wherever it lies; what it was trained with is named if it is no longer in use."""
    (tmp_path / "results").mkdir()
    out = reseal(trained, tmp_path / "results" / "old", versions={})
    name = Run.load(out).phases[1].name
    code, said = retrained(capsys, "reproduce", name[:12], "--results", tmp_path / "results", "--json")
    (row,) = said["rows"]
    assert (code, row["hash"], row["agrees"], row["evaluations"]) == (0, name, True, 3)
    assert row["trained with"] == ["policy 1, now 2"]
    assert main(["reproduce", "00000000", "--results", str(tmp_path / "results")]) == 2
    assert main(["reproduce", "..", "--results", str(tmp_path / "results")]) == 2


def test_the_last_evaluation_of_a_phase_is_compared_with_its_tensors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = Evaluation(every_steps=400, episodes=1, random_policies=1)
    train(tiny_config(stream=("Reacher-v5",), steps=400, pairs=2, method=Naive(), evaluation=every), tmp_path / "run")
    code, said = retrained(capsys, "verify", tmp_path / "run", "--train", "--generations", 1, "--json")
    assert code == 0
    assert said["rows"][0]["tensors"] >= 2
