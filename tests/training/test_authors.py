"""The preset `authors` against a slow, plain oracle: what the authors' code does, in Gymnasium and NumPy alone."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from evergait import Config, train
from evergait.config import Evaluation, preset
from evergait.core.arrays import Float32, Float64
from evergait.core.random import PERTURBATION, RESET, Noise
from evergait.methods import Replay
from evergait.policy import Policy, PolicyConfig
from evergait.tasks import parse_task
from evergait.training.evaluate import evaluation_seeds

STREAM = ("Hopper-v5", "Walker2d-v5", "InvertedDoublePendulum-v5")
# With this seed no two members of a generation are so close that rounding, which falls amplify, could swap their ranks.
GENERATIONS, PAIRS, REPLAYED, SIGMA, RATE, SEED = 3, 6, 4, 0.1, 0.05, 8


def small(**changes: Any) -> Config:
    """The preset with few members and generations, evaluated after every one; a seed of the run's own."""
    authors = preset("authors")
    settings: dict[str, Any] = {
        "stream": STREAM,
        "seed": SEED,
        "generations": GENERATIONS,
        "pairs": PAIRS,
        "engine": "mujoco",
        "method": replace(authors.method, budget=REPLAYED),  # type: ignore[call-arg]
        "evaluation": replace(authors.evaluation, every=1, episodes=2, random_policies=1),
    }
    return replace(authors, **{**settings, **changes})


@dataclass
class Phase:
    """What the oracle saw of one phase."""

    theta: Float32
    carried: Float32
    horizons: list[int] = field(default_factory=list)
    """Where the episodes of each generation were cut, and those of one more."""
    returns: list[list[float]] = field(default_factory=list)
    """Evaluations on the task being learnt."""


class Oracle:
    """One run, member by member."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.environments = {name: gymnasium.make(name) for name in STREAM}

    def own(self, name: str) -> list[slice]:
        """The task's input layer, then what it shares: the hidden layer and the whole head."""
        layers = (self.policy.layers[key] for key in (f"input.{name}", "hidden.0", "head"))
        return [slice(layer.offset, layer.end) for layer in layers]

    def act(self, name: str, theta: Float32, observation: Float64) -> Float32:
        """tanh after every layer; the first outputs of the head are the task's."""
        values = observation.astype(np.float32)
        for part in (f"input.{name}", "hidden.0", "head"):
            layer = self.policy.layers[part]
            weight = theta[layer.offset : layer.bias].reshape(layer.n_out, layer.n_in)
            values = np.tanh(weight @ values + theta[layer.bias : layer.end])
        box = self.environments[name].action_space
        assert isinstance(box, gymnasium.spaces.Box)
        return values[: box.shape[0]] * box.high

    def rollout(self, name: str, theta: Float32, seed: int, limit: int) -> tuple[float, int]:
        """Return and length of one episode; a limit of 0 is none."""
        environment = self.environments[name]
        observation, _ = environment.reset(seed=seed)
        total, length, over = 0.0, 0, False
        while not over:
            observation, reward, terminated, truncated, _ = environment.step(self.act(name, theta, observation))
            total, length = total + float(reward), length + 1
            over = terminated or truncated or length == limit
        return total, length

    def gradient(
        self, name: str, theta: Float32, first: int, n_pairs: int, place: tuple[int, int], limit: int
    ) -> tuple[Float64, list[float], list[int]]:
        """The mean over a task's members of rank × noise / σ, with their returns and lengths."""
        generation, stage = place
        seeds = Noise(SEED, RESET, generation, stage).integers(2 * (first + n_pairs))
        noises, returns, lengths = [], [], []
        for pair in range(first, first + n_pairs):
            drawn = Noise(SEED, PERTURBATION, generation, stage).normals(pair, 0, len(theta))
            noise = np.zeros_like(theta)
            for part in self.own(name):
                noise[part] = drawn[part]
            for sign in (1, -1):
                candidate = theta + np.float32(sign * SIGMA) * noise
                total, length = self.rollout(name, candidate, int(seeds[2 * pair + (sign < 0)]), limit)
                noises.append(sign * noise.astype(np.float64))
                returns.append(total)
                lengths.append(length)
        ranks = np.argsort(np.argsort(returns, kind="stable"), kind="stable") / (len(returns) - 1) - 0.5
        return (ranks[:, None] * np.array(noises)).mean(axis=0) / SIGMA, returns, lengths

    def phase(self, stage: int, theta: Float32) -> Phase:
        """One task after the others of the stream before it."""
        task, earlier = STREAM[stage], STREAM[:stage]
        shared = np.zeros(len(theta))
        for part in self.own(task)[1:]:
            shared[part] = 1
        limit, best = 0, -np.inf
        phase = Phase(theta, theta)
        for generation in range(1, GENERATIONS + 1):
            place = generation, stage
            gradient, returns, lengths = self.gradient(task, theta, 0, PAIRS, place, limit)
            replayed = np.zeros(len(theta))
            for i, old in enumerate(earlier):
                part, _, more = self.gradient(old, theta, PAIRS + i * REPLAYED, REPLAYED, place, 0)  # type: ignore[assignment]
                replayed += part * shared  # type: ignore[operator]
                lengths += more
            if earlier:
                gradient += 1.0 * replayed / len(earlier)
            theta = (theta + RATE * gradient).astype(np.float32)
            if np.mean(returns) > best:
                best, phase.carried = float(np.mean(returns)), theta
            seeds = evaluation_seeds(SEED, parse_task(task), 2)
            phase.returns.append([self.rollout(task, theta, int(seed), limit)[0] for seed in seeds])
            phase.horizons.append(limit)
            limit = int(2 * sum(lengths) / len(lengths))
        phase.theta = theta
        phase.horizons.append(limit)
        return phase


