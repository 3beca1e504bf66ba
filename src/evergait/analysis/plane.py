"""The paper's concept sketch made real: the plane through single-task optima, with each task's measured landscape.

θ has thousands of dimensions; three optima span a plane in it. Every task is evaluated on a grid of that plane, and the
path of θ through a stream, with and without replay, is projected onto it. Measured once and kept in plane.json.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evergait.core.arrays import Float64
from evergait.core.errors import EvergaitError
from evergait.core.files import read_json, write_json
from evergait.engines import engine_name
from evergait.methods import Naive, Replay
from evergait.studies.results import Results
from evergait.tasks import parse_task
from evergait.training.evaluate import Evaluator
from evergait.training.run import Run, default_threads
from evergait.workers import LocalWorkers

FILE = "plane.json"
FORMAT = 2
N_GRID = 11
N_EPISODES = 2
MARGIN = 0.15
"""Of the width of what is shown, added on every side."""
NUMBERS = ("x", "y", "off", "stage", "generation")
"""Of every point of a path."""
UNDEFINED = "Some policies on it have no finite return."
NO_BEST = "A single-task run has no evaluation with a finite return, and so no best policy."
UNMEASURED = "It has not been measured yet; `evergait study run` does that at its end."
LARGEST = 1e100
"""What no number in plane.json reaches: those below can be added and multiplied."""


@dataclass(frozen=True)
class Plane:
    """A plane in θ's space."""

    origin: Float64
    axes: Float64
    """(2, n_parameters), orthonormal."""

    @staticmethod
    def through(points: Sequence[Float64]) -> "Plane | None":
        """The plane through the first three points that span one; none if all lie on a line."""
        axes: list[Float64] = []
        for point in points[1:]:
            direction = point - points[0]
            for axis in axes:
                direction = direction - (direction @ axis) * axis
            length = np.linalg.norm(direction)
            if length > 1e-6 and len(axes) < 2:
                axes.append(direction / length)
        return Plane(points[0], np.array(axes)) if len(axes) == 2 else None

    def project(self, theta: Float64) -> tuple[float, float]:
        """The two coordinates of the nearest point."""
        x, y = (float(axis @ (theta - self.origin)) for axis in self.axes)
        return x, y

    def distance(self, theta: Float64) -> float:
        """How far off the plane a point lies."""
        return float(np.linalg.norm(theta - self.theta(*self.project(theta))))

    def theta(self, x: float, y: float) -> Float64:
        """The point at two coordinates."""
        point: Float64 = self.origin + x * self.axes[0] + y * self.axes[1]
        return point


def theta_path(run: Run) -> list[tuple[int, int, Float64]]:
    """(stage, generation, θ) at the start, at the snapshots and at the end of every finished phase."""
    path = [(0, 0, run.policy.initial(run.config.seed).astype(np.float64))]
    for stage, ledger in enumerate(run.ledgers):
        state = run.state(stage)
        between = sorted((int(generation), theta) for generation, theta in state.snapshots.items())
        path += [(stage, generation, theta.astype(np.float64)) for generation, theta in between]
        path.append((stage, ledger.generations[-1], state.theta.astype(np.float64)))
    return path


def plane_data(results: Results, measure: bool = True, threads: int | None = None) -> dict[str, Any] | str:
    """What the sketch shows, from plane.json or measured now; or why there is none."""
    singles = _singles(results)
    if len(singles) < 2:
        return "It takes finished single-task runs of two tasks."
    streams = _streams(results, singles[0].config.seed)
    if not streams:
        return "It takes a finished stream."
    if not all(run.has_policies for run in (*singles, *streams.values())):
        return "It takes policies, and some phases were kept without theirs."
    if len({len(run.theta) for run in (*singles, *streams.values())}) > 1:
        return "The policies of single-task runs and streams have different shapes."
    identity = {
        "format": FORMAT,
        "singles": [run.phases[0].name for run in singles],
        "streams": {name: [phase.name for phase in run.phases] for name, run in streams.items()},
        "grid": N_GRID,
        "episodes": N_EPISODES,
    }
    path = results.path / FILE
    tasks = [run.config.stream[0] for run in singles]
    if path.exists() and (kept := _kept(path)).get("identity") == identity and _is_whole(kept, tasks, streams):
        return kept
    if not measure:
        return UNMEASURED
    optima = [run.state(0).best_theta.astype(np.float64) for run in singles]
    if not all(theta.size for theta in optima):
        return NO_BEST
    # Two tasks, or a task that was best at the very start, leave room for further points.
    further = [theta for run in streams.values() for _, _, theta in reversed(theta_path(run))]
    plane = Plane.through((*optima, *further))
    if plane is None:
        return "The single-task optima lie on one line."
    data = {"identity": identity, **_measure(plane, singles, streams, threads)}
    if not _is_defined(data):
        return UNDEFINED
    write_json(path, data)
    return data


