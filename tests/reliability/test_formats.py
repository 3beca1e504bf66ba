"""Files of every released format load, show, report, and go on training."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import tree

from evergait import config
from evergait.commands.study import run_study
from evergait.core.files import read_json, read_tensors
from evergait.store import ledger
from evergait.studies.folder import load_results
from evergait.studies.progress import study_status
from evergait.training import phases as identities
from evergait.training.phases import plan_phases
from evergait.training.run import Run, train
from formats import FORMATS, VERSIONS, unpack

Ask = Callable[..., tuple[int, str]]


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Its files in a folder of their own, for some of these commands write beside what they read."""
    return unpack(request.param, tmp_path)


def as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names as those of the fixtures; what has been fixed since is not met in their few steps."""
    monkeypatch.setattr(identities, "VERSIONS", {})
    monkeypatch.setattr(identities, "MACHINE_ENGINES", set())


def test_every_format_has_its_fixtures() -> None:
    assert [f"v{number}" for number in range(1, max(config.FORMAT, ledger.FORMAT) + 1)] == VERSIONS
    assert sum(file.stat().st_size for file in FORMATS.rglob("*")) < 200_000


def test_a_finished_run(version: Path, ask: Ask) -> None:
    shown = json.loads((version / "run.shown.json").read_text())
    code, output = ask("show", version / "run", "--json")
    assert code == 0
    found = json.loads(output)
    assert found.pop("outdated") == ["policy 1, now 2"]
    assert found.pop("steps").items() >= shown.pop("steps").items()  # kinds of steps may be added
    assert found.pop("scale")["name"] in ("score", "return")
    for name in ("normaliser", "metrics"):  # what scores are measured by has changed since, and ledgers have not
        shown.pop(name, None), found.pop(name, None)
    for stage in (*shown["stages"], *found["stages"]):
        for name in ("normalised", "scores", "interference"):
            stage.pop(name, None)
    assert found == shown
    for command in ("eval", "report", "verify"):
        code, output = ask(command, version / "run")
        assert code == 0, output


def test_a_run_in_training_ends_as_if_it_had_never_stopped(version: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_it_was(monkeypatch)
    run = Run.load(version / "training")
    assert len(run.phases) == 1
    if run.outdated:
        pytest.skip("other versions give other bits, and so other hashes")
    assert [phase.name for phase in plan_phases(run.config)] == read_json(version / "run" / "run.json")["phases"]
    train(run.config, version / "training", threads=1)
    phases = tree(version / "run" / "phases")
    assert {name: content for name, content in tree(version / "training" / "phases").items() if "toml" in name} == {
        name: content for name, content in phases.items() if "toml" in name
    }
    assert Run.load(version / "training").theta_sha256 == Run.load(version / "run").theta_sha256


def test_what_older_parts_trained_is_shown_and_not_trained_over(version: Path, ask: Ask) -> None:
    before = tree(version)
    for command in (
        ("train", "--config", version / "run" / "config.toml"),
        ("study", "run", version / "study-file.toml"),
    ):
        out = version / ("study" if command[0] == "study" else "run")  # type: ignore[comparison-overlap]
        code, output = ask(*command, "--out", out)
        assert code == 2
        assert "trained with policy 1, now 2; choose another folder" in output
    assert "policy 1, now 2" in ask("study", "status", version / "study")[1]
    assert "policy 1, now 2" in ask("show", version / "run")[1]
    assert {name: content for name, content in tree(version).items() if "lock" not in name} == before


def test_a_study(version: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    as_it_was(monkeypatch)
    results = load_results(version / "study")
    assert len(results.entries) == 3
    assert {status.state for status in study_status(version / "study")} == {"done"}
    before = tree(version / "study" / "phases")
    run_study(version / "study-file.toml", version / "study", threads=1, artifacts=False)
    assert tree(version / "study" / "phases") == before
    assert ask("study", "status", version / "study")[0] == 0


def test_a_policy_file(version: Path) -> None:
    tensors, metadata = read_tensors(version / "policy.safetensors")
    assert metadata["format"] == "evergait-policy-1"
    assert set(json.loads(metadata["tasks"])) == {"InvertedPendulum-v5", "Reacher-v5"}
    assert tensors["input.Reacher-v5.weight"].shape == (4, 10)