@pytest.fixture(scope="module")
def oracle() -> list[Phase]:
    """All phases."""
    policy = small().build_policy()
    runner, theta, phases = Oracle(policy), policy.initial(SEED), list[Phase]()
    for stage in range(len(STREAM)):
        phases.append(runner.phase(stage, theta))
        theta = phases[-1].carried
    return phases


@pytest.mark.parametrize("engine", ["mujoco", "auto"])
def test_the_preset_does_what_the_authors_code_does(engine: str, oracle: list[Phase], tmp_path: Path) -> None:
    run = train(small(engine=engine), tmp_path / "run", threads=1)
    for stage, phase in enumerate(oracle):
        state, records = run.state(stage), run.ledgers[stage].records
        np.testing.assert_allclose(state.theta, phase.theta, atol=2e-6, rtol=0)
        np.testing.assert_allclose(state.best_theta, phase.carried, atol=2e-6, rtol=0)
        assert [record.horizon for record in records[1:]] == phase.horizons[:-1]
        assert state.horizon == phase.horizons[-1]
        returns = [record.returns[STREAM[stage]] for record in records[1:]]
        np.testing.assert_allclose(returns, phase.returns, rtol=1e-3, atol=1e-3)
    assert any((phase.carried != phase.theta).any() for phase in oracle)  # else carrying the last would do


REPLAY: dict[str, Any] = {
    "budget": REPLAYED,
    "budget_is": "pairs-per-task",
    "ranks": "per-task",
    "update": "shared",
    "average": "tasks",
}
CUT = Evaluation(every=1, episodes=2, random_policies=1, cut=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": PolicyConfig(activation="tanh")},
        {"policy": PolicyConfig(input_activation="tanh")},
        {"resets": "pair"},
        {"perturb": "active"},
        {"carry": "last"},
        {"carry": "best"},
        {"adaptive_horizon_over": "learning"},
        {"adaptive_horizon": False, "adaptive_horizon_over": "learning", "evaluation": replace(CUT, cut=False)},
        {"method": Replay(**{**REPLAY, "budget_is": "per-task"})},
        {"method": Replay(**{**REPLAY, "ranks": "joint"})},
        {"method": Replay(**{**REPLAY, "update": "active"})},
        {"method": Replay(**{**REPLAY, "average": "members"})},
        {"method": Replay(**{**REPLAY, "weight": 0.9})},
    ],
    ids=str,
)
def test_every_point_of_it_shows_in_the_bits(changes: dict[str, Any], oracle: list[Phase], tmp_path: Path) -> None:
    run = train(small(**changes, engine="auto"), tmp_path / "run", threads=1)
    differ = [np.abs(run.state(i).theta - phase.theta).max() > 1e-5 for i, phase in enumerate(oracle)]
    cut = [run.state(i).horizon != phase.horizons[-1] for i, phase in enumerate(oracle)]
    assert any(differ) or any(cut)
