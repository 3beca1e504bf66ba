"""A run: a folder with its config, and the phases of its stream in a store.

<out>/config.toml   the settings
      run.json      hashes of the phases, in order; where the store is; a digest of config.toml
      phases/       the store, unless another one is given
      lock          held while the files above are written
"""

import contextlib
import itertools
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from evergait.config import Config, read_config
from evergait.core.arrays import Float32, Float64
from evergait.core.data import MOST_PHASES, MOST_THREADS, check_count, is_finite, require, to_data, within
from evergait.core.errors import EvergaitError
from evergait.core.files import (
    as_path,
    locked,
    make_own_folder,
    read_bytes,
    read_json,
    remove_leftovers,
    require_own,
    sha256,
    write_atomically,
    write_json,
)
from evergait.core.signals import stop_at_safe_points
from evergait.policy import Policy
from evergait.policy.network import Acting
from evergait.scores.metrics import Metrics
from evergait.scores.scale import scale_of
from evergait.store.ledger import Ledger
from evergait.store.phases import PhaseFolder, PhaseStore
from evergait.tasks import Task, parse_task
from evergait.tasks.base import as_task
from evergait.tasks.robot_file import robot_digests
from evergait.training.frame import Frame, make_frame, order_name
from evergait.training.observer import NotebookProgress, Observer, in_notebook
from evergait.training.phases import Phase, PhaseTrainer, changed, outdated, plan_phases
from evergait.training.state import State
from evergait.workers import LocalWorkers, Workers

OWN_FILES = ("config.toml", "run.json", "phases", "phases.zip", "lock")


@dataclass(frozen=True)
class Run:
    """What a run has on disk; the phases that are not done yet are left out."""

    path: Path
    config: Config
    phases: tuple[PhaseFolder, ...]

    @staticmethod
    def load(path: str | Path, store: str | Path | None = None) -> "Run":
        """Read a run's folder; phases that lie outside of it are read only if the caller says where."""
        path = as_path(path, "path")
        if not (path / "run.json").exists():
            why = "it has no run.json" if path.is_dir() else "there is none"
            raise EvergaitError(f"{path}: is not a run's folder ({why}); `evergait train --out` makes one")
        described = described_run(path)
        names, named = described["phases"], described["store"]
        if described.get("config") not in (None, sha256(read_bytes(path / "config.toml"))):
            raise EvergaitError(
                f"{path / 'config.toml'}: does not match its digest in run.json; it was damaged or edited"
            )
        check_count(f"{path / 'run.json'}: phases", len(names), MOST_PHASES)
        if named != "phases" and store is None:
            raise EvergaitError(
                f"{path / 'run.json'}: its phases are in {named!r}, outside its folder; if you trust it, say "
                f"--store {path / named}"
            )
        root = PhaseStore(Path(store)) if store else PhaseStore.inside(path)
        folders = [root.folder(str(name)) for name in names]
        done = tuple(itertools.takewhile(PhaseFolder.is_done, folders))
        return Run(path, read_config(path / "config.toml"), done)

    @property
    def order(self) -> str:
        """The stream as tables write it, however its config spells the tasks."""
        return order_name([task.name for task in self.config.stream_tasks])

    @property
    def is_done(self) -> bool:
        """Whether every phase of the stream has been trained."""
        return len(self.phases) == len(self.config.stages())

    def tidy(self) -> None:
        """Remove what a kill right after the end of a phase left behind."""
        with contextlib.suppress(OSError):  # a finished run may lie where nothing can be written
            for phase in self.phases:
                phase.tidy()

    @cached_property
    def policy(self) -> Policy:
        """The layout of θ."""
        self.config.policy.check()
        policy = self.config.build_policy()
        policy.check()
        return policy

    @cached_property
    def ledgers(self) -> tuple[Ledger, ...]:
        """The evaluations of every finished phase."""
        ledgers = tuple(phase.ledger() for phase in self.phases)
        for stage, (phase, ledger) in enumerate(zip(self.phases, ledgers, strict=True)):
            if ledger.stage != stage or ledger.tasks != ledgers[0].tasks:
                raise EvergaitError(f"{phase.path / 'ledger.jsonl'}: is not of phase {stage + 1} of this run")
        return ledgers

    @property
    def ledger(self) -> Ledger:
        """The evaluations of the last finished phase."""
        self._require_phase()
        return self.ledgers[-1]

    @property
    def has_policies(self) -> bool:
        """Whether every finished phase has its θ."""
        return all(phase.has_policy for phase in self.phases)

    def frame(self) -> Frame:
        """Every evaluation episode as a row: `pandas.DataFrame(run.frame())`."""
        return make_frame([(self.config.method.name, self.order, self.config.seed, self.ledgers)])

    @cached_property
    def outdated(self) -> tuple[str, ...]:
        """Parts that are of another version now, such as `policy 1, now 2`: trained again, it has other bits."""
        return tuple(dict.fromkeys(part for phase in self.phases for part in outdated(phase.identity())))

    @property
    def is_edited(self) -> bool:
        """Whether a robot's file has been edited since it was trained: what plays now is another robot."""
        before = {name: robot for phase in self.phases for name, robot in phase.identity().get("robots", {}).items()}
        there = {name: robot for name, robot in before.items() if Path(parse_task(name).id).is_file()}
        try:
            return there != robot_digests(map(parse_task, there))
        except EvergaitError:
            return True  # it cannot be read any more

    def state(self, stage: int = -1) -> State:
        """θ and statistics at the end of a stage."""
        self._require_phase()
        n = len(self.phases)
        right = hasattr(stage, "__index__") and -n <= stage < n
        require(right, "stage", stage, f"from 0 to {n - 1}, or -1 for the last finished phase")
        return State.load(*self.phases[stage].result(), self.policy, self.phases[stage].path)

    @property
    def theta(self) -> Float32:
        """θ at the end of the last finished phase."""
        return self.state().theta

    def act(self, task: str | Task, observation: object, stage: int = -1) -> Float32 | int:
        """What the policy at the end of a stage does on seeing an observation of a task: what `env.step` takes."""
        task = as_task(task)
        if (task, stage) not in self._acting:
            state = self.state(stage)
            network = self.policy.network(known_task(self.policy, task), state.statistics)
            self._acting[task, stage] = Acting.of(network, state.theta)
        acting = self._acting[task, stage]
        return acting(as_vector(observation, acting.network.n_observations))

    @cached_property
    def _acting(self) -> dict[tuple[Task, int], Acting]:
        return {}

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return run_html(self)

    @property
    def theta_sha256(self) -> str:
        """Digest of the bits of θ: equal for equal configs, whatever the threads, workers and interruptions."""
        self._require_phase()
        tensors, _ = self.phases[-1].result()
        if "theta" not in tensors:
            raise EvergaitError(f"{self.phases[-1].path / 'theta.safetensors'}: has no tensor `theta`")
        return sha256(tensors["theta"].tobytes())

    @cached_property
    def metrics(self) -> Metrics:
        """What was learnt, kept, forgotten and transferred."""
        return self.scored({})

    def scored(self, references: Mapping[str, float]) -> Metrics:
        """The same with R* from the user, by task; without any, R* ships with the package or there is none."""
        self._require_phase()
        return Metrics(self.ledgers, scale_of(self.ledgers, references))

    def _require_phase(self) -> None:
        if not self.phases:
            raise EvergaitError(
                f"{self.path}: no phase of this run is finished yet; run the same `train` command again"
            )


