"""Small trainings, one for each method, optimizer, shaping, option and engine, and the bits that they end with.

python tests/support/golden.py   stores the bits of today in tests/training/golden.json, on purpose
"""

import json
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from small import every_method

from evergait import Config, train
from evergait.config import Evaluation
from evergait.core.data import from_data
from evergait.core.versions import libm_fingerprint
from evergait.es import SHAPINGS, Optimizer
from evergait.methods import Interval, Method, Naive, Replay
from evergait.policy import PolicyConfig

STORED = Path(__file__).parents[1] / "training" / "golden.json"
SMALL = PolicyConfig(input_width=6, hidden=(6,), activation="tanh")
BASE = Config(
    stream=("InvertedPendulum-v5", "InvertedDoublePendulum-v5", "InvertedPendulum-v5@gravity=0.5"),
    generations=4,
    pairs=4,
    sigma=0.5,
    shaping="z-score",  # unlike ranks, it lets every bit of a return through to θ
    horizon=12,
    engine="planar",
    policy=SMALL,
    method=Replay(budget=8),
    evaluation=Evaluation(every=2, episodes=1, random_policies=1, snapshots=0),
)
NAIVE = replace(BASE, method=Naive(), stream=BASE.stream[:2])
BUDGET = Evaluation(every_steps=200, episodes=1, random_policies=1, snapshots=0)
NORMALISED = replace(SMALL, normalise=True)
ROBOTS = ("Walker2d-v5@gravity=0.5,observation_noise=0.1", "HalfCheetah-v5", "Swimmer-v5", "Hopper-v5")

OPTIONS = {
    "adaptive.rate": 1.0,
    "anchor.rate": 0.2,
    "distill.steps": 3,
    "distill.batch": 7,
    "distill.learning_rate": 0.01,
    "distill.collection.observations": 8,
    "distill.collection.episodes": 2,
    "distill.collection.noise": 0.5,
    "ewc.strength": 1.0,
    "ewc.importance": "search",
    "ewc.decay": 0.5,
    "ewc.collection.observations": 8,
    "ewc.collection.episodes": 2,
    "ewc.collection.noise": 0.5,
    "interval.interval": 3,
    "interval.choose": "uniform",
    "multitask.each_generation": "all-tasks",
    "project.follow": "both",
    "replay.budget": 4,
    "replay.budget_is": "per-task",
    "replay.ranks": "per-task",
    "replay.update": "shared",
    "replay.weight": 0.5,
    "replay.average": "tasks",
    "plain.learning_rate": 0.1,
    "plain.weight_decay": 0.1,
    "momentum.learning_rate": 0.1,
    "momentum.weight_decay": 0.1,
    "momentum.momentum": 0.5,
    "adam.learning_rate": 0.1,
    "adam.weight_decay": 0.1,
    "adam.beta1": 0.5,
    "adam.beta2": 0.5,
    "adam.epsilon": 0.1,
    "clipup.learning_rate": 0.05,
    "clipup.weight_decay": 0.1,
    "clipup.momentum": 0.5,
    "clipup.max_speed": 0.1,
}
"""Every option of every method and optimizer, with a value that is not its default."""


def with_option(name: str, value: object) -> Config:
    """A case in which one option of a method or an optimizer has this value."""
    part, *keys = name.split(".")
    for key in reversed(keys):
        value = {key: value}
    assert isinstance(value, dict)
    if part in Optimizer.members:
        return replace(NAIVE, optimizer=from_data(Optimizer, {"name": part, **value}, "optimizer"))
    needed = Method.members[part].needs
    data = {"name": f"{needed}+{part}", needed: {"budget": 64}, part: value} if needed else {"name": part, **value}
    data |= {"budget": 8} if part == "replay" and keys != ["budget"] else {}
    pairs = 32 if needed else BASE.pairs  # or shares of a few pairs are rounded alike
    return replace(BASE, pairs=pairs, method=from_data(Method, data, "method"))


