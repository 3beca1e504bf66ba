"""`evergait bench`: environment steps per second of every engine, on the same candidates, interleaved."""

import dataclasses
from dataclasses import dataclass

from evergait.commands.base import errors, print_json, print_table
from evergait.core.data import MOST_ROWS, within
from evergait.tasks import parse_task
from evergait.training.run import check_threads
from evergait.workers.bench import measure


@dataclass(frozen=True)
class Bench:
    """Compare the engines' speed: one generation from a policy that survives, the same candidates for every engine."""

    tasks: tuple[str, ...] = ("Hopper-v5", "Swimmer-v5", "Walker2d-v5", "HalfCheetah-v5")
    """Tasks to measure."""
    engines: tuple[str, ...] = ("planar", "mujoco", "python", "envpool")
    """Engines to measure, where they can simulate the task; `python` is Gymnasium's own loop on one core, `envpool` is
    used if installed."""
    threads: int = 0
    """Threads of every engine but `python`; 0 uses all cores."""
    population: int = 768
    """Candidates in the generation; Gymnasium's loop and EnvPool simulate a part of it."""
    rounds: int = 2
    """How often each engine has its turn; the best counts."""
    json: bool = False
    """Print JSON, for programs."""

    def run(self) -> int:
        """Measure and print."""
        within(self.population, 2, MOST_ROWS, "population")
        within(self.rounds, 1, 10_000, "rounds")
        n_threads = check_threads(self.threads or None)
        tasks = [parse_task(name) for name in self.tasks]

        def tell(text: str) -> None:
            errors.print(text, style="dim", markup=False)

        speeds = list(measure(tasks, list(self.engines), n_threads, self.population, self.rounds, tell))
        if self.json:
            print_json([dataclasses.asdict(speed) for speed in speeds])
            return 0
        rows = [
            (
                s.task,
                s.engine,
                s.threads,
                round(s.env_steps_per_s),
                f"{s.ratio_to_mujoco:.1f}×" if s.ratio_to_mujoco else "",
            )
            for s in speeds
        ]
        print_table(
            "Environment steps per second", ["task", "engine", "threads", "steps/s", "to mujoco"], rows, n_names=2
        )
        return 0