def _is_defined(data: Mapping[str, Any]) -> bool:
    """Whether every return is a finite number: contours have no holes, and JSON has no word for what is none."""
    by_task = [data["best"], *(point["returns"] for path in data["paths"].values() for point in path)]
    parts = [*data["landscapes"].values(), *(list(returns.values()) for returns in by_task)]
    return all(np.isfinite(part).all() for part in parts)


def _kept(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except EvergaitError:
        return {}


def _is_whole(data: dict[str, Any], tasks: Collection[str], streams: Collection[str]) -> bool:
    """Whether there is all that pictures are drawn from; a checksum alone does not tell."""
    try:
        paths = [data["paths"][name] for name in streams]
        points = [point for path in paths for point in path]
        return (
            all(data[part].keys() == set(tasks) for part in ("optima", "best", "landscapes"))
            and data["paths"].keys() == set(streams)
            and _are_numbers([data["x"], data["y"]], 2, N_GRID)
            and bool((np.diff([data["x"], data["y"]]) > 0).all())
            and all(_are_numbers(data["landscapes"][task], N_GRID, N_GRID) for task in tasks)
            and all(_are_numbers([data["best"][task], *data["optima"][task]], 3) for task in tasks)
            and all(paths)
            and all(_are_numbers([point[name] for name in NUMBERS], len(NUMBERS)) for point in points)
            and all(_are_numbers(list(point["returns"].values()), len(point["returns"])) for point in points)
            and all(isinstance(task, str) for point in points for task in point["learning"])
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return False


def _are_numbers(values: Any, *shape: int) -> bool:
    array = np.array(values)
    return array.shape == shape and array.dtype.kind in "if" and bool((np.abs(array) < LARGEST).all())


def _singles(results: Results) -> list[Run]:
    """The first seed's single-task runs, three at most."""
    runs = [entry.run for entry in results.baselines]
    seed = min((run.config.seed for run in runs), default=0)
    return [run for run in runs if run.config.seed == seed][:3]


def _streams(results: Results, seed: int) -> dict[str, Run]:
    """Condition → run of the first finished order that naive and replay, or else the first two conditions, share."""
    methods = {entry.condition: entry.run.config.method for entry in reversed(results.entries)}
    kinds = [next((n for n in results.conditions if isinstance(methods[n], kind)), "") for kind in (Naive, Replay)]
    shown = kinds if all(kinds) else results.conditions[:2]
    found: dict[str, dict[str, Run]] = {}
    for entry in results.entries:
        if entry.condition in shown and entry.seed == seed and entry.run.is_done:
            found.setdefault(entry.order, {})[entry.condition] = entry.run
    return max(found.values(), key=len, default={})


def _measure(plane: Plane, singles: Sequence[Run], streams: Mapping[str, Run], threads: int | None) -> dict[str, Any]:
    optima = [run.state(0).best_theta.astype(np.float64) for run in singles]
    paths = {name: _path(run, plane) for name, run in streams.items()}
    marks = [plane.project(theta) for theta in optima]
    shown = np.array([*marks, *((point["x"], point["y"]) for path in paths.values() for point in path)])
    low, high = shown.min(axis=0), shown.max(axis=0)
    margin = MARGIN * (high - low)
    xs, ys = (np.linspace(low[i] - margin[i], high[i] + margin[i], N_GRID) for i in (0, 1))
    workers = LocalWorkers(threads or default_threads())
    try:
        landscapes = {run.config.stream[0]: _landscape(run, plane, xs, ys, workers) for run in singles}
    finally:
        workers.close()
    return {
        "x": xs.tolist(),
        "y": ys.tolist(),
        "optima": {run.config.stream[0]: mark for run, mark in zip(singles, marks, strict=True)},
        "best": {run.config.stream[0]: run.ledger.best(run.config.stream[0]) for run in singles},
        "landscapes": landscapes,
        "paths": paths,
    }


def _path(run: Run, plane: Plane) -> list[dict[str, Any]]:
    """Where θ was on the plane, how far off it, and what its evaluation gave."""
    points = []
    for stage, generation, theta in theta_path(run):
        ledger = run.ledgers[stage]
        record = ledger.records[ledger.generations.index(generation)]
        (x, y), learning = plane.project(theta), list(ledger.learning)
        where = {"x": x, "y": y, "off": plane.distance(theta)}
        returns = {task: record.mean(task) for task in ledger.tasks}
        points.append({"learning": learning, "stage": stage, "generation": generation, **where, "returns": returns})
    return points


def _landscape(run: Run, plane: Plane, xs: Float64, ys: Float64, workers: LocalWorkers) -> list[list[float]]:
    """(n_y, n_x) mean returns of a task on the grid."""
    task, config = parse_task(run.config.stream[0]), run.config
    engines = {task: engine_name(config.engine, task)}
    few = replace(config.evaluation, episodes=N_EPISODES)
    evaluator = Evaluator(run.policy, engines, workers, few, config.seed)
    statistics = run.state(0).statistics
    rows = []
    for y in ys:
        row = []
        for x in xs:
            returns, _ = evaluator.measure(plane.theta(x, y).astype(np.float32), statistics, (task,))
            row.append(float(returns[task.name].mean()))
        rows.append(row)
    return rows
