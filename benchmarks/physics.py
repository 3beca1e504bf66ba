"""Evidence that the planar engine computes what MuJoCo computes: fills in the tables and figures of docs/physics.md.

python benchmarks/physics.py [--states 100000] [--episodes 200] [--threads 2] [--parts agreement speed]
"""

import argparse
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
sys.path.insert(0, str(ROOT / "scripts"))

from oracles import (  # noqa: E402
    TASKS,
    environment,
    mujoco_steps,
    random_states,
    relative_error,
    smallest_separation,
    tighten,
)
from pages import fill_in  # noqa: E402

from evergait import Adam, Config, train  # noqa: E402
from evergait.config import Evaluation  # noqa: E402
from evergait.engines.mujoco.engine import MujocoEngine  # noqa: E402
from evergait.engines.planar import engine as planar  # noqa: E402
from evergait.figures.drawing import OKABE_ITO  # noqa: E402
from evergait.tasks import Task  # noqa: E402
from evergait.workers.bench import generation, measure  # noqa: E402

mpl.use("agg")
mpl.rcParams["axes.prop_cycle"] = mpl.cycler(color=OKABE_ITO)  # type: ignore[attr-defined]
from matplotlib import pyplot as plt  # noqa: E402

CROSSED = 1e-6
"""Below this distance between two capsules' axes, the direction of their contact is decided by rounding."""


def single_steps(n_states: int) -> tuple[str, dict[str, np.ndarray]]:
    """One environment step from random states: errors against a converged and against the stock MuJoCo."""
    lines = [
        "| task | states | median | 99.9 % | largest | above 1e-9: crossed capsules | above 1e-9: unexplained "
        "| diverged in MuJoCo | stock model: median | 99 % | largest |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    errors = {}
    for name in TASKS:
        task = Task(name)
        env = environment(task)
        model = env.model
        states = random_states(model, n_states, seed=0)
        ours = planar.step(task, *states, n_threads=2)
        *loose, _ = mujoco_steps(model, states, env.frame_skip)
        *tight, bad = mujoco_steps(tighten(model), states, env.frame_skip)
        error = relative_error(ours, tight)
        far = np.flatnonzero(~(error <= 1e-9) & ~bad)
        crossed = [r for r in far if smallest_separation(model, [x[r] for x in states], env.frame_skip) < CROSSED]
        good = np.setdiff1d(np.flatnonzero(~bad), crossed)
        against_stock = relative_error(ours, loose)[good]
        errors[name] = error[good]
        numbers = [np.median(error[good]), np.quantile(error[good], 0.999), error[good].max()]
        stocks = [np.median(against_stock), np.quantile(against_stock, 0.99), against_stock.max()]
        lines.append(
            f"| {name} | {n_states:,} | "
            + " | ".join(f"{x:.1e}" for x in numbers)
            + f" | {len(crossed)} | {len(far) - len(crossed)} | {int(bad.sum())} | "
            + " | ".join(f"{x:.1e}" for x in stocks)
            + " |"
        )
        print(lines[-1], flush=True)
    return "\n".join(lines), errors


def whole_episodes(n_episodes: int, n_threads: int) -> tuple[str, dict[str, np.ndarray]]:
    """Episodes of trained policies on both engines, and how far apart the robots are after so many steps."""
    lines = [
        "| task | episodes | same length | return within 0.1 % | mean return, planar | mujoco | paired difference "
        "| its standard error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    growth = {}
    for name in TASKS:
        task = Task(name)
        request = generation(task, trained_policy(task, n_threads), n_episodes, index=7)
        ours, theirs = planar.PlanarEngine().run(request, n_threads), MujocoEngine().run(request, n_threads)
        difference = ours.returns - theirs.returns
        close = np.abs(difference) <= 1e-3 * np.abs(theirs.returns)
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        lines.append(
            f"| {name} | {n_episodes} | {np.mean(ours.lengths == theirs.lengths):.1%} | {close.mean():.1%} "
            f"| {ours.returns.mean():.2f} | {theirs.returns.mean():.2f} | {difference.mean():+.2g} | {error:.2g} |"
        )
        growth[name] = _divergence(task, request)
        print(lines[-1], flush=True)
    return "\n".join(lines), growth


def trained_policy(task: Task, n_threads: int) -> np.ndarray:
    """θ after 60 generations of plain ES with Adam on the task alone; in training, standing pays less."""
    config = Config(
        stream=(task.name,),
        generations=60,
        pairs=128,
        healthy_bonus={"Hopper-v5": 0.0, "Walker2d-v5": 0.5},
        optimizer=Adam(learning_rate=0.03, weight_decay=0.003),
        evaluation=Evaluation(every=60, random_policies=1),
        engine="planar",
    )
    with tempfile.TemporaryDirectory() as folder:
        return train(config, Path(folder) / "run", threads=n_threads).theta


def _divergence(task: Task, request: object, n_rows: int = 8) -> np.ndarray:
    """(n_rows, n_steps) distance between the positions of planar and of MuJoCo under the same open-loop actions."""
    env = environment(task)
    random = np.random.default_rng(0)
    out = np.full((n_rows, 400), np.nan)
    for row in range(n_rows):
        env.reset(seed=row)
        q, v = env.data.qpos.copy()[None], env.data.qvel.copy()[None]
        action = np.zeros(env.model.nu)
        for step in range(400):
            action = 0.9 * action + 0.1 * random.uniform(*env.model.actuator_ctrlrange.T)
            env.do_simulation(action, env.frame_skip)
            q, v = planar.step(task, q, v, action[None])
            out[row, step] = np.abs(q[0] - env.data.qpos).max()
    return out


def figures(errors: dict[str, np.ndarray], growth: dict[str, np.ndarray]) -> None:
    """Draw both distributions beside docs/physics.md."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    for name, error in errors.items():
        left.plot(np.sort(np.maximum(error, 1e-18)), np.linspace(0, 1, len(error)), label=name)
    left.set(xscale="log", xlabel="relative error after one environment step", ylabel="share of states below")
    left.axvline(1e-9, color="grey", linestyle=":")
    for name, distance in growth.items():
        right.plot(np.maximum(np.nanmedian(distance, axis=0), 1e-18), label=name)
    right.set(yscale="log", xlabel="environment step", ylabel="distance to MuJoCo (median of 8)")
    left.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "physics.svg")


def main() -> None:
    """Measure everything and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=100_000)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--population", type=int, default=768)
    parser.add_argument("--parts", nargs="+", choices=["agreement", "speed"], default=["agreement", "speed"])
    options = parser.parse_args()
    if "agreement" in options.parts:
        steps, errors = single_steps(options.states)
        episodes, growth = whole_episodes(options.episodes, options.threads)
        figures(errors, growth)
        fill_in("physics.md", {"steps": steps, "episodes": episodes})
    if "speed" in options.parts:
        fill_in("physics.md", {"speed": speed_table(options.threads, options.population)})


def speed_table(n_threads: int, n_rows: int) -> str:
    """The engines' speed, as `evergait bench` measures it."""
    tasks = [Task(name) for name in TASKS[:4]]
    lines = ["| task | engine | threads | environment steps per second | to mujoco |", "|---|---|---|---|---|"]
    for s in measure(tasks, ["planar", "mujoco", "python", "envpool"], n_threads, n_rows, 2):
        lines.append(
            f"| {s.task} | {s.engine} | {s.threads} | {s.env_steps_per_s:,.0f} | {s.ratio_to_mujoco or 0:.1f}× |"
        )
        print(lines[-1], flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    main()
