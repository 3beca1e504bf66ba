"""Environment steps per second from Python, side by side in one run: fills in the tables of docs/vector.md.

Contestants take turns of a few steps, so that all of them meet the same load of the machine. Actions are random, or
those of a policy that stays upright for a while: walking robots have contacts all the time, falling ones are cheap.
EnvPool is measured if it is installed.

python benchmarks/vector.py [--tasks Walker2d-v5 ...] [--envs 64 1024 4096] [--threads 1 2] [--seconds 3] [--write]
"""

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from pages import fill_in  # noqa: E402

from evergait import _native, vector  # noqa: E402
from evergait.policy.network import Acting  # noqa: E402
from evergait.tasks.quiet import quiet  # noqa: E402

Step = Callable[[np.ndarray], Any]
Act = Callable[[np.ndarray], np.ndarray]
Start = Callable[[], tuple[Step, np.ndarray]]
TURN = 0.15  # seconds


def contestants(task: str, n: int, threads: int) -> dict[str, Start]:
    """Names, and how to begin."""

    def ours(**options: Any) -> tuple[Step, np.ndarray]:
        env = vector.make(task, n, threads=threads, **options)
        return env.step, env.reset(seed=0)[0]

    def theirs(mode: str) -> tuple[Step, np.ndarray]:
        with quiet():
            env = gymnasium.make_vec(task, n, vectorization_mode=mode)
        return env.step, env.reset(seed=0)[0]

    def envpool() -> tuple[Step, np.ndarray]:
        import envpool

        env = envpool.make(task, env_type="gymnasium", num_envs=n, num_threads=threads, seed=0)
        return env.step, env.reset()[0]

    known: dict[str, Start] = {
        "evergait": ours,
        "evergait, no copies or infos": lambda: ours(copy=False, infos=False),
        "evergait on mujoco.batch": lambda: ours(engine="mujoco"),
    }
    if importlib.util.find_spec("envpool"):
        known["EnvPool"] = envpool
    if n <= 64:
        known["SyncVectorEnv"] = lambda: theirs("sync")
        known["AsyncVectorEnv"] = lambda: theirs("async")
    return known


class RandomActions:
    """Uniform in the action space."""

    def __init__(self, task: str, n: int) -> None:
        space: Any = gymnasium.spec(task).make().action_space
        self._all: np.ndarray = (
            np.random.default_rng(0).uniform(space.low, space.high, (20, n, *space.shape)).astype(np.float32)
        )
        self._next = 0

    def __call__(self, seen: np.ndarray) -> np.ndarray:
        """Actions."""
        self._next += 1
        return np.asarray(self._all[self._next % len(self._all)])


class Walking:
    """A linear policy that a short search has found; it acts on what each contestant's robots see."""

    def __init__(self, task: str, n: int) -> None:
        random, self.network = np.random.default_rng(0), vector.policy(task)
        mean, deviation = np.zeros(vector.n_parameters(self.network)), 0.5
        for _ in range(30):
            thetas = mean + deviation * random.standard_normal((128, len(mean)))
            outcome = vector.rollout(task, self.network, thetas, [1, 2], threads=2)
            best = np.argsort(np.nan_to_num(outcome.returns, nan=-1e9).mean(axis=1))[-16:]
            mean, deviation = thetas[best].mean(axis=0), 0.93 * deviation
        self.length = outcome.lengths[best].mean()
        self.packed = np.repeat(Acting.of(self.network, mean.astype(np.float32)).packed, n, axis=0)
        self.actions = np.empty((n, self.network.n_actions), np.float32)

    def __call__(self, seen: np.ndarray) -> np.ndarray:
        """Actions."""
        _native.act(self.network.native, self.packed, np.ascontiguousarray(seen, np.float64), self.actions, 1)
        return self.actions


def measure(starts: dict[str, Start], act: Act, n: int, seconds: float) -> dict[str, float]:
    """Steps per second of each, in turns; what the policy takes does not count."""
    begun = {name: start() for name, start in starts.items()}
    steps = {name: step for name, (step, _) in begun.items()}
    seen = {name: observations for name, (_, observations) in begun.items()}
    spent, n_steps = dict.fromkeys(steps, 0.0), dict.fromkeys(steps, 0)
    while min(spent.values()) < seconds:
        for name, step in steps.items():
            turn = 0.0
            while turn < TURN and spent[name] < seconds:
                actions = act(seen[name])
                begin = time.perf_counter()
                seen[name] = step(actions)[0]
                turn += time.perf_counter() - begin
                n_steps[name] += n
            spent[name] += turn
    return {name: n_steps[name] / spent[name] for name in steps}


def python_share(task: str, n: int) -> float:
    """Share of a step's processor time that is not the native call, with copies and infos."""
    env = vector.make(task, n)
    env.reset(seed=0)
    actions = env.action_space.sample()
    inner: Any = env.robots
    native, inside = inner._native, [0.0]

    class Timed:
        """The native object with a clock."""

        def step(self, *arguments: Any) -> None:
            begin = time.process_time()
            native.step(*arguments)
            inside[0] += time.process_time() - begin

        def begin(self, *arguments: Any) -> None:
            begin = time.process_time()
            native.begin(*arguments)
            inside[0] += time.process_time() - begin

    inner._native = Timed()
    begin = time.process_time()
    for _ in range(max(30, 60_000 // n)):
        env.step(actions)
    return 1.0 - inside[0] / (time.process_time() - begin)


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=["Hopper-v5", "Walker2d-v5", "HalfCheetah-v5"])
    parser.add_argument("--envs", nargs="+", type=int, default=[64, 1024, 4096])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--write", action="store_true", help="into docs/vector.md")
    arguments = parser.parse_args()
    lines = [
        "| task | actions | environments | threads | who | steps/s | evergait is |",
        "|---|---|---|---|---|---|---|",
    ]
    for task in arguments.tasks:
        for n in arguments.envs:
            walking, random = Walking(task, n), RandomActions(task, n)
            for kind, act in (("random", random), (f"trained ({walking.length:.0f} steps)", walking)):
                for threads in arguments.threads:
                    rates = measure(contestants(task, n, threads), act, n, arguments.seconds)
                    for name, rate in rates.items():
                        ratio = "" if name == "evergait" else f"{rates['evergait'] / rate:.1f} ×"
                        lines.append(f"| {task} | {kind} | {n} | {threads} | {name} | {rate:,.0f} | {ratio} |")
                        print(lines[-1], flush=True)
    shares = ", ".join(f"{n}: {python_share('Walker2d-v5', n):.0%}" for n in arguments.envs)
    load = f"Load of the machine while measuring: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors."
    text = "\n".join([*lines, "", f"Share of Python in a step of Walker2d-v5, by environments: {shares}. {load}"])
    print(text.splitlines()[-1])
    if arguments.write:
        fill_in("vector.md", {"speed": text})


if __name__ == "__main__":
    main()
