"""`evergait eval`: a run's policy on any task, engine and number of episodes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from evergait.commands.base import errors, print_json, print_table
from evergait.commands.flags import Which, select_run, tell_edited
from evergait.config import Evaluation
from evergait.core.arrays import Float32
from evergait.core.data import require, within
from evergait.engines import engine_name
from evergait.tasks import Task, parse_task
from evergait.training.evaluate import Evaluator, as_recorded
from evergait.training.run import Run, check_threads, known_task
from evergait.training.state import State
from evergait.workers import LocalWorkers


@dataclass(frozen=True)
class Eval:
    """Evaluate the unperturbed policy of a run."""

    folder: tyro.conf.Positional[Path]
    """Folder of a run or a study."""
    which: Annotated[Which, tyro.conf.arg(name="")] = field(default_factory=Which)
    task: tuple[str, ...] = ()
    """Tasks; all that the policy knows if not given. A variant of a known task uses that task's layers."""
    stage: int = 0
    """After which phase of the stream, from 1; 0 is the last one finished."""
    theta: Annotated[Literal["last", "best"], tyro.conf.arg(name="which")] = "last"
    """The θ at the end of the phase, or its best evaluated one."""
    generation: int | None = None
    """A generation of the phase whose θ was kept on the way, instead of the one at its end."""
    engine: str = "auto"
    """What simulates episodes."""
    episodes: int = 10
    """Episodes per task."""
    episode_seed: int | None = None
    """Seed of the episodes; the run's own if not given, which repeats its evaluation episodes."""
    threads: int | None = None
    """Threads; all processors if not given."""
    json: bool = False
    """Print JSON, for programs."""

    def run(self) -> int:
        """Evaluate and print."""
        within(self.episodes, 1, 2**16, "episodes")
        within(self.episode_seed or 0, 0, 2**64 - 1, "episode_seed")
        run = select_run(self.folder, self.which)
        tell_edited(run)
        require(0 <= self.stage <= len(run.phases), "stage", self.stage, f"from 0 to {len(run.phases)}")
        state = run.state(self.stage - 1)
        theta = state.best_theta if self.theta == "best" else state.theta
        require(theta.size > 0, "which", self.theta, "last: no evaluation of this phase had a finite return")
        ends = run.ledgers[self.stage - 1].generations[-1]
        both = self.generation is not None and self.theta != "last"
        require(not both, "which", self.theta, "left out where --generation is given")
        if self.generation not in (None, ends):
            kept = ", ".join(state.snapshots) or "none"
            right = f"one whose θ was kept: {kept}; or {ends}, the last"
            require(str(self.generation) in state.snapshots, "generation", self.generation, right)
            theta = state.snapshots[str(self.generation)]
        if theta is not state.theta and run.config.policy.normalise:
            errors.print("Observations are normalised as at the end of the phase, not as that θ had them.")
        tasks = [parse_task(name) for name in self.task] or list(run.policy.tasks)
        workers = LocalWorkers(check_threads(self.threads))
        try:
            rows = [self._row(run, state, theta, task, workers) for task in tasks]
        finally:
            workers.close()
        if self.json:
            print_json(rows)
        else:
            columns = ["task", "engine", "mean", "sd", "min", "max", "mean length"]
            print_table(
                f"{self.episodes} episode{'s' * (self.episodes > 1)} per task",
                columns,
                [[row[c] for c in columns] for row in rows],
            )
        return 0

    def _row(self, run: Run, state: State, theta: Float32, task: Task, workers: LocalWorkers) -> dict[str, object]:
        known = known_task(run.policy, task)
        engine = engine_name(self.engine, task)
        seed = run.config.seed if self.episode_seed is None else self.episode_seed
        evaluator = Evaluator(run.policy, {task: engine}, workers, Evaluation(episodes=self.episodes), seed)
        request = evaluator.episodes(theta, known, state.statistics, self.episodes, simulated=task)
        outcome = workers.run(engine, request)
        returns = as_recorded(outcome)
        return {
            "task": task.name,
            "engine": engine,
            "mean": float(returns.mean()),
            "sd": float(returns.std()),
            "min": float(returns.min()),
            "max": float(returns.max()),
            "mean length": float(outcome.lengths.mean()),
            "returns": returns.tolist(),
        }
