"""Small things to train and to simulate."""

from typing import Any

import numpy as np

from evergait.config import Config, Evaluation
from evergait.core.arrays import Array
from evergait.core.data import from_data
from evergait.core.random import PERTURBATION, Noise
from evergait.engines import Episodes
from evergait.methods import Method, Replay
from evergait.policy import Policy, PolicyConfig
from evergait.tasks import parse_task
from evergait.vector import VectorEnvironment


class QuitError(Exception):
    """Raised by observers that end training."""


def tiny_study(generations: int = 4, every: int = 2, engine: str = "auto", replay: bool = True) -> str:
    """The file of a study of two cheap tasks in both orders."""
    text = f"""\
title = "Tiny"
tasks = ["InvertedPendulum-v5", "InvertedDoublePendulum-v5"]
orders = "all"

[base]
pairs = 3
generations = {generations}
horizon = 20
engine = "{engine}"
evaluation = {{ every = {every}, episodes = 2, random_policies = 2, snapshots = 1 }}

[conditions.naive]
method = "naive"
"""
    return text + ('\n[conditions.replay]\nmethod = { name = "replay", budget = 2 }\n' if replay else "")


def tiny_config(**changes: Any) -> Config:
    """Two cheap tasks, a few generations: trains in about a second."""
    settings: dict[str, Any] = {
        "stream": ("InvertedPendulum-v5", "Reacher-v5"),
        "generations": 4,
        "pairs": 6,
        "engine": "mujoco",
        "evaluation": Evaluation(every=2, episodes=2, random_policies=2),
        "method": Replay(budget=4),
    }
    return Config(**{**settings, **changes})


def every_method(**replay: int) -> list[Method]:
    """Every registered method, after the one that it needs, and some of their composites; with options for replay."""
    names = [f"{member.needs}+{name}" if member.needs else name for name, member in Method.members.items()]
    names += ["replay+adaptive+project", "replay+distill", "interval+anchor", "ewc+distill"]
    options = {name: {"replay": replay} if name.startswith("replay+") else {} for name in names} | {"replay": replay}
    return [from_data(Method, {"name": name, **options[name]}, "method") for name in names]


def tiny_request(task: str = "InvertedPendulum-v5", n_rows: int = 50, **changes: Any) -> Episodes:
    """Rows of mirrored candidates of a fresh policy."""
    policy = Policy.build(PolicyConfig(input_width=8, hidden=(8,)), [parse_task(task)])
    rows = np.arange(n_rows, dtype=np.uint32)
    values: dict[str, Any] = {
        "task": parse_task(task),
        "network": policy.network(parse_task(task)),
        "theta": policy.initial(seed=1),
        "sigma": 0.1,
        "noise": Noise(3, PERTURBATION, generation=2),
        "pair": rows // 2,
        "sign": np.where(rows % 2, -1.0, 1.0).astype(np.float32),
        "seed": 100 + rows,
        **changes,
    }
    return Episodes(**values)


def play(env: VectorEnvironment, n_steps: int, seed: int | None = 5) -> list[Array]:
    """Observations, rewards and endings of random actions."""
    random = np.random.default_rng(2)
    seen = [env.reset(seed=seed)[0]] if seed is not None else []
    for _ in range(n_steps):
        actions = random.uniform(-1, 1, (256, *env.single_action_space.shape))[: env.num_envs].astype(np.float32)
        seen.extend(np.array(part, float) for part in env.step(actions)[:4])
    return seen


def equal(one: list[Array], other: list[Array]) -> bool:
    """Whether two plays are the same to the bit."""
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))
