"""Environment steps per second from Python, side by side in one run, into docs/vector.json.

Contestants take turns of a few steps, so that all of them meet the same load of the machine. Actions are random, or
those of a policy that stays upright for a while: walking robots have contacts all the time, falling ones are cheap.
EnvPool and MJX are measured if they are installed; MJX, which compiles for minutes, with 1024 robots and all threads.

python benchmarks/vector.py [--tasks Walker2d-v5 ...] [--envs 64 256 1024 4096] [--threads 1 2] [--seconds 2]
python benchmarks/vector.py --page    writes docs/vector.md from what was stored
"""

import argparse
import functools
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from pages import fill_in  # noqa: E402

from evergait import _native, vector  # noqa: E402
from evergait.engines.mujoco.tasks import RULES  # noqa: E402
from evergait.engines.planar.robot import TASKS  # noqa: E402
from evergait.policy.network import Acting  # noqa: E402
from evergait.tasks.quiet import quiet  # noqa: E402

Step = Callable[[np.ndarray], Any]
Act = Callable[[np.ndarray], np.ndarray]
Start = Callable[[], tuple[Step, np.ndarray]]
TURN = 0.15  # seconds
MEASURED = ROOT / "docs" / "vector.json"
OURS, BARE = "evergait", "evergait, no copies or infos"
MJX = "MJX, physics alone"
ALL = (OURS, BARE, "mujoco.batch", "EnvPool", "SyncVectorEnv", "AsyncVectorEnv", MJX)


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

    def mjx() -> tuple[Step, np.ndarray]:
        """Robots that are never judged and never begin anew."""
        import jax
        from mujoco import mjx

        env: Any = gymnasium.make(task).unwrapped
        env.reset(seed=0)
        model, first = mjx.put_model(env.model), mjx.put_data(env.model, env.data)

        def advance(data: Any, action: Any) -> Any:
            data = data.replace(ctrl=action)
            return jax.lax.fori_loop(0, env.frame_skip, lambda _, at: mjx.step(model, at), data)

        robots, all_of_them = jax.vmap(lambda _: first)(jax.numpy.arange(n)), jax.jit(jax.vmap(advance))

        def step(actions: np.ndarray) -> Any:
            nonlocal robots
            robots = all_of_them(robots, actions)
            return (np.hstack([robots.qpos[:, 1:], np.clip(robots.qvel, -10, 10)]),)

        return step, step(np.zeros((n, env.model.nu), np.float32))[0]

    known: dict[str, Start] = {
        OURS: ours,
        BARE: lambda: ours(copy=False, infos=False),
        "mujoco.batch": lambda: ours(engine="mujoco"),
    }
    if importlib.util.find_spec("envpool"):
        known["EnvPool"] = envpool
    if importlib.util.find_spec("jax") and n == 1024 and threads > 1:
        known[MJX] = mjx
    if n <= 64:
        known["SyncVectorEnv"] = lambda: theirs("sync")
        if threads > 1:  # it has a process for each environment, on all processors
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

    def __init__(self, task: str) -> None:
        random, self.network = np.random.default_rng(0), vector.policy(task)
        mean, deviation = np.zeros(vector.n_parameters(self.network)), 0.5
        for _ in range(30):
            thetas = mean + deviation * random.standard_normal((128, len(mean)))
            outcome = vector.rollout(task, self.network, thetas, [1, 2], threads=2)
            best = np.argsort(np.nan_to_num(outcome.returns, nan=-1e9).mean(axis=1))[-16:]
            mean, deviation = thetas[best].mean(axis=0), 0.93 * deviation
        self.length = outcome.lengths[best].mean()
        self.packed = Acting.of(self.network, mean.astype(np.float32)).packed

    def batch(self, n: int) -> Act:
        """For n robots."""
        packed = np.repeat(self.packed, n, axis=0)
        actions = np.empty((n, self.network.n_actions), np.float32)

        def act(seen: np.ndarray) -> np.ndarray:
            _native.act(self.network.native, packed, np.ascontiguousarray(seen, np.float64), actions, 1)
            return actions

        return act


