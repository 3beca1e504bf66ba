"""A study whose phases get new names without being trained again."""

from contextlib import suppress
from pathlib import Path

import pytest
from small import tiny_study

from evergait import EvergaitError
from evergait.commands.study import run_study
from evergait.methods import Stage
from evergait.store.phases import PhaseStore
from evergait.studies.progress import study_status
from evergait.studies.rename import rename_study
from evergait.studies.results import Results
from evergait.training import phases as identities
from evergait.training.state import State
from evergait.training.train import Trainer


def test_phases_are_renamed_and_found_again(
    trained_study: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = PhaseStore(trained_study.path / "phases")
    monkeypatch.setitem(identities.VERSIONS, "policy", 7)
    names = rename_study(trained_study.path, tmp_path / "new")
    after = PhaseStore(tmp_path / "new" / "phases")
    assert set(names) == set(before.names())
    assert set(names.values()) == set(after.names())
    assert not set(names) & set(names.values())
    for old, new in names.items():
        after.folder(new).verify()
        assert after.folder(new).read("theta.safetensors") == before.folder(old).read("theta.safetensors")
        assert after.folder(new).ledger() == before.folder(old).ledger()
    (tmp_path / "tiny.toml").write_text(tiny_study())
    files = {path: path.read_bytes() for path in after.root.rglob("*.*")}
    run_study(tmp_path / "tiny.toml", tmp_path / "new", seeds=2, threads=1, artifacts=False)
    assert {path: path.read_bytes() for path in after.root.rglob("*.*")} == files
    assert {status.state for status in study_status(tmp_path / "new")} == {"done"}
    with pytest.raises(EvergaitError, match="is there already"):
        rename_study(trained_study.path, tmp_path / "new")


def test_a_phase_in_training_goes_on_under_its_new_name(
    trained_study: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiny.toml").write_text(tiny_study())
    advance = Trainer.advance

    def interrupted(trainer: Trainer, stage: Stage, state: State) -> object:
        if state.generation == 3:
            raise KeyboardInterrupt
        return advance(trainer, stage, state)

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(Trainer, "advance", interrupted)
        run_study(tmp_path / "tiny.toml", tmp_path / "old", threads=1, checkpoint_seconds=0, artifacts=False)
    monkeypatch.setitem(identities.VERSIONS, "policy", 7)
    names = rename_study(tmp_path / "old", tmp_path / "new")
    (phase,) = PhaseStore(tmp_path / "new" / "phases").names()
    assert PhaseStore(tmp_path / "new" / "phases").folder(phase).progress()["generation"] == 3
    run_study(tmp_path / "tiny.toml", tmp_path / "new", threads=1, artifacts=False)
    for old, new in names.items():
        whole = PhaseStore(trained_study.path / "phases").folder(old)
        assert PhaseStore(tmp_path / "new" / "phases").folder(new).read("ledger.jsonl") == whole.read("ledger.jsonl")