def edited(runs: Iterable[Run]) -> list[str]:
    """What to say of runs whose robots' files have been edited since."""
    words = "a file of its robots has been edited since it was trained; they move as they are now."
    return [f"{order}: {words}" for order in dict.fromkeys(run.order for run in runs if run.is_edited)]


def described_run(path: Path) -> dict[str, Any]:
    """What run.json says: hashes of the phases, and where they are."""
    described = read_json(path / "run.json")
    if not isinstance(described.get("phases"), list) or not isinstance(described.get("store"), str):
        raise EvergaitError(f"{path / 'run.json'}: must have a list `phases` and a text `store`")
    return described


def known_task(policy: Policy, task: Task) -> Task:
    """The task whose layers serve: the same, or the one with the same environment."""
    same = [known for known in policy.tasks if known == task] or [k for k in policy.tasks if k.id == task.id]
    if not same:
        names = ", ".join(known.name for known in policy.tasks)
        raise EvergaitError(f"task {task.name!r}: the policy has no input layer for it; it knows {names}")
    return same[0]


def as_vector(observation: object, n: int) -> Float64:
    """An observation that someone passes, which must be n finite numbers: of others, any action would be a guess."""
    try:
        vector = np.ascontiguousarray(observation, np.float64)
    except (TypeError, ValueError):
        vector = np.zeros(0)
    right = vector.shape == (n,) and bool(np.isfinite(vector).all())
    require(right, "observation", observation, f"a vector of {n} numbers, all of them finite")
    return vector


