"""Full, failing, read-only and vanished disks: a loud error, the last good checkpoint intact, and on it goes after."""

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import Forks, evergait, small_disk, tree, wait_until, write_counts
from small import tiny_config

from evergait import EvergaitError, train
from evergait.commands.study import run_study
from evergait.config import Config
from evergait.es import Adam

Ask = Callable[..., tuple[int, str]]
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EDQUOT": errno.EDQUOT, "EROFS": errno.EROFS}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("share", [25, pytest.param(1, marks=pytest.mark.prove)])
def test_every_system_call_fails_once(
    forks: Forks,
    small: tuple[Config, Path],
    calls: tuple[int, dict[str, bytes]],
    tmp_path: Path,
    error: str,
    share: int,
) -> None:
    (_, path), (n_calls, expected) = small, calls
    n_tried = 0
    for nth in range(1 + n_calls % share, n_calls + 1, share):
        out = tmp_path / str(nth)
        code = forks.run("train", path, out, fault=(out, nth, ERRORS[error]))
        if code == 0:  # a call whose failure is harmless, such as that of a file which is taken away
            assert tree(out) == expected
        else:
            assert code == 2, f"call {nth} of {n_calls}"
            assert os.strerror(ERRORS[error]) in Path(f"{out}.error").read_text()
            assert forks.run("train", path, out) == 0, f"call {nth} of {n_calls}: {Path(f'{out}.error').read_text()}"
            assert tree(out) == expected, f"call {nth} of {n_calls}"
        n_tried += 1
    if share == 1:
        write_counts(f"call-fails-{error}", n_tried, 0, f"all {n_calls} calls that change a file")


@pytest.mark.parametrize("n_sizes", [2, pytest.param(20, marks=pytest.mark.prove)])
def test_a_full_disk(tmp_path: Path, n_sizes: int) -> None:
    config = tiny_config(generations=6, optimizer=Adam())
    whole = tree(train(config, tmp_path / "whole", threads=1).path)
    n_full = 0
    for i in range(n_sizes):
        size = 4 * (10 + 60 * i // n_sizes)  # kB, in pages
        with small_disk(tmp_path / f"disk{i}", f"size={size}k") as disk:
            with pytest.raises(EvergaitError, match="No space left on device"):
                train(config, disk / "run", threads=1, checkpoint_seconds=0)
            n_full += 1
            subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
            train(config, disk / "run", threads=1)
            assert tree(disk / "run") == whole
    if n_sizes > 2:
        write_counts("disk-full", n_full, 0, "a tmpfs of 40 to 268 kB, enlarged afterwards")


def test_a_full_disk_under_a_study(ask: Ask, tmp_path: Path, study: Path) -> None:
    run_study(study, tmp_path / "whole", threads=1, artifacts=False)
    with small_disk(tmp_path / "disk", "size=400k") as disk:
        code, output = ask("study", "run", study, "--out", disk / "out", "--threads", 1)
        assert code == 2
        assert "No space left on device" in output
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        run_study(study, disk / "out", threads=1, artifacts=False)
        assert tree(disk / "out") == tree(tmp_path / "whole")


def test_a_finished_run_can_be_read_where_nothing_can_be_written(
    ask: Ask, trained: Path, tmp_path: Path, study: Path
) -> None:
    run_study(study, tmp_path / "study", threads=1, artifacts=False)
    with small_disk(tmp_path / "disk", "size=8m") as disk:
        shutil.copytree(trained, disk / "run")
        shutil.copytree(tmp_path / "study", disk / "study")
        config = disk / "run" / "config.toml"
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for command in (
            ("show", disk / "run"),
            ("eval", disk / "run", "--episodes", 1),
            ("verify", disk / "run", "--episodes", 1),
            ("train", "--config", config, "--out", disk / "run"),
            ("study", "status", disk / "study"),
            ("report", disk / "run", "--output", tmp_path / "page.html"),
            ("export", disk / "run", "--output", tmp_path / "policy.safetensors"),
        ):
            code, output = ask(*command)
            assert code == 0, output
        for command in (  # type: ignore[assignment]
            ("report", disk / "run"),
            ("export", disk / "run", "--output", disk / "policy.safetensors"),
            ("play", disk / "run", "--output", disk / "gait.html"),
            ("train", "--config", config, "--out", disk / "other"),
            ("study", "run", study, "--out", disk / "other"),
            ("study", "run", study, "--out", disk / "study", "--seeds", 2),
        ):
            code, output = ask(*command)
            assert (code, "Read-only file system" in output) == (2, True), output


def test_a_folder_that_vanishes(tmp_path: Path) -> None:
    config = tiny_config(generations=100_000, pairs=4)
    (tmp_path / "c.toml").write_text(config.to_toml())
    out = tmp_path / "run"
    arguments = ("train", "--config", tmp_path / "c.toml", "--out", out, "--checkpoint-seconds", 0)
    with evergait(*arguments) as process:
        wait_until(lambda: list(out.glob("phases/*/checkpoint.safetensors")))
        out.rename(tmp_path / "moved")
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "No such file or directory" in output
    assert "Traceback" not in output
    (tmp_path / "moved").rename(out)
    with evergait(*arguments) as process:
        assert process.stdout
        assert any("goes on after generation" in line for line in process.stdout)
        process.terminate()


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """As a quota, or `ulimit -f`, makes it."""
    config = tiny_config()
    (tmp_path / "c.toml").write_text(config.to_toml())

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    command = [sys.executable, "-m", "evergait", "train", "--config", tmp_path / "c.toml", "--out", tmp_path / "run"]
    done = subprocess.run(
        command,  # type: ignore[arg-type]
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    train(config, tmp_path / "run", threads=1)
    assert tree(tmp_path / "run") == tree(train(config, tmp_path / "whole", threads=1).path)
