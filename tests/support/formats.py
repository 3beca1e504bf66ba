"""Files of every released format, each a .tar.gz in tests/formats.

    python tests/support/formats.py tests/formats/v2.tar.gz

makes those of the format that this evergait writes. Run it once, when a format is released; afterwards its files must
load for ever. Raising FORMAT without fixtures of its own makes tests/reliability/test_formats.py fail.
"""

import contextlib
import sys
import tarfile
import tempfile
from pathlib import Path

from evergait.commands.study import run_study
from evergait.config import Config, Evaluation
from evergait.methods import Replay
from evergait.policy import PolicyConfig
from evergait.policy.layout import export_policy
from evergait.training.observer import Observer, Position
from evergait.training.run import train

FORMATS = Path(__file__).parents[1] / "formats"
VERSIONS = sorted(path.name.removesuffix(".tar.gz") for path in FORMATS.glob("v*.tar.gz"))


def unpack(version: str, folder: Path) -> Path:
    """The files of a format as they were written, in a new folder."""
    with tarfile.open(FORMATS / f"{version}.tar.gz") as file:
        file.extractall(folder / version, filter="data")
    return folder / version


SMALL = PolicyConfig(input_width=4, hidden=(4,))
CONFIG = Config(
    stream=("InvertedPendulum-v5", "Reacher-v5"),
    generations=4,
    pairs=3,
    horizon=10,
    engine="mujoco",
    policy=SMALL,
    evaluation=Evaluation(every=2, episodes=2, random_policies=2),
    method=Replay(budget=2),
)
STUDY = """\
title = "A study of format 1"
orders = ["InvertedPendulum-v5 > Reacher-v5"]

[base]
pairs = 2
generations = 2
horizon = 10
engine = "mujoco"
policy = { input_width = 4, hidden = [4] }
evaluation = { every = 2, episodes = 2, random_policies = 2, snapshots = 0 }

[conditions.naive]
method = "naive"
"""


class Halfway(Observer):
    """Ends training in the second generation of the second phase, as a kill would."""

    def generation_done(self, at: Position, seen: object) -> None:
        """Now."""
        if at.stage.index == 1 and at.generation == 2:
            raise KeyboardInterrupt


def make(folder: Path) -> None:
    """A finished run, a run in training, a study, and a policy file."""
    run = train(CONFIG, folder / "run", threads=1)
    with contextlib.suppress(KeyboardInterrupt):
        train(CONFIG, folder / "training", threads=1, observers=[Halfway()], checkpoint_seconds=0)
    (folder / "study-file.toml").write_text(STUDY)
    run_study(folder / "study-file.toml", folder / "study", threads=1, artifacts=False)
    export_policy(folder / "policy.safetensors", run.policy, run.theta, run.state().statistics)
    for lock in folder.rglob("lock"):
        lock.unlink()


def main(file: Path) -> None:
    """All of it in one file."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(file, "x:gz") as packed:
        make(Path(folder))
        for path in sorted(Path(folder).iterdir()):
            packed.add(path, path.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