def measure(starts: dict[str, Start], act: Act, n: int, seconds: float) -> dict[str, list[float]]:
    """Steps per second of each, and per second of this process's processors, in turns; the policy does not count."""
    begun = {name: start() for name, start in starts.items()}
    steps = {name: step for name, (step, _) in begun.items()}
    seen = {name: observations for name, (_, observations) in begun.items()}
    spent, busy, n_steps = dict.fromkeys(steps, 0.0), dict.fromkeys(steps, 0.0), dict.fromkeys(steps, 0)
    while min(spent.values()) < seconds:
        for name, step in steps.items():
            turn = 0.0
            while turn < TURN and spent[name] < seconds:
                actions = act(seen[name])
                begin, processor = time.perf_counter(), time.process_time()
                seen[name] = step(actions)[0]
                turn += time.perf_counter() - begin
                busy[name] += time.process_time() - processor
                n_steps[name] += n
            spent[name] += turn
    return {name: [n_steps[name] / spent[name], n_steps[name] / max(busy[name], 1e-9)] for name in steps}


def contacts(task: str, n: int, act: Act) -> float:
    """How many a robot has on average while it acts."""
    env = vector.make(task, n)
    seen, inner, model = env.reset(seed=0)[0], env.robots, gymnasium.make(task).unwrapped
    data: Any = mujoco.MjData(model.model)  # type: ignore[attr-defined]
    found, looked = 0, 0
    for step in range(200):
        seen = env.step(act(seen))[0]
        for row in range(4) if step % 10 == 0 else ():
            data.qpos[:] = inner.arrays.position[row]  # type: ignore[attr-defined]
            mujoco.mj_forward(model.model, data)  # type: ignore[attr-defined]
            found, looked = found + int(data.ncon), looked + 1
    return found / looked


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


def speed_table(speed: dict[str, Any]) -> str:
    """Markdown of what was measured, one row for each setting."""
    who = [name for name in ALL if any(name in row["rates"] for row in speed["rows"])]
    lines = [
        f"| task, actions | robots | threads | {' | '.join(who)} | × EnvPool | per processor second | × EnvPool |",
        "|---" * (len(who) + 6) + "|",
    ]
    for row in speed["rows"]:
        rates = row["rates"]
        cells = [f"{rates[name][0]:,.0f}" if name in rates else "" for name in who]
        clock, busy = (f"{rates[OURS][k] / rates['EnvPool'][k]:.0f}" if "EnvPool" in rates else "" for k in (0, 1))
        times = [clock, f"{rates[OURS][1]:,.0f}", busy]
        kind = f"{row['task']}, {row['actions']}, {row['contacts']:.1f} contacts"
        lines.append("| " + " | ".join([kind, str(row["envs"]), str(row["threads"]), *cells, *times]) + " |")
    shares = ", ".join(f"{n}: {share:.0%}" for n, share in sorted(speed["python"].items(), key=lambda kv: int(kv[0])))
    told = f"Share of Python in a step of Walker2d-v5 with copies and infos, by environments: {shares}."
    return "\n".join([*lines, "", f"{told} {load_of(speed)}"])


def proof_table(proof: dict[str, Any], versions: dict[str, str]) -> str:
    """Markdown of what the long proof has seen, task by task."""
    lines = ["| task | engine | steps | terminated | truncated | largest difference |", "|---" * 6 + "|"]
    for task, engine in ((task, engine_of(task)) for task in sorted(RULES)):
        if seen := proof.get(task):
            counts = " | ".join(f"{seen[name]:,}" for name in ("steps", "terminated", "truncated"))
            largest = f"{seen['largest']:.1e}" if seen["largest"] else "0"
            lines.append(f"| {task} | {seen['engine']} | {counts} | {largest} |")
        else:
            lines.append(f"| {task} | {engine} | not run | | | |")
    said = ", ".join(f"{name} {version}" for name, version in versions.items())
    return "\n".join([*lines, "", f"Against {said}."])


