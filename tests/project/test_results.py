"""The results that come with the repository are what they say, and a study started here finds them done."""

from dataclasses import replace
from pathlib import Path

import pytest

from evergait.config import config_from_data, preset
from evergait.core.data import to_data
from evergait.store.archive import LEDGERS, POLICIES
from evergait.store.phases import PhaseStore
from evergait.studies.base import read_study
from evergait.studies.cells import study_cells
from evergait.studies.folder import load_results, read_cells, stored
from evergait.training.phases import plan_phases

RESULTS = Path(__file__).parents[2] / "results"
SCALES = {"paper": "full"}
STUDIES = sorted(path.parent.name for path in RESULTS.glob("*/study.json"))


@pytest.mark.parametrize("name", STUDIES)
def test_results_are_packed(name: str) -> None:
    """Thousands of small files would be most of the repository: `evergait study pack results/NAME`."""
    assert {path.name for path in (RESULTS / name / "phases").iterdir()} <= {LEDGERS, POLICIES}


@pytest.mark.parametrize("name", STUDIES)
def test_finished_phases_are_whole_and_known_to_their_study(name: str) -> None:
    store = PhaseStore(RESULTS / name / "phases")
    found = {phase for phase in store.names() if store.folder(phase).is_done()}
    assert found
    for phase in found:
        store.folder(phase).verify(needs=("config.toml", "ledger.jsonl"))
        store.folder(phase).ledger()
    _, cells = read_cells(RESULTS / name)
    assert found <= {phase for cell in cells for phase in cell.phases}
    declared = {
        cell.key: cell.config for cell in map(stored, study_cells(read_study(name).at_scale(SCALES.get(name, ""))))
    }
    for cell in cells:
        assert to_data(config_from_data(cell.config, name)) == declared[cell.key]
    assert load_results(RESULTS / name).entries


def test_the_tuned_preset_is_what_the_study_tried() -> None:
    cells = [cell for cell in study_cells(read_study("methods")) if cell.condition == "tuned"]
    assert len(cells) == 18
    for cell in cells:
        config = replace(preset("tuned"), stream=cell.config.stream, seed=cell.seed)
        assert [phase.name for phase in plan_phases(config)] == [phase.name for phase in cell.phases]
