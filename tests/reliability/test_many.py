"""Many runs at once in one store: each finishes, and what they share is trained once."""

from pathlib import Path

import pytest
from faults import evergait, tree, write_counts
from small import tiny_config

from evergait.training.run import Run, train


@pytest.mark.parametrize("n_runs", [4, pytest.param(30, marks=pytest.mark.prove)])
def test_runs_that_start_at_once_share_their_phases(tmp_path: Path, n_runs: int) -> None:
    """Half of the runs learn one second task, half another; the first phase is common to all."""
    first, *seconds = "InvertedPendulum-v5", "Reacher-v5", "InvertedDoublePendulum-v5"
    configs = [tiny_config(stream=(first, second), tasks=(first, *seconds)) for second in seconds]
    for i, config in enumerate(configs):
        (tmp_path / f"{i}.toml").write_text(config.to_toml())
    store = tmp_path / "store"
    processes = [
        evergait("train", "--config", tmp_path / f"{i % 2}.toml", "--store", store, "--threads", 1, "--out", out)
        for i, out in enumerate(tmp_path / f"run{i}" for i in range(n_runs))
    ]
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * n_runs, outputs
    assert "".join(outputs).count("starts") == 3
    assert "".join(outputs).count("goes on") == 0
    assert len(list(store.iterdir())) == 3
    for i, config in enumerate(configs):
        train(config, tmp_path / f"alone{i}", threads=1)
        for phase in Run.load(tmp_path / f"alone{i}").phases:
            assert tree(phase.path) == tree(store / phase.name)
    assert len({Run.load(tmp_path / f"run{i}", store).theta_sha256 for i in range(n_runs)}) == 2
    if n_runs == 30:
        write_counts("many-runs", n_runs, 0, "60 phases asked for, 3 different ones, 3 trained")