CASES: dict[str, Config] = {
    **{f"method {method.name}": replace(BASE, method=method) for method in every_method(budget=8)},
    "method interval": replace(BASE, method=Interval(2)),
    "interval choose latest": replace(BASE, method=Interval(2, "latest")),
    "replay pairs-per-task": replace(BASE, method=Replay(3, budget_is="pairs-per-task")),
    **{f"option {name}": with_option(name, value) for name, value in OPTIONS.items()},
    **{f"optimizer {name}": replace(NAIVE, optimizer=member()) for name, member in Optimizer.members.items()},
    **{f"shaping {name}": replace(NAIVE, shaping=name) for name in SHAPINGS},  # type: ignore[arg-type]
    "seed": replace(NAIVE, seed=2**63),
    "sigma": replace(NAIVE, sigma=0.3),
    "anneal": replace(NAIVE, anneal=0.1, steps=400, evaluation=BUDGET),
    "starts": replace(NAIVE, starts=2, generations=8),
    "starting": replace(NAIVE, starts=2, generations=8, starting=0.5),
    "steps": replace(NAIVE, steps=400, evaluation=BUDGET),
    "episodes": replace(NAIVE, episodes=2),
    "adaptive_horizon": replace(NAIVE, stream=("Hopper-v5",), horizon=0, adaptive_horizon=True),
    "adaptive_horizon_over": replace(
        BASE, stream=("Hopper-v5", "InvertedPendulum-v5"), horizon=0, adaptive_horizon=True, adaptive_horizon_over="all"
    ),
    "resets": replace(NAIVE, resets="member"),
    "evaluation cut": replace(
        NAIVE, stream=ROBOTS[2:], seed=1, carry="best", evaluation=replace(BASE.evaluation, cut=True)
    ),
    "healthy_bonus": replace(NAIVE, stream=("Hopper-v5",), healthy_bonus={"Hopper-v5": 0.5}),
    "perturb all": replace(BASE, perturb="all"),
    "perturb layers": replace(BASE, perturb="layers", stream=("InvertedPendulum-v5", "Hopper-v5")),
    "carry best": replace(NAIVE, carry="best", seed=1),
    "carry best-population": replace(NAIVE, carry="best-population", seed=3),
    "heads": replace(BASE, policy=replace(SMALL, heads="separate")),
    "normalise": replace(BASE, policy=NORMALISED),
    "replay_updates_statistics": replace(BASE, policy=replace(NORMALISED, replay_updates_statistics=True)),
    "activations": replace(NAIVE, policy=PolicyConfig(6, (6, 6), "relu", "relu", "linear")),
    "robots": replace(NAIVE, method=Interval(2), stream=ROBOTS, generations=2),
    "engine mujoco": replace(BASE, engine="mujoco", seed=2),
    "engine gymnasium": replace(BASE, engine="gymnasium", stream=("CartPole-v1", "InvertedPendulum-v5")),
}
RECORDED = ("distill", "ewc")  # what these keep of a task is recorded in Gymnasium, whatever the engine


def is_planar(name: str) -> bool:
    """Whether no bit comes from MuJoCo, and so from the machine's own sin and cos."""
    return CASES[name].engine == "planar" and not any(part.name in RECORDED for part in CASES[name].method.parts)


def bits(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Case → the name of its last phase, and the digest of its θ."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "phases")  # cases that begin alike share their first phases
        for i, name in enumerate(names):
            run = train(CASES[name], Path(folder, str(i)), store=store, threads=1)
            found[name] = {"phase": run.phases[-1].name, "theta": run.theta_sha256}
            if not is_planar(name):
                found[name]["libm"] = libm_fingerprint()
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["--planar"]:
        print(json.dumps(bits(filter(is_planar, CASES))))
    else:
        STORED.write_text(json.dumps(bits(CASES), indent=1) + "\n")