def engine_of(task: str) -> str:
    """That the proof compares."""
    return "planar" if task in TASKS else "mujoco"


def load_of(measured: dict[str, Any]) -> str:
    """A sentence."""
    low, high = measured["load"]
    return f"Load of the machine while measuring: {low:.0f} to {high:.0f} on {measured['processors']} processors."


def use_table(use: dict[str, Any]) -> str:
    """Markdown of the examples on both kinds of environments."""
    head = "| example | settings | seeds | evergait, s | Gymnasium, s | ratio | return, evergait | return, Gymnasium |"
    lines = [head, "|---" * 8 + "|"]
    for row in use["rows"]:
        ours, theirs = (np.array(row[name], float) for name in ("evergait", "gymnasium"))
        seconds = [np.mean(runs[:, 0]) for runs in (ours, theirs)]
        said = [f"{np.mean(runs[:, 1]):.1f} ± {np.std(runs[:, 1], ddof=1):.1f}" for runs in (ours, theirs)]
        cells = f"{seconds[0]:.1f} | {seconds[1]:.1f} | {seconds[1] / seconds[0]:.1f} | {said[0]} | {said[1]}"
        lines.append(f"| `{row['example']}` | {row['settings']} | {len(ours)} | {cells} |")
    return "\n".join([*lines, "", load_of(use)])


def blocks(measured: dict[str, Any]) -> dict[str, str]:
    """Measured parts of docs/vector.md."""
    return {
        "speed": speed_table(measured["speed"]),
        "proof": proof_table(measured["proof"], measured["versions"]),
        "use": use_table(measured["use"]),
    }


def store(name: str, value: Any) -> None:
    """Keep a measurement beside the others."""
    measured = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    measured[name] = value
    MEASURED.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")


def keep_speed(rows: list[dict[str, Any]], shares: dict[str, float], load: list[float]) -> None:
    """Store rows; those of other settings, measured before, stay."""
    before = (json.loads(MEASURED.read_text()) if MEASURED.exists() else {}).get("speed", {})

    def setting(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["task"], row["envs"], row["actions"], row["threads"]

    new = {setting(row) for row in rows}
    merged = sorted([row for row in before.get("rows", []) if setting(row) not in new] + rows, key=setting)
    met = [*load, *before.get("load", [])]
    told = {"python": {**before.get("python", {}), **shares}, "load": [min(met), max(met)]}
    store("speed", {"rows": merged, **told, "processors": os.cpu_count()})


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=["Walker2d-v5"])
    parser.add_argument("--envs", nargs="+", type=int, default=[64, 256, 1024, 4096])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--page", action="store_true", help="write docs/vector.md from docs/vector.json, and no more")
    arguments = parser.parse_args()
    if arguments.page:
        fill_in("vector.md", blocks(json.loads(MEASURED.read_text())))
        return
    rows, load = [], [os.getloadavg()[0]]
    shares = {str(n): python_share("Walker2d-v5", n) for n in arguments.envs}
    for task in arguments.tasks:
        policy = Walking(task)
        acting: dict[str, Callable[[int], Act]] = {
            "random": functools.partial(RandomActions, task),
            f"trained ({policy.length:.0f} steps)": policy.batch,
        }
        touching = {kind: contacts(task, 64, act(64)) for kind, act in acting.items()}
        for n in arguments.envs:
            for kind in acting:
                act = acting[kind](n)
                for threads in arguments.threads:
                    rates = measure(contestants(task, n, threads), act, n, arguments.seconds)
                    row = {"task": task, "actions": kind, "contacts": touching[kind], "envs": n, "threads": threads}
                    rows.append({**row, "rates": rates})
                    load.append(os.getloadavg()[0])
                    print(rows[-1], flush=True)
                    keep_speed(rows, shares, load)


if __name__ == "__main__":
    main()
