"""What observers, the ledger and dashboards are told; and that it decides nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small import tiny_config, tiny_study

import evergait as eg
from evergait.cli import main
from evergait.store.ledger import Record, parse_ledger
from evergait.training.logs import make_log
from evergait.training.observer import Diagnostics, NotebookProgress, Position, in_notebook
from evergait.workers import LocalWorkers


class Diary(eg.Observer):
    """Writes everything down."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int, int]] = []
        self.seen: list[Diagnostics] = []
        self.records: list[Record] = []

    def note(self, what: str, at: Position) -> None:
        self.events.append((what, at.stage.index, at.generation))

    def phase_started(self, at: Position) -> None:
        self.note("started", at)

    def generation_done(self, at: Position, seen: Diagnostics) -> None:
        self.note("generation", at)
        self.seen.append(seen)

    def evaluated(self, at: Position, record: Record) -> None:
        self.note("evaluated", at)
        self.records.append(record)

    def phase_done(self, at: Position) -> None:
        self.note("done", at)


def test_an_observer_sees_everything_with_its_position(tmp_path: Path) -> None:
    diary = Diary()
    run = eg.train(tiny_config(generations=3), tmp_path / "run", observers=[diary], threads=1)
    phase = [("started", 0), ("evaluated", 0), ("generation", 1), ("generation", 2), ("evaluated", 2)]
    phase += [("generation", 3), ("evaluated", 3), ("done", 3)]
    assert diary.events == [(what, stage, at) for stage in range(2) for what, at in phase]
    assert diary.records == [record for ledger in run.ledgers for record in ledger.records]
    seen = diary.seen[0]
    assert seen.fitness.shape == (12,)
    assert seen.step_norm == pytest.approx(0.05 * seen.gradient_norm, rel=1e-3)  # plain ascent with rate 0.05


def test_the_ledger_keeps_means_of_what_observers_saw(tmp_path: Path) -> None:
    diary = Diary()
    run = eg.train(tiny_config(), tmp_path / "run", observers=[diary], threads=1)
    first, second, third = run.ledgers[0].records
    assert first.diagnostics == {}
    for record, seen in ((second, diary.seen[:2]), (third, diary.seen[2:4])):
        assert record.diagnostics["gradient_norm"] == np.mean([s.gradient_norm for s in seen])
        assert record.diagnostics["fitness_mean"] == np.mean([s.fitness.mean() for s in seen])
        assert record.diagnostics["fitness_best"] == np.mean([s.fitness.max() for s in seen])
        assert set(record.diagnostics) == {
            *("fitness_mean", "fitness_sd", "fitness_best", "gradient_norm", "step_norm", "horizon"),
        }


def test_a_ledger_without_diagnostics_is_read(trained: Path) -> None:
    path = eg.Run.load(trained).phases[0].path / "ledger.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line.pop("diagnostics", None)
    older = parse_ledger("\n".join(map(json.dumps, lines)).encode(), path)
    assert [record.diagnostics for record in older.records] == [{}, {}, {}]


class Log:
    """What a dashboard would have received."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []

    def write(self, name: str, value: float, at: int) -> None:
        self.lines.append((name, at))


class KilledError(Exception):
    """As if by the system."""


class Kill(eg.Observer):
    """Ends training without a checkpoint, right after an evaluation was sent."""

    def evaluated(self, at: Position, record: Record) -> None:
        if at.generation == 2:
            raise KilledError


def test_evaluations_that_are_repeated_after_a_kill_are_sent_once(tmp_path: Path) -> None:
    config, out, log = tiny_config(generations=3, stream=("InvertedPendulum-v5",), method=eg.Naive()), tmp_path, Log()
    board = make_log("tensorboard", config, out, "x")
    board.write = log.write
    with pytest.raises(KilledError):
        eg.train(config, out / "run", observers=[board, Kill()], threads=1)
    eg.train(config, out / "run", observers=[board], threads=1)
    board.close()
    returns = [at for name, at in log.lines if name == "return/InvertedPendulum-v5"]
    assert returns == [0, 2, 3]
    assert ("search/gradient_norm", 3) in log.lines


def test_wandb_without_a_key_is_a_sentence(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="not in requirements.lock: it brings a beta package")
    home = {**os.environ, "HOME": str(tmp_path), "COLUMNS": "300"}
    home = {name: value for name, value in home.items() if not name.startswith("WANDB")}
    command = [sys.executable, "-m", "evergait", "train", "--out", str(tmp_path / "run"), "--log", "wandb"]
    done = subprocess.run(command, env=home, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "log: wandb has no API key; run `wandb login`" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_studies_feed_dashboards_too(jobs: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(tiny_study(generations=2, replay=False))
    out = tmp_path / "out"
    arguments = ["study", "run", str(tmp_path / "s.toml"), "--out", str(out), "--log", "tensorboard", "--jobs", jobs]
    assert main(arguments) == 0
    files = sorted(out.glob("logs/*/tensorboard/events*"))
    assert len(files) == 4
    assert files[0].parts[-3].startswith("naive_Inverted")
    assert b"return/InvertedPendulum-v5" in files[0].read_bytes()


class StoppedInEvaluation(LocalWorkers):
    """Ctrl-C comes while the policy is evaluated after some generation."""

    n_requests = 0

    def run(self, engine: str, episodes: eg.Episodes) -> eg.Outcome:
        self.n_requests += episodes.sigma == 0
        if self.n_requests == 7:  # 2 random policies on 2 tasks, the start on both, and now
            os.kill(os.getpid(), signal.SIGINT)
        return super().run(engine, episodes)


def test_an_evaluation_that_was_interrupted_is_not_lost(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        eg.train(tiny_config(), tmp_path / "run", workers=StoppedInEvaluation(1))
    run = eg.train(tiny_config(), tmp_path / "run", threads=1)
    assert run.ledgers == eg.Run.load(trained).ledgers


def test_ctrl_c_is_a_keyboard_interrupt(tmp_path: Path) -> None:
    class Press(eg.Observer):
        def generation_done(self, at: Position, seen: Diagnostics) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        eg.train(tiny_config(), tmp_path / "run", observers=[Press()], threads=1)
    assert eg.train(tiny_config(), tmp_path / "run", threads=1).is_done


def test_a_notebook_shows_how_far_training_is(tmp_path: Path) -> None:
    shown: list[str] = []
    eg.train(tiny_config(), tmp_path / "run", observers=[NotebookProgress(2, shown.append)], threads=1)
    assert "<progress max=8 value=0></progress> phase 1/2 InvertedPendulum-v5, generation 0" in shown[0]
    assert "<progress max=8 value=8></progress> phase 2/2 Reacher-v5, generation 4" in shown[-1]
    assert "mean returns: InvertedPendulum-v5 " in shown[-1]
    assert not in_notebook()
