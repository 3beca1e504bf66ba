"""Minutes to a return: the preset fast beside what people would pick instead, each on one core.

The others learn in Gymnasium's own environments: Stable-Baselines3's PPO and SAC and sb3-contrib's linear ARS with the
settings that rl-zoo3 has for these robots, and EvoTorch's PGPE with those of its script for the ClipUp paper. They are
no dependencies; a virtual environment of one's own has them (`pip install stable-baselines3 sb3-contrib evotorch .`).

python benchmarks/minutes.py --learner ppo --task Hopper-v5 --seed 0 [--minutes 30]

The clock counts processor time of training, so that neighbours on the machine matter less. Evaluations, ten episodes
without noise at growing intervals, stop it; those of fast, which are part of its training, do not. At the end the
policy plays fifty fresh episodes. results/minutes.jsonl gets a line for each; `python scripts/rivals.py` draws them.
"""

import argparse
import contextlib
import importlib
import json
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import gymnasium
import numpy as np

import evergait
from evergait import Position
from evergait.store.ledger import Record

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "minutes.jsonl"
TASKS = ("Hopper-v5", "Walker2d-v5")
EPISODES, EPISODE_SEED = 10, 5_000_000
LAST_EPISODES, LAST_SEED = 50, 6_000_000
"""Of the policy that training ends with."""
FIRST, GROWTH = 5.0, 1.25
"""Seconds of training before the first evaluation, and by how much each later one is farther away."""
LEARNERS = ("fast", "ppo", "sac", "ars", "pgpe")

Policy = Callable[[Any], Any]


class TimeUpError(Exception):
    """The time is up."""


@dataclass
class Watch:
    """Counts seconds of training, and writes down what has been learnt when it is time to."""

    learner: str
    task: str
    seed: int
    minutes: float = math.inf
    seconds: float = 0.0
    started: float = 0.0
    due: float = FIRST

    def start(self) -> None:
        """Training begins, or goes on."""
        self.started = time.process_time()

    def now(self) -> float:
        """Seconds of training so far."""
        return self.seconds + time.process_time() - self.started

    def look(self, steps: int, policy: Policy) -> None:
        """Evaluate a policy if it is time to."""
        now = self.now()
        if now >= self.due:
            self.write(now, steps, play(self.task, policy))
            if now >= 60 * self.minutes:
                self.write(now, steps, play(self.task, policy, LAST_EPISODES, LAST_SEED), is_last=True)
                raise TimeUpError
            self.due = min(now * GROWTH, 60 * self.minutes)
            self.seconds = now
            self.start()

    def write(self, seconds: float, steps: int, returns: Sequence[float], *, is_last: bool = False) -> None:
        """One line of the results."""
        line = {"learner": self.learner, "task": self.task, "seed": self.seed, "last": is_last}
        line |= {"seconds": round(seconds, 1), "steps": steps, "returns": [round(float(value), 1) for value in returns]}
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(
            f"{self.learner} {self.task} {self.seed}: {seconds:.0f} s, {steps} steps, {fmean(returns):.0f}", flush=True
        )


def play(task: str, policy: Policy, n_episodes: int = EPISODES, seed: int = EPISODE_SEED) -> list[float]:
    """Returns of a policy in Gymnasium, in the same episodes for all."""
    environment = gymnasium.make(task)
    returns = []
    for episode in range(n_episodes):
        observation, _ = environment.reset(seed=seed + episode)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = environment.step(policy(observation))
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return returns


def run_fast(task: str, seed: int) -> None:
    """Ours: of its own evaluations those that are due by the clock of all; it ends when its steps are used up."""
    watch, steps = Watch("fast", task, seed), 0

    class Times(evergait.Observer):
        def evaluated(self, at: Position, record: Record) -> None:
            nonlocal steps
            now, steps = watch.now(), at.used
            if now >= watch.due:
                watch.write(now, steps, record.returns[task])
                watch.due = now * GROWTH

    then = replace(evergait.preset("fast"), steps=61_440_000, starts=5, starting=0.2)  # as it was for the recorded runs
    config = replace(then, stream=(task,), seed=seed, method=evergait.Naive())
    evaluation = replace(config.evaluation, every_steps=1_024_000, episodes=EPISODES)
    with tempfile.TemporaryDirectory() as folder:
        watch.start()
        run = evergait.train(replace(config, evaluation=evaluation), folder, threads=1, observers=[Times()])
        now = watch.now()
        returns = play(task, lambda seen: run.act(task, seen), LAST_EPISODES, LAST_SEED)
    watch.write(now, steps, returns, is_last=True)


