"""Nothing is trained twice, nothing is lost, and what fails stops nothing else."""

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import rich.console
from small import tiny_config, tiny_study

from evergait.cli import main
from evergait.commands.study import print_plan, print_status, run_study
from evergait.core.errors import EvergaitError
from evergait.core.files import locked
from evergait.methods import Naive
from evergait.store.phases import PhaseFolder
from evergait.studies.base import Study, read_study
from evergait.studies.cells import Cell, Node, Tree, study_cells
from evergait.studies.folder import load_results, open_study
from evergait.studies.pool import Pool
from evergait.studies.progress import CellStatus, Progress, study_status
from evergait.studies.results import Results
from evergait.studies.scheduler import Care, Scheduler, ThisProcess
from evergait.training.phases import plan_phases
from evergait.workers import Local, LocalWorkers

COMMAND = (
    "import sys; from evergait.commands.study import run_study\n"
    "if __name__ == '__main__':\n"
    "    run_study(sys.argv[1], sys.argv[2], jobs=int(sys.argv[3]), checkpoint_seconds=0, artifacts=False)"
)


def files(path: Path) -> dict[str, bytes]:
    """All that training leaves behind, by name."""
    found = {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
    drawn = ("tables", "figures", "plane", "references")
    return {name: content for name, content in found.items() if not name.startswith(drawn)}


class Counting(Progress):
    """Counts what is trained_study."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, io.StringIO())
        self.labels: list[str] = []

    def started(self, node: Node) -> None:
        self.labels.append(node.name)
        super().started(node)


def test_common_phases_are_trained_once(tiny: Path, tmp_path: Path) -> None:
    cells = study_cells(read_study(tiny))
    tree = Tree.build(cells)
    assert sum(len(cell.phases) for cell in cells) == 10
    for expected in (6, 0):
        counting = Counting(tmp_path)
        Scheduler(tree, tmp_path, ThisProcess(Care(tmp_path), LocalWorkers(1)), counting).run()
        assert len(counting.labels) == expected
    assert len(list((tmp_path / "phases").iterdir())) == 6


def test_of_two_studies_that_begin_in_one_folder_one_is_refused(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However little time lies between them: the folder is written by who holds its lock."""
    other, out = tmp_path / "other.toml", tmp_path / "out"
    other.write_text(tiny_study(generations=6).replace("Tiny", "Other"))

    def slowly(study: Study, path: Path) -> list[Cell]:
        monkeypatch.undo()
        with pytest.raises(EvergaitError, match="another process is training the study in"):
            run_study(other, out, threads=1, artifacts=False)
        return open_study(study, path)

    monkeypatch.setattr("evergait.commands.study.open_study", slowly)
    assert run_study(tiny, out, threads=1, artifacts=False).title == "Tiny"


def test_a_stream_of_any_length_can_be_blocked() -> None:
    stream = Cell("naive", tiny_config(stream=("InvertedPendulum-v5",) * 1100, method=Naive()))
    tree = Tree.build([stream])
    first, *others = tree.nodes
    assert tree.descendants(first) == others


def test_a_study_killed_at_random_moments_ends_in_the_same_bytes(tiny: Path, tmp_path: Path) -> None:
    """Processes are killed at moments spread over the whole study, tables and figures included."""
    n_kills = 3
    tiny.write_text(tiny_study(generations=10 * n_kills, replay=False))
    whole, killed, chance = tmp_path / "whole", tmp_path / "killed", random.Random(n_kills)
    seconds = time_study(tiny, whole)
    assert seconds
    n_killed, done = 0, dict[Path, int]()
    while n_killed < n_kills:
        n_killed += time_study(tiny, killed, chance.uniform(0, 2 * seconds / n_kills)) is None
        for path, when in done.items():
            assert path.stat().st_mtime_ns == when, "a finished phase was trained again"
        finished = [path for path in killed.glob("phases/*") if PhaseFolder(path).is_done()]
        done |= {path / "theta.safetensors": (path / "theta.safetensors").stat().st_mtime_ns for path in finished}
    assert time_study(tiny, killed)
    assert everything(killed) == everything(whole)
    print(f"killed {n_killed} times, {len(done)} of 4 phases were done by then, 0 bytes differ")


def time_study(study: Path, out: Path, kill_after: float | None = None) -> float | None:
    """Run a study in processes of its own; its seconds from when training begins, or none if it was killed first."""
    arguments = ["study", "run", str(study), "--out", str(out), "--jobs", "2", "--checkpoint-seconds", "0"]
    with subprocess.Popen(
        [sys.executable, "-m", "evergait", *arguments],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        assert "phases" in process.stderr.readline()
        begun = time.monotonic()
        try:
            _, errors = process.communicate(timeout=kill_after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None
        assert process.returncode == 0, errors
        return time.monotonic() - begun


def everything(path: Path) -> dict[str, bytes]:
    """All files of a study, by name."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def test_ctrl_c_among_tables_and_figures_leaves_whole_files(tiny: Path, tmp_path: Path) -> None:
    tiny.write_text(tiny_study(replay=False))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "evergait", "study", "run", str(tiny), "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not list(out.glob("figures/*")) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command again" in errors
    assert "Traceback" not in errors
    before = everything(out)
    assert not (out / "figures" / "plane.pdf").exists()
    run_study(tiny, out, threads=1)
    after = everything(out)
    assert (out / "figures" / "plane.pdf").exists()
    assert {name: after.get(name) for name in before} == before


@pytest.mark.parametrize("jobs", [1, 2])
def test_sigterm_stops_everything_and_keeps_what_was_done(tiny: Path, tmp_path: Path, jobs: int) -> None:
    tiny.write_text(tiny.read_text().replace("generations = 4", "generations = 40000"))
    script = tmp_path / "study.py"
    script.write_text(COMMAND.replace("checkpoint_seconds=0", "checkpoint_seconds=999"))
    process = subprocess.Popen(
        [sys.executable, str(script), str(tiny), str(tmp_path / "out"), str(jobs)], stderr=subprocess.DEVNULL
    )
    running = tmp_path / "out" / "running.json"
    deadline = time.monotonic() + 60
    try:
        statuses: list[CellStatus] = []
        while not any("left" in status.detail for status in statuses):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
            statuses = study_status(tmp_path / "out") if running.exists() else []
        assert {status.state for status in statuses} <= {"running", "missing"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) != 0
    finally:
        process.kill()
        process.wait()
    assert not running.exists()
    for lock in tmp_path.glob("out/phases/*/lock"):
        with locked(lock, wait=False) as free:
            assert free, "a process was left behind"
    stopped = [status for status in study_status(tmp_path / "out") if status.state == "stopped"]
    assert stopped
    assert "at generation" in stopped[0].detail


def test_a_failed_phase_is_loud_and_stops_nothing_else(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    cells = study_cells(read_study(tiny))
    broken = out / "phases" / cells[0].phases[0].name
    broken.mkdir(parents=True)
    (broken / "config.toml").write_text("x = 1\n")
    with pytest.raises(EvergaitError, match=r"1 of 6 phases failed and 2 that need them are blocked"):
        run_study(tiny, out, threads=1, artifacts=False)
    assert "FAILED: single, InvertedPendulum" in capsys.readouterr().err
    states = {(s.cell.condition, s.cell.order): s for s in study_status(out)}
    assert states["naive", "InvertedDoublePendulum > InvertedPendulum"].state == "done"
    assert states["naive", "InvertedPendulum > InvertedDoublePendulum"].state == "failed"
    assert "config.toml" in states["naive", "InvertedPendulum > InvertedDoublePendulum"].detail
    assert {entry.order for entry in load_results(out).entries} == {
        "InvertedDoublePendulum",
        "InvertedDoublePendulum > InvertedPendulum",
    }
    (broken / "config.toml").unlink()
    run_study(tiny, out, threads=1, artifacts=False)
    assert not (out / "failures.json").exists()
    assert {status.state for status in study_status(out)} == {"done"}


def test_seeds_can_be_added_and_another_study_is_refused(tiny: Path, trained_study: Results, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_study(tiny, out, threads=1, artifacts=False, only=["InvertedDoublePendulum-v5 > InvertedPendulum-v5"])
    assert [s.state for s in study_status(out)].count("missing") == 2
    run_study(tiny, out, threads=1, artifacts=False, seeds=2)
    assert files(out) == files(trained_study.path)
    run_study(tiny, out, threads=1, artifacts=False, seeds=1)
    assert files(out) == files(trained_study.path)
    tiny.write_text(tiny.read_text().replace("pairs = 3", "pairs = 4"))
    with pytest.raises(EvergaitError, match=r"holds another study .*pairs is 3 there and 4 here"):
        run_study(tiny, out, threads=1, artifacts=False)
    with pytest.raises(EvergaitError, match="holds another study"):
        run_study("demo", out, threads=1, artifacts=False)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("mine")
    with pytest.raises(EvergaitError, match="not empty and not a study's folder"):
        run_study("demo", tmp_path / "foreign", threads=1, artifacts=False)


def test_a_study_may_grow_but_not_shrink(tiny: Path, tmp_path: Path) -> None:
    out, before = tmp_path / "out", tiny.read_text()
    run_study(tiny, out, threads=1, artifacts=False)
    trained_before = files(out)
    tiny.write_text(before + '\n[conditions.held]\nmethod = "anchor"\n')
    run_study(tiny, out, threads=1, artifacts=False)
    after = files(out)
    assert {name: after[name] for name in trained_before if name.startswith("phases")} == {
        name: content for name, content in trained_before.items() if name.startswith("phases")
    }
    assert {entry.condition for entry in load_results(out).entries} >= {"naive", "held"}
    assert {status.state for status in study_status(out)} == {"done"}
    tiny.write_text(before)
    with pytest.raises(EvergaitError, match=r"holds another study \(held on .* is only there\)"):
        run_study(tiny, out, threads=1, artifacts=False)


def test_how_a_study_is_measured_may_change(tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_study(tiny, out, threads=1, artifacts=False)
    assert load_results(out).scores == ""
    tiny.write_text('scores = "paper"\n' + tiny.read_text())
    assert run_study(tiny, out, threads=1, artifacts=False).scores == "paper"
    assert load_results(out).scores == "paper"


def test_an_edited_title_is_taken_over(tiny: Path, trained_study: Results, tmp_path: Path) -> None:
    shutil.copytree(trained_study.path, tmp_path / "out")
    tiny.write_text('description = "Why"\n' + tiny.read_text().replace('"Tiny"', '"Edited"'))
    results = run_study(tiny, tmp_path / "out", threads=1, artifacts=False)
    assert (results.title, results.description) == ("Edited", "Why")
    assert {entry.seed for entry in results.entries} == {0, 1}
    assert read_study(tmp_path / "out" / "study.toml").outline.title == "Edited"


def test_a_study_that_someone_wrote_is_not_written_over(tiny: Path, tmp_path: Path) -> None:
    mine = tmp_path / "out" / "study.toml"
    mine.parent.mkdir()
    mine.write_text("# my notes\n" + tiny.read_text())
    with pytest.raises(EvergaitError, match=r"study.toml is there already, with something else in it"):
        run_study(mine, mine.parent, threads=1, artifacts=False)
    assert mine.read_text().startswith("# my notes")


def test_two_processes_do_not_train_one_study(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "phases").mkdir(parents=True)
    with (
        locked(tmp_path / "out" / "lock"),
        pytest.raises(EvergaitError, match="another process is training the study"),
    ):
        run_study(tiny, tmp_path / "out", threads=1, artifacts=False)


def test_a_study_that_another_process_trains_is_not_changed(tiny: Path, trained_study: Results, tmp_path: Path) -> None:
    shutil.copytree(trained_study.path, tmp_path / "out")
    before = everything(tmp_path / "out")
    with (
        locked(tmp_path / "out" / "lock"),
        pytest.raises(EvergaitError, match="another process is training the study"),
    ):
        run_study(tiny, tmp_path / "out", seeds=3, threads=1, artifacts=False)
    assert everything(tmp_path / "out") == before


def test_a_folder_that_is_refused_gets_no_lock(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("mine")
    with pytest.raises(EvergaitError, match="not empty and not a study's folder"):
        run_study(tiny, tmp_path / "foreign", threads=1, artifacts=False)
    assert [path.name for path in (tmp_path / "foreign").iterdir()] == ["notes.txt"]


def test_plan_and_status_speak(tiny: Path, trained_study: Results) -> None:
    console = rich.console.Console(file=io.StringIO(), width=120)
    print_plan(tiny, trained_study.path, threads=1, console=console)
    print_plan(tiny, threads=1, console=console)
    print_status(trained_study.path, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "6 different ones of 10; 6 are done" in text
    assert "6 different ones of 10; 0 are done" in text
    assert "12 done" in text


def test_a_process_that_dies_fails_its_phase_and_is_replaced(tiny: Path, tmp_path: Path) -> None:
    node = next(iter(Tree.build(study_cells(read_study(tiny))).nodes.values()))
    pool, watcher = Pool(Care(tmp_path), 1, 1, Local()), Counting(tmp_path)
    (tmp_path / "phases").mkdir()
    try:
        watcher.started(node)
        pool.start(node)
        assert not pool.is_free()
        ((process, _),) = pool._busy.values()
        process.kill()
        (ended,) = pool.wait(watcher)
        assert "SIGKILL" in ended.reason
        pool.start(node)
        (ended,) = pool.wait(watcher)
        assert not ended.reason
    finally:
        pool.close()


@pytest.mark.parametrize("is_known", [True, False])
def test_a_process_that_dies_while_idle_is_replaced_and_fails_nothing(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """Whether its death is known when the next phase is handed out, or noticed by the pipe alone."""
    first, second, *_ = (n for n in Tree.build(study_cells(read_study(tiny))).nodes.values() if not n.phase.parent)
    pool, watcher = Pool(Care(tmp_path), 1, 1, Local()), Counting(tmp_path)
    (tmp_path / "phases").mkdir()
    try:
        for node in (first, second):
            watcher.started(node)
            pool.start(node)
            (ended,) = pool.wait(watcher)
            assert not ended.reason
            ((process, _),) = pool._idle
            process.kill()
            process.join()
            if not is_known:
                monkeypatch.setattr(process, "is_alive", lambda: True)
    finally:
        monkeypatch.undo()
        pool.close()
    assert all(PhaseFolder(tmp_path / "phases" / node.name).is_done() for node in (first, second))


def test_a_process_trains_what_was_planned_or_nothing(tmp_path: Path) -> None:
    for file in (Path(__file__).parents[2] / "examples" / "robot").iterdir():
        shutil.copy(file, tmp_path)
    robot = tmp_path / "crawler.toml"
    config = tiny_config(stream=(str(robot),), engine="auto", generations=1, horizon=5)
    node = Node(plan_phases(config)[0], config, "planned")
    robot.write_text(robot.read_text().replace("forward = 1.0", "forward = 7.0"))
    pool, watcher = Pool(Care(tmp_path), 1, 1, Local()), Counting(tmp_path)
    (tmp_path / "phases").mkdir()
    try:
        watcher.started(node)
        pool.start(node)
        (ended,) = pool.wait(watcher)
    finally:
        pool.close()
    assert "changed since this training was planned" in ended.reason
    assert "crawler.toml" in ended.reason
    assert list((tmp_path / "phases").iterdir()) == []


def test_verify_plays_every_phase_of_a_study_once(trained_study: Results, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(trained_study.path), "--json"]) == 0
    verified = json.loads(capsys.readouterr().out)
    names = {phase.name for entry in trained_study.entries for phase in entry.run.phases}
    assert verified["agrees"]
    assert len(verified["rows"]) == 2 * len(names)  # two tasks
    assert "naive, InvertedPendulum > InvertedDoublePendulum, seed 1" in {row["phase"] for row in verified["rows"]}
