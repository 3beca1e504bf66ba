"""What the proofs share."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults import Forks, tree
from small import tiny_config, tiny_study

from evergait.cli import main
from evergait.config import Config
from evergait.methods import Naive
from evergait.training.run import train


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Exit code and output of a command, run right here because starting Python takes longer than most of them."""

    def ask(*arguments: object) -> tuple[int, str]:
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, f"{printed.out}{printed.err}".replace("\n", " ")

    return ask


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """The file of a tiny study."""
    path = tmp_path / "tiny.toml"
    path.write_text(tiny_study(generations=6, engine="mujoco"))
    return path


@pytest.fixture
def small(tmp_path: Path) -> tuple[Config, Path]:
    """A run of three generations on one task, and its file: some hundred system calls."""
    config = tiny_config(stream=("InvertedPendulum-v5",), generations=3, pairs=2, horizon=10, method=Naive())
    path = tmp_path / "c.toml"
    path.write_text(config.to_toml())
    return config, path


@pytest.fixture
def calls(forks: Forks, small: tuple[Config, Path], tmp_path: Path) -> tuple[int, dict[str, bytes]]:
    """How many system calls of that run change a file, and the files that it makes."""
    config, path = small
    train(config, tmp_path / "whole", threads=1, checkpoint_seconds=0)
    assert forks.run("count", path, tmp_path / "counted", fault=(tmp_path / "counted", 0, 0)) == 0
    return int((tmp_path / "counted.count").read_text()), tree(tmp_path / "whole")


@pytest.fixture(scope="session")
def long_config() -> Config:
    """Two tasks and many generations, each of which takes about as long as a checkpoint."""
    return tiny_config(generations=30, pairs=4, horizon=20)


@pytest.fixture(scope="session")
def undisturbed(long_config: Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of that run, trained without any disturbance."""
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    train(long_config, out, threads=1)
    return out