def run_html(run: Run) -> str:
    """A run as a small table: the mean return on every task at the end of each finished phase."""
    cells = [["", *run.ledgers[0].tasks]] if run.phases else [["no phase is finished"]]
    for ledger in run.ledgers:
        means = (f"{ledger.records[-1].mean(task):,.1f}" for task in ledger.tasks)
        cells.append([f"after {' + '.join(ledger.learning)}", *means])
    rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in cells)
    title = f"{run.path}: {run.config.method.name}, seed {run.config.seed}, mean returns"
    return f"<table><caption>{escape(title)}</caption>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def default_threads() -> int:
    """The processors that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(threads: int | None) -> int:
    """The number of threads to use: as wanted, or all processors."""
    if threads is not None:
        within(threads, 1, MOST_THREADS, "threads")
    return int(threads or default_threads())


def check_seconds(seconds: float) -> None:
    """Refuse times between checkpoints that never come."""
    require(is_finite(seconds) and seconds >= 0, "checkpoint_seconds", seconds, "a number of at least 0 and finite")


def open_folder(config: Config, out: Path, store: Path) -> None:
    """Make or reopen a run's folder; another config or foreign files in it are an error."""
    try:
        names = {entry.name for entry in out.iterdir()} if out.exists() else set()
    except OSError as error:
        raise EvergaitError(f"out: {out} cannot be made a folder: {error.strerror}") from error
    # A kill while the folder was made leaves a part of it, which is ours all the same.
    ours = {name for name in names if name in OWN_FILES or name.startswith((".config.toml.", ".run.json."))}
    if not {"config.toml", "run.json"} <= names and names != ours:
        raise EvergaitError(f"out: {out} is not empty and not a run's folder; choose another one")
    for name, folder in (("store", store), ("out", out)):
        try:
            if folder != out / "phases":  # which must be no link
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EvergaitError(f"{name}: {folder} cannot be made a folder: {error.strerror}") from error
    try:
        with locked(out / "lock"):
            remove_leftovers(out, "config.toml", "run.json")
            _write_folder(config, out, store)
    except OSError as error:
        raise EvergaitError(f"out: {out} cannot be written: {error.strerror}") from error


def _write_folder(config: Config, out: Path, store: Path) -> None:
    """Its files, as far as they are missing or say something else."""
    # A kill may have left one of them, the same as now.
    if not all((out / name).exists() for name in ("config.toml", "run.json")):
        require_own(out / "config.toml", config.to_toml().encode())
        write_atomically(out / "config.toml", config.to_toml().encode())
    there = read_config(out / "config.toml")
    if there != config:
        mine, theirs = to_data(config), to_data(there)
        changed = next((key for key in mine if mine[key] != theirs[key]), "config")
        raise EvergaitError(
            f"out: {out} holds a run with another config ({changed} is {theirs.get(changed)!r} there and "
            f"{mine.get(changed)!r} here); choose another folder"
        )
    if store == out / "phases":
        make_own_folder(store)
    planned = plan_phases(config)
    described = {
        "phases": [phase.name for phase in planned],
        "store": os.path.relpath(store, out),
        "config": sha256(read_bytes(out / "config.toml")),
    }
    before = read_json(out / "run.json") if (out / "run.json").exists() else {}
    if before != described:
        if before.get("phases", described["phases"]) != described["phases"]:
            _require_untrained(out, store, planned)
        write_json(out / "run.json", described)


def _require_untrained(out: Path, store: Path, planned: Sequence[Phase]) -> None:
    """What other versions have trained here stays what the folder shows."""
    pairs = zip(Run.load(out, store).phases, planned, strict=False)
    if parts := dict.fromkeys(words for phase, now in pairs for words in changed(phase.identity(), now.identity)):
        raise EvergaitError(f"out: {out} holds this run trained with {'; '.join(parts)}; choose another folder")


def train(
    config: Config,
    out: str | Path,
    *,
    threads: int | None = None,
    store: str | Path | None = None,
    workers: Workers | None = None,
    observers: Sequence[Observer] = (),
    checkpoint_seconds: float = 30.0,
) -> Run:
    """Train a stream, or go on where an earlier call with the same config and folder stopped.

    Phases that the store already has, from this run or another, are not trained again. In a notebook, progress is shown
    below the cell. Ctrl-C stops at a safe point, as a KeyboardInterrupt; the same call goes on.
    """
    if not isinstance(config, Config):
        raise EvergaitError(f"config: is {config!r}; it must be a Config, such as preset('quick')")
    require(isinstance(workers, Workers | None), "workers", workers, "LocalWorkers(n), or other Workers")
    listed = isinstance(observers, list | tuple) and all(isinstance(one, Observer) for one in observers)
    require(listed, "observers", observers, "a list of Observer")
    config = config.with_plugins()
    config.trust()
    config.check()
    n_threads = check_threads(threads)
    check_seconds(checkpoint_seconds)
    out = as_path(out, "out")
    root = as_path(store, "store") if store is not None else out / "phases"
    open_folder(config, out, root)
    if in_notebook():
        observers = (*observers, NotebookProgress(len(config.stages())))
    hands = workers or LocalWorkers(n_threads)
    trainer = PhaseTrainer(config, PhaseStore(root), hands, observers, checkpoint_seconds)
    try:
        with stop_at_safe_points():
            for phase in plan_phases(config):
                trainer.ensure(phase)
    except OSError as error:
        raise EvergaitError(f"{error.filename or out}: {error.strerror}; what was saved before is intact") from error
    finally:
        if workers is None:
            hands.close()
    return Run.load(out, root)
