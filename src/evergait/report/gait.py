"""Recorded gaits: one episode of an unperturbed policy in plain Gymnasium, as a player draws it, kept on disk.

Motion is text: second differences over time, as variable-length integers, in base64. Smooth motion has small ones, so
most numbers take one byte, whatever the distance travelled. `assets/gait.js` has the decoder; `decode` here is for
stills, GIFs and tests.
"""

import base64
import contextlib
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np

from evergait.core.arrays import Float32, Int64
from evergait.core.errors import EvergaitError
from evergait.core.files import canonical_json, make_own_folder, read_json, sha256, write_json
from evergait.engines.gymnasium.episode import Episode
from evergait.policy import Network, Statistics
from evergait.policy.network import Acting
from evergait.report.robot import Robot
from evergait.store.ledger import Record
from evergait.tasks import Task, parse_task
from evergait.tasks.quiet import hushed
from evergait.tasks.robot_file import robot_digest
from evergait.training.evaluate import evaluation_seeds
from evergait.training.run import Run


def encode(values: Int64) -> str:
    """(n_frames, n_channels) integers → text.

    >>> decode(encode(np.array([[0, 5], [1, 5], [3, -900]])), 2).tolist()
    [[0, 5], [1, 5], [3, -900]]
    """
    values = np.asarray(values, np.int64)
    padded = np.concatenate([np.zeros((2, values.shape[1]), np.int64), values])
    second = np.diff(padded, n=2, axis=0).T.ravel()  # channel by channel
    unsigned = np.where(second >= 0, 2 * second, -2 * second - 1)
    n_bytes = np.maximum(1, -(-_bit_length(unsigned) // 7))
    index = np.arange(int(n_bytes.max(initial=1)))
    groups = (unsigned[:, None] >> (7 * index)) & 127
    last = index == n_bytes[:, None] - 1
    kept = index < n_bytes[:, None]
    coded = np.where(last, groups, groups | 128)[kept].astype(np.uint8)
    return base64.b64encode(coded.tobytes()).decode()


def decode(text: str, n_channels: int) -> Int64:
    """Text → (n_frames, n_channels)."""
    coded = np.frombuffer(base64.b64decode(text), np.uint8).astype(np.int64)
    ends = np.flatnonzero(coded < 128)
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    place = np.arange(len(coded)) - np.repeat(starts, ends - starts + 1)
    unsigned = np.add.reduceat((coded & 127) << (7 * place), starts) if len(ends) else starts
    second = np.where(unsigned % 2 == 0, unsigned // 2, -(unsigned + 1) // 2)
    return second.reshape(n_channels, -1).T.cumsum(axis=0).cumsum(axis=0)


def _bit_length(values: Int64) -> Int64:
    lengths = np.zeros(len(values), np.int64)
    rest = values.copy()
    while rest.any():
        lengths += rest > 0
        rest >>= 1
    return lengths


FORMAT = 1
FIELDS = {"motion": str, "score": str, "return": float, "steps": int, "seconds": float, "ended": str}
"""Of a kept gait."""
ENDINGS = ("terminated", "truncated", "diverged")


@dataclass(frozen=True)
class Moment:
    """A θ of a run that was kept: after a generation of a stage."""

    stage: int
    generation: int
    theta: Float32
    statistics: Statistics
    is_end: bool = False
    """Whether its stage ended here."""

    def record(self, run: Run) -> Record:
        """The evaluation of this θ."""
        return next(r for r in run.ledgers[self.stage].records if r.generation == self.generation)


def moments(run: Run) -> list[Moment]:
    """Every θ that a run kept, in order: the first one, and the snapshots and the end of each stage.

    Observation statistics are kept at the end of a stage only: a normalising policy has no snapshots on the way.
    """
    found = [Moment(0, 0, run.policy.initial(run.config.seed), Statistics.empty(run.policy.tasks))]
    for stage, ledger in enumerate(run.ledgers):
        state, last = run.state(stage), ledger.generations[-1]
        kept = sorted((int(generation), theta) for generation, theta in state.snapshots.items())
        for generation, theta in kept if not run.config.policy.normalise else []:
            if 0 < generation < last and generation in ledger.generations:
                found.append(Moment(stage, generation, theta, state.statistics))
        found.append(Moment(stage, last, state.theta, state.statistics, is_end=True))
    return found


def typical_episode(record: Record, task: str) -> int:
    """The evaluation episode with the median return: what one would most likely see."""
    order = np.argsort(record.returns[task], kind="stable")
    return int(order[(len(order) - 1) // 2])


@dataclass(frozen=True)
class GaitRecorder:
    """Records gaits of one task; keeps them in a folder, by all that decides their bits."""

    robot: Robot
    cache: Path | None = None

    def record(self, run: Run, moment: Moment) -> dict[str, Any]:
        """One episode: the evaluation episode with the median return."""
        played = self.played(run, moment)
        gait = self._read(played.identity) or self._keep(played.identity, self._simulate(played))
        return {**gait, "id": played.identity, "episode": played.episode}

    def played(self, run: Run, moment: Moment) -> "Played":
        """What is to be played."""
        task = self.robot.task
        record = moment.record(run)
        episode = typical_episode(record, task.name)
        seed = int(evaluation_seeds(run.config.seed, task, len(record.returns[task.name]))[episode])
        return Played(task, run.policy.network(task, moment.statistics), moment.theta, seed, episode)

    def close(self) -> None:
        """Give back the robot."""
        self.robot.close()

    def _read(self, identity: str) -> dict[str, Any] | None:
        if self.cache is None:
            return None
        with contextlib.suppress(EvergaitError):  # a damaged or missing file is recorded anew
            gait = read_json(self.cache / f"{identity}.json")
            if gait.pop("gait", 0) == FORMAT and self._is_whole(gait):
                return gait
        return None

    def _is_whole(self, gait: dict[str, Any]) -> bool:
        """Whether an episode of this robot is kept, frame by frame; a checksum alone does not tell."""
        if {name: type(value) for name, value in gait.items()} != FIELDS or gait["steps"] < 0:
            return False
        n_steps, per_frame = gait["steps"], self.robot.steps_per_frame
        n_frames = 1 + (n_steps // per_frame if gait["ended"] == "diverged" else -(-n_steps // per_frame))
        try:
            for text, n_channels in ((gait["motion"], len(self.robot.pose())), (gait["score"], 1)):
                values = decode(text, n_channels)
                if len(values) != n_frames or encode(values) != text:
                    return False
        except ValueError:
            return False
        return gait["ended"] in ENDINGS and gait["seconds"] == self._seconds(n_steps)

    def _seconds(self, n_steps: int) -> float:
        return round(n_steps * float(self.robot.env.unwrapped.dt), 4)

    def _keep(self, identity: str, gait: dict[str, Any]) -> dict[str, Any]:
        if self.cache is not None:
            with contextlib.suppress(OSError):  # a read-only folder only costs time
                make_own_folder(self.cache)
                write_json(self.cache / f"{identity}.json", {"gait": FORMAT, **gait})
        return gait

    def _simulate(self, played: "Played") -> dict[str, Any]:
        poses, scores = [], []

        def frame(total: float) -> None:
            poses.append(self.robot.pose())
            scores.append(total)

        total, n_steps, ended = self.play(played, frame)
        return {
            "motion": encode(np.stack(poses)),
            "score": encode(np.rint(np.array(scores)[:, None] * 10).astype(np.int64)),
            "return": total,
            "steps": n_steps,
            "seconds": self._seconds(n_steps),
            "ended": ended,
        }

    def play(self, played: "Played", frame: Callable[[float], None]) -> tuple[float, int, str]:
        """An episode; calls `frame` with the return so far whenever a picture is due.

        Returns (return, steps, how it ended).
        """
        acting = Acting.of(played.network, played.theta)
        episode, total, n_steps, ended = Episode(played.task, self.robot.env), 0.0, 0, ""
        with hushed(played.task), np.errstate(all="ignore"):
            moments = episode.moments(acting.network, acting.packed, played.seed)
            frame(0.0)
            for moment in moments:
                if moment.ended in ("diverged", "blind", "mute"):
                    return total, n_steps, "diverged"
                total, n_steps = total + moment.reward, n_steps + 1
                if n_steps % self.robot.steps_per_frame == 0 or moment.ended:
                    frame(total)
                ended = moment.ended
        return total, n_steps, ended


@dataclass(frozen=True)
class Played:
    """One episode of one policy on one task: all that decides its bits."""

    task: Task
    network: Network
    theta: Float32
    seed: int
    episode: int
    """Its number among the evaluation episodes."""

    @property
    def identity(self) -> str:
        """A hash of all that."""
        layers = [dataclasses.astuple(layer) for layer in self.network.layers]
        versions = {"mujoco": mujoco.__version__, "gymnasium": gymnasium.__version__, "format": FORMAT}
        what = {**versions, "task": self.task.name, "seed": self.seed, "layers": layers}
        if digest := robot_digest(self.task):
            what["robot"] = digest
        arrays = (self.theta, self.network.mean, self.network.scale)
        parts = [sha256(np.ascontiguousarray(part).tobytes()) for part in arrays if part is not None]
        return sha256(canonical_json([what, parts]).encode())[:24]


def recorder(task: str, cache: Path | None) -> GaitRecorder:
    """A recorder for a task, by name."""
    return GaitRecorder(Robot.of(parse_task(task)), cache)
