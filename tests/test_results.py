"""The results that come with the repository are what they say, and a study started here finds them done."""

from pathlib import Path

import pytest

from evergait.store import PhaseStore
from evergait.studies.base import read_study
from evergait.studies.cells import study_cells
from evergait.studies.folder import load_results
from evergait.studies.tree import Tree

RESULTS = Path(__file__).parent.parent / "results"
STUDIES = {"paper": "full", "readings": "", "methods": ""}


@pytest.mark.parametrize("name", sorted(path.parent.name for path in RESULTS.glob("*/study.json")))
def test_finished_phases_are_whole_and_known_to_their_study(name: str) -> None:
    store = PhaseStore(RESULTS / name / "phases")
    found = {path.name for path in store.root.iterdir() if store.folder(path.name).is_done()}
    assert found
    for phase in found:
        store.folder(phase).verify()
    cells = study_cells(read_study(name).at_scale(STUDIES[name]))
    assert found <= set(Tree.build(cells).nodes)
    assert load_results(RESULTS / name).entries