PPO: dict[str, dict[str, Any]] = {
    "Hopper-v5": {
        "n_steps": 512,
        "batch_size": 32,
        "gamma": 0.999,
        "learning_rate": 9.80828e-05,
        "ent_coef": 0.00229519,
        "clip_range": 0.2,
        "n_epochs": 5,
        "gae_lambda": 0.99,
        "max_grad_norm": 0.7,
        "vf_coef": 0.835671,
        "policy_kwargs": {"log_std_init": -2, "ortho_init": False, "net_arch": {"pi": [256, 256], "vf": [256, 256]}},
    },
    "Walker2d-v5": {
        "n_steps": 512,
        "batch_size": 32,
        "gamma": 0.99,
        "learning_rate": 5.05041e-05,
        "ent_coef": 0.000585045,
        "clip_range": 0.1,
        "n_epochs": 20,
        "gae_lambda": 0.95,
        "max_grad_norm": 1.0,
        "vf_coef": 0.871923,
    },
}
ARS: dict[str, dict[str, Any]] = {
    "Hopper-v5": {"learning_rate": 0.01, "delta_std": 0.025, "n_delta": 8, "n_top": 4, "alive_bonus_offset": -1},
    "Walker2d-v5": {"learning_rate": 0.03, "delta_std": 0.025, "n_delta": 40, "n_top": 30, "alive_bonus_offset": -1},
}
"""PPO's, ARS's and SAC's settings are rl-zoo3's for version 3 of the tasks."""


def run_baselines(learner: str, task: str, seed: int, minutes: float) -> None:
    """One of Stable-Baselines3's, in one environment, as rl-zoo3 has it."""
    vec_env = importlib.import_module("stable_baselines3.common.vec_env")
    callbacks = importlib.import_module("stable_baselines3.common.callbacks")
    make = importlib.import_module("stable_baselines3.common.env_util").make_vec_env
    environment = make(task, n_envs=1, seed=seed)
    if learner != "sac":
        gamma = PPO[task]["gamma"] if learner == "ppo" else 0.99
        environment = vec_env.VecNormalize(environment, norm_reward=learner == "ppo", gamma=gamma)
    watch = Watch(learner, task, seed, minutes)

    def policy(observation: Any) -> Any:
        seen = environment.normalize_obs(observation) if learner != "sac" else observation
        return model.predict(seen, deterministic=True)[0]

    class Look(callbacks.BaseCallback):  # type: ignore[misc,name-defined]
        def _on_step(self) -> bool:
            watch.look(self.model.num_timesteps, policy)
            return True

    if learner == "ars":
        ars = importlib.import_module("sb3_contrib").ARS
        model = ars("LinearPolicy", environment, seed=seed, device="cpu", **ARS[task])
    else:
        library = importlib.import_module("stable_baselines3")
        settings: dict[str, Any] = PPO[task] if learner == "ppo" else {"learning_starts": 10_000}
        if "policy_kwargs" in settings:
            relu = importlib.import_module("torch.nn").ReLU
            settings = {**settings, "policy_kwargs": {**settings["policy_kwargs"], "activation_fn": relu}}
        kind = library.PPO if learner == "ppo" else library.SAC
        model = kind("MlpPolicy", environment, seed=seed, device="cpu", **settings)
    watch.start()
    model.learn(10**10, callback=Look())


def run_pgpe(task: str, seed: int, minutes: float) -> None:
    """EvoTorch's PGPE with ClipUp and a linear policy, as its script has it for Walker2d."""
    evotorch = importlib.import_module("evotorch")
    neuro = importlib.import_module("evotorch.neuroevolution")
    algorithms = importlib.import_module("evotorch.algorithms")
    torch = importlib.import_module("torch")
    evotorch.tools.misc.set_default_logger_config(logger_level=40)
    problem = neuro.GymNE(
        env=task,
        network="Linear(obs_length, act_length)",
        observation_normalization=True,
        decrease_rewards_by=1.0,
        num_actors=1,
    )
    torch.manual_seed(seed)
    speed, population = 0.015, 100
    searcher = algorithms.PGPE(
        problem,
        popsize=population,
        center_learning_rate=0.75 * speed,
        stdev_learning_rate=0.1,
        stdev_max_change=0.2,
        optimizer="clipup",
        optimizer_config={"max_speed": speed, "momentum": 0.9},
        radius_init=15 * speed,
        num_interactions=int(0.75 * 1000 * population),
        popsize_max=800,
    )
    watch = Watch("pgpe", task, seed, minutes)
    watch.start()
    while True:
        searcher.step()
        network = problem.to_policy(searcher.status["center"])

        def policy(observation: Any, network: Any = network) -> Any:
            with torch.no_grad():
                return np.clip(network(torch.as_tensor(observation, dtype=torch.float32)).numpy(), -1, 1)

        watch.look(int(searcher.status["total_interaction_count"]), policy)


def main() -> None:
    """Run one learner."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learner", choices=LEARNERS, required=True)
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=30.0)
    args = parser.parse_args()
    if args.learner == "fast":
        run_fast(args.task, args.seed)
        return
    importlib.import_module("torch").set_num_threads(1)
    with contextlib.suppress(TimeUpError):
        if args.learner == "pgpe":
            run_pgpe(args.task, args.seed, args.minutes)
        else:
            run_baselines(args.learner, args.task, args.seed, args.minutes)


if __name__ == "__main__":
    main()
