"""Wall time and return of the examples on evergait's robots and on Gymnasium's own, in turns, into docs/vector.json.

Those that search with `vector.rollout` meet Gymnasium by having it replaced: the same algorithm, episode by episode in
one environment. Every run is a process of its own, and says itself how long it took without its imports.

python benchmarks/vector_examples.py [--seeds 3] [--only vector_sb3 ...]
"""

import argparse
import functools
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from evergait import vector
from evergait.policy import Network
from evergait.policy.network import Acting
from evergait.tasks.quiet import quiet

ROOT = Path(__file__).parent.parent
EXAMPLES: dict[str, tuple[str, str]] = {
    "vector_sb3": ("--steps 20480 --envs 64", "Walker2d, 64 environments, 20,480 steps"),
    "vector_ppo": ("--steps 20480 --envs 64", "Walker2d, 64 environments, 20,480 steps"),
    "vector_evotorch": (
        "--task Hopper-v5 --generations 12 --population 32 --horizon 200",
        "Hopper, 12 generations of 32, two episodes of at most 200 steps each",
    ),
    "vector_map_elites": (
        "--iterations 20 --batch 200 --threads 1",
        "20 generations of 200, the best gait in 300 steps",
    ),
    "vector_cem": ("--generations 6 --population 32 --threads 1", "Hopper, 6 generations of 32, three episodes each"),
}
LAST = re.compile(r"\d+ steps, (?P<seconds>[\d.]+) s: .*return (?P<mean>-?[\d.]+)")


@functools.cache
def environment(task: str) -> Any:
    """Gymnasium's own."""
    with quiet():
        return gymnasium.make(task)


def rollout(
    task: str,
    network: Network,
    thetas: np.ndarray,
    seeds: list[int],
    *,
    horizon: int = 0,
    threads: int = 1,
    trajectories: bool = False,
) -> vector.Rollouts:
    """What `vector.rollout` does, the plain way."""
    env, n, m = environment(task), len(thetas), len(seeds)
    limit = horizon or env.spec.max_episode_steps
    returns, lengths = np.zeros((n, m)), np.zeros((n, m), np.int32)
    positions = np.zeros((n, m, limit + 1, env.unwrapped.model.nq))
    for i, theta in enumerate(np.asarray(thetas, np.float32)):
        act = Acting.of(network, theta)
        for j, seed in enumerate(seeds):
            seen, over = env.reset(seed=int(seed))[0], False
            positions[i, j, 0] = env.unwrapped.data.qpos
            while not over and lengths[i, j] < limit:
                seen, reward, terminated, truncated, _ = env.step(act(seen))
                returns[i, j] += reward
                lengths[i, j] += 1
                positions[i, j, lengths[i, j]] = env.unwrapped.data.qpos
                over = terminated or truncated
    return vector.Rollouts(returns, lengths, np.zeros((n, m), bool), positions if trajectories else None)


def run(name: str, arguments: str, seed: int, on_gymnasium: bool) -> tuple[float, float]:
    """Seconds and return that an example tells in its last line."""
    words = [*arguments.split(), "--seed", str(seed)]
    path = str(ROOT / "examples" / f"{name}.py")
    if not on_gymnasium:
        command = [path, *words]
    elif "rollout" in Path(path).read_text():
        command = [__file__, "--replaced", path, *words]
    else:
        command = [path, *words, "--gymnasium"]
    done = subprocess.run([sys.executable, *command], check=True, capture_output=True, text=True)
    said = list(LAST.finditer(done.stdout))[-1]
    return float(said["seconds"]), float(said["mean"])


def main() -> None:
    """Run them all."""
    if sys.argv[1:2] == ["--replaced"]:
        vector.rollout = rollout  # type: ignore[assignment]
        sys.argv = sys.argv[2:]
        runpy.run_path(sys.argv[0], run_name="__main__")
        return
    from vector import MEASURED, store

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=list(EXAMPLES))
    chosen = parser.parse_args()
    before = (json.loads(MEASURED.read_text()) if MEASURED.exists() else {}).get("use", {"rows": [], "load": []})
    rows = {row["example"]: row for row in before["rows"]}  # examples that are not chosen keep theirs
    load = [*before["load"], os.getloadavg()[0]]
    for name in chosen.only:
        arguments, settings = EXAMPLES[name]
        row: dict[str, Any] = {"example": f"{name}.py", "settings": settings, "evergait": [], "gymnasium": []}
        for seed in range(1, chosen.seeds + 1):
            for kind in ("evergait", "gymnasium"):
                row[kind].append(run(name, arguments, seed, kind == "gymnasium"))
                load.append(os.getloadavg()[0])
            print(row, flush=True)
        rows[row["example"]] = row
        store("use", {"rows": list(rows.values()), "load": [min(load), max(load)], "processors": os.cpu_count()})


if __name__ == "__main__":
    main()
