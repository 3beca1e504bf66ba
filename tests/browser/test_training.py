"""What is trained in a tab has the θ of the command line: naive, replay and distill, plain and Adam."""

from pathlib import Path

import pytest

from browser.conftest import Call
from evergait.live.lab import lab_data
from evergait.studies.folder import load_results
from evergait.training.run import Run

GENERATIONS = 20
STUDY = """
title = "Small"
tasks = ["Swimmer-v5", "InvertedPendulum-v5"]
orders = ["Swimmer-v5 > InvertedPendulum-v5"]
baselines = false
[base]
pairs = 6
generations = 20
sigma = 0.1
horizon = 100
policy = { input_width = 12, hidden = [10], activation = "tanh", normalise = true, heads = "separate" }
optimizer = { name = "adam", learning_rate = 0.03, weight_decay = 0.003 }
evaluation = { every = 10, episodes = 2, random_policies = 2, snapshots = 1 }
[conditions.naive]
method = "naive"
[conditions.replay]
method = { name = "replay", budget = 4 }
[conditions.distill]
method = { name = "distill", steps = 3, batch = 16, collection = { observations = 20, episodes = 2 } }
[conditions.plain]
method = { name = "replay", budget = 6 }
policy = { input_width = 7, hidden = [5, 5], normalise = false, heads = "shared" }
optimizer = { name = "plain", learning_rate = 0.05 }
"""


@pytest.fixture(scope="session")
def conditions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study, trained by the command line."""
    from evergait.cli import main

    folder = tmp_path_factory.mktemp("trained")
    (folder / "study.toml").write_text(STUDY)
    assert main(["study", "run", str(folder / "study.toml"), "--out", str(folder / "out"), "--threads", "1"]) == 0
    return folder / "out"


@pytest.mark.parametrize(
    ("condition", "stage"), [("naive", 0), ("naive", 1), ("replay", 1), ("distill", 1), ("plain", 0), ("plain", 1)]
)
def test_tab_and_command_line_have_one_theta(conditions: Path, engine: Call, condition: str, stage: int) -> None:
    results = load_results(conditions)
    data = lab_data(results)
    number = next(i for i, run in enumerate(data["runs"]) if run["condition"] == condition)
    run = data["runs"][number]
    assert run["cannotTrain"] == ""
    wanted = {m["generation"]: m for m in run["moments"] if m["stage"] == stage and m["generation"]}
    argument = {
        "data": {**data, "module": ""},
        "number": number,
        "stage": stage,
        "learning": run["stream"][stage],
        "method": run["config"]["method"],
        "generations": GENERATIONS,
    }
    found = engine("train", **argument)
    assert sorted(wanted) == [10, 20]
    for generation, moment in wanted.items():
        assert found["hashes"][generation - 1] == moment["sha256"], generation
    assert len(set(found["hashes"])) == GENERATIONS
    assert found["means"] == pytest.approx(wanted[GENERATIONS]["returns"], rel=1e-15)
    entry = next(entry for entry in results.entries if entry.condition == condition)
    last: Run = entry.run
    assert stage == 0 or last.theta_sha256 == found["hashes"][-1]  # what `evergait show` prints
