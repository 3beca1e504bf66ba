"""Does ES forget more or less than a gradient method? PPO and ES with one policy, on the same orders and steps.

Trains what results/gradient.jsonl lacks, a line per phase; docs/methods.md says what was decided before the runs, and
`python scripts/gradient.py` fills in its table and picture. PPO is written in NumPy: for networks this small, a step
took less than half of torch's time on one core.

OPENBLAS_NUM_THREADS=1 python benchmarks/ppo.py --work runs/gradient [--learners ppo es] [--seeds 0 1 2]
"""

import argparse
import itertools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from evergait import vector
from evergait.config import Config, Evaluation
from evergait.core.arrays import Array, Float32
from evergait.es import Adam
from evergait.methods import Naive, Replay
from evergait.policy import Policy, PolicyConfig, Statistics
from evergait.policy.network import Activation, ActiveLayer
from evergait.tasks import Task, parse_stream, parse_task
from evergait.training.run import train

RESULTS = Path(__file__).parent.parent / "results" / "gradient.jsonl"
ORDERS = ("H>S>W", "S>W>H", "W>H>S")
"""Each task is first once, in the middle once and last once."""
TASKS = parse_stream(("H>S>W",))
POLICY = Policy.build(PolicyConfig(activation="tanh", normalise=True), TASKS)
"""Both learners' policy: an input layer per task, 64 shared tanh units, a shared tanh head, normalised observations."""
EVALUATED = list(range(1_000_000, 1_000_050))
"""Seeds of the evaluation episodes, the same for both learners."""


@dataclass(frozen=True)
class PPO:
    """CleanRL's settings for MuJoCo, with more environments, larger minibatches and fewer epochs."""

    n_envs: int = 64
    length: int = 32
    minibatches: int = 8
    epochs: int = 5
    learning_rate: float = 1e-3
    """Falls to 0 over a phase."""
    clip: float = 0.2
    trace: float = 0.95
    """λ of generalised advantages."""
    value_weight: float = 0.5
    gradient_norm: float = 0.5
    discount: float = 0.99


@dataclass
class Network:
    """Dense layers in a flat vector, and the gradient of what is computed with them."""

    layers: tuple[ActiveLayer, ...]
    flat: Float32
    gradient: Float32

    def _parts(self, flat: Float32, layer: ActiveLayer) -> tuple[Float32, Float32]:
        weight = flat[layer.weight : layer.weight + layer.n_out * layer.n_in].reshape(layer.n_out, layer.n_in)
        return weight, flat[layer.bias : layer.bias + layer.n_out]

    def forward(self, x: Float32) -> list[Float32]:
        """What enters each layer, and the output."""
        passed = [x]
        for layer in self.layers:
            weight, bias = self._parts(self.flat, layer)
            x = x @ weight.T + bias
            passed.append(x := np.tanh(x) if layer.activation == "tanh" else x)
        return passed

    def backward(self, passed: list[Float32], change: Float32) -> None:
        """Add to the gradient what a change of the output's loss, (n, n_out), makes of it."""
        for layer, before, after in zip(reversed(self.layers), passed[-2::-1], passed[:0:-1], strict=True):
            change = change * (1 - after * after) if layer.activation == "tanh" else change
            weight, bias = self._parts(self.gradient, layer)
            weight += change.T @ before
            bias += change.sum(0)
            change = change @ self._parts(self.flat, layer)[0]


def dense(sizes: Sequence[int]) -> tuple[ActiveLayer, ...]:
    """Layers with tanh between them, one behind the other."""
    layers, offset = [], 0
    for i, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
        kind: Activation = "linear" if i == len(sizes) - 2 else "tanh"
        layers.append(ActiveLayer(offset, offset + n_in * n_out, n_in, n_out, kind))
        offset += (n_in + 1) * n_out
    return tuple(layers)


def orthogonal(n_in: int, n_out: int, gain: float, random: np.random.Generator) -> Float32:
    """A weight (n_out, n_in) with orthogonal rows or columns, and a zero bias behind it."""
    q, r = np.linalg.qr(random.standard_normal((max(n_in, n_out), min(n_in, n_out))))
    q = q * np.sign(np.diag(r))
    return np.concatenate([gain * (q if n_out >= n_in else q.T).ravel(), np.zeros(n_out)]).astype(np.float32)


def first_theta(random: np.random.Generator) -> Float32:
    """The policy before PPO's first phase: orthogonal layers, a small head."""
    layers = [(known.n_in, known.n_out, 0.01 if name == "head" else 2**0.5) for name, known in POLICY.layers.items()]
    return np.concatenate([orthogonal(*shape, random) for shape in layers])


class Learning:
    """What PPO has of one task besides θ: values, noise, scales of observations and rewards."""

    def __init__(self, task: Task, random: np.random.Generator) -> None:
        sizes = (POLICY.layers[f"input.{task.name}"].n_in, 64, 1)
        shapes = zip(sizes, sizes[1:], (2**0.5, 1.0), strict=False)
        self.task, self.value_layers = task, dense(sizes)
        self.values = np.concatenate([orthogonal(*shape, random) for shape in shapes])
        self.log_std = np.zeros(POLICY.path(task)[-1][1], np.float32)
        self.sums = np.zeros((3, sizes[0]))
        self.reward_sums = np.zeros(3)

    def begin(self, n_envs: int, seed: int) -> None:
        """Environments of its own."""
        self.env = vector.make(self.task.name, n_envs, infos=False)
        self.seen, self.over = self.env.reset(seed=seed)[0], np.zeros(n_envs, bool)
        self.running = np.zeros(n_envs)

    def place(self, theta: tuple[Float32, Float32], own: tuple[Float32, Float32]) -> None:
        """Move into the vectors of a phase, parameters and gradient: θ's, and those of its own."""
        n = len(self.values)
        own[0][:n], own[0][n:] = self.values, self.log_std
        self.actor = Network(POLICY.network(self.task).layers, *theta)
        self.critic = Network(self.value_layers, own[0][:n], own[1][:n])
        self.values, self.log_std, self.log_std_gradient = own[0][:n], own[0][n:], own[1][n:]

    def collect(self, settings: PPO, random: np.random.Generator, learns_scale: bool) -> dict[str, Float32]:
        """Steps of the policy with noise, with advantages and targets; the step after an ending only resets."""
        mean, scale = Statistics({self.task.name: self.sums}).normaliser(self.task)
        shift, stretch = (np.zeros(1), np.ones(1)) if mean is None or scale is None else (mean, scale)
        std, n, gamma = np.exp(self.log_std), len(self.over), settings.discount
        draws = random.standard_normal((settings.length, n, len(std)), np.float32)
        rows: list[tuple[Array, ...]] = []
        for draw in draws:
            x = ((self.seen - shift) * stretch).astype(np.float32)
            action = self.actor.forward(x)[-1] + std * draw
            after, reward, terminated, truncated, _ = self.env.step(np.clip(action, -1, 1))
            self.running = self.running * gamma * ~self.over + reward
            rows.append((x, action, reward, terminated, terminated | truncated, ~self.over, self.seen, self.running))
            self.seen, self.over = after, terminated | truncated
        x, action, reward, terminated, over, real, plain, discounted = map(np.stack, zip(*rows, strict=True))
        if learns_scale:
            self.sums += _sums(plain[real])
        self.reward_sums += _sums(discounted[real])
        count, total, squares = self.reward_sums
        reward = np.clip(reward / np.sqrt(squares / count - (total / count) ** 2 + 1e-8), -10, 10)
        last = ((self.seen - shift) * stretch).astype(np.float32)
        values = self.critic.forward(np.concatenate([*x, last]))[-1].reshape(settings.length + 1, n)
        change = reward + gamma * values[1:] * ~terminated - values[:-1]
        gain, gains = np.zeros(n), np.empty_like(change)
        for t in reversed(range(settings.length)):
            gain = gains[t] = change[t] + gamma * settings.trace * ~over[t] * gain
        log_p = -(draws**2 / 2 + self.log_std).sum(-1)
        found = {"seen": x, "action": action, "log_p": log_p, "gain": gains, "target": gains + values[:-1]}
        return {name: column[real].astype(np.float32) for name, column in found.items()}

    def loss(self, part: Mapping[str, Float32], settings: PPO, weight: float = 1.0) -> float:
        """PPO's clipped objective and the error of values; `weight` times its gradient is added up."""
        n = len(part["gain"])
        passed, valued = self.actor.forward(part["seen"]), self.critic.forward(part["seen"])
        std = np.exp(self.log_std)
        noise = (part["action"] - passed[-1]) / std
        ratio = np.exp(-(noise**2 / 2 + self.log_std).sum(-1) - part["log_p"])
        gain = (part["gain"] - part["gain"].mean()) / (part["gain"].std() + 1e-8)
        plain, clipped = ratio * gain, np.clip(ratio, 1 - settings.clip, 1 + settings.clip) * gain
        wrong = valued[-1][:, 0] - part["target"]
        by_log_p = (-weight / n * plain * (plain <= clipped))[:, None]
        self.actor.backward(passed, by_log_p * noise / std)
        self.log_std_gradient += (by_log_p * (noise**2 - 1)).sum(0)
        self.critic.backward(valued, (2 * weight * settings.value_weight / n * wrong)[:, None])
        return float(settings.value_weight * (wrong**2).mean() - np.minimum(plain, clipped).mean())


def _sums(values: Array) -> Array:
    """Count, sum and sum of squares over rows."""
    return np.array([np.full(values.shape[1:], len(values)), values.sum(0), (values**2).sum(0)])


@dataclass
class Learner:
    """PPO on a stream: θ, and what it has of each task."""

    theta: Float32
    learnt: dict[str, Learning] = field(default_factory=dict)

    def phase(self, task: Task, replay: bool, n_steps: int, settings: PPO, seed: int) -> dict[str, int]:
        """Learn one task; with replay, half of the environments go to earlier ones. Returns each task's steps."""
        random = np.random.default_rng((seed, len(self.learnt)))
        old = list(self.learnt.values()) if replay else []
        new = self.learnt[task.name] = Learning(task, random)
        n_old = settings.n_envs // 2 if old else 0
        shares = {new: settings.n_envs - n_old} | {one: n_old // len(old) for one in old}
        flat = np.empty(len(self.theta) + sum(len(one.values) + len(one.log_std) for one in shares), np.float32)
        gradient, start = np.zeros_like(flat), len(self.theta)
        flat[:start] = self.theta
        for one, share in shares.items():
            end = start + len(one.values) + len(one.log_std)
            one.place((flat[: len(self.theta)], gradient[: len(self.theta)]), (flat[start:end], gradient[start:end]))
            one.begin(share, int(random.integers(1_000_000 - settings.n_envs)))
            start = end
        first, second, n_updates = np.zeros_like(flat), np.zeros_like(flat), 0
        steps = dict.fromkeys((one.task.name for one in shares), 0)
        while (done := sum(steps.values())) < n_steps:
            rate = settings.learning_rate * (1 - done / n_steps)
            batches = {one: one.collect(settings, random, one is new) for one in shares}
            for one, batch in batches.items():
                steps[one.task.name] += len(batch["gain"])
            for _ in range(settings.epochs):
                mixed = {one: random.permutation(len(batch["gain"])) for one, batch in batches.items()}
                chunks = {one: np.array_split(rows, settings.minibatches) for one, rows in mixed.items()}
                for k in range(settings.minibatches):
                    gradient[:] = 0
                    for one, share in shares.items():
                        part = {name: column[chunks[one][k]] for name, column in batches[one].items()}
                        one.loss(part, settings, share / settings.n_envs)
                    norm = float(np.sqrt(gradient @ gradient))
                    gradient *= min(1.0, settings.gradient_norm / (norm + 1e-6))
                    n_updates += 1  # Adam, Kingma & Ba 2015
                    first += 0.1 * (gradient - first)
                    second += 0.001 * (gradient * gradient - second)
                    unbiased = np.sqrt(second / (1 - 0.999**n_updates)) + 1e-5
                    flat -= rate / (1 - 0.9**n_updates) * first / unbiased
        self.theta = flat[: len(self.theta)].copy()
        return steps

    def statistics(self) -> Statistics:
        """Of observations, as evergait has them."""
        return Statistics({**Statistics.empty(TASKS).sums, **{name: one.sums for name, one in self.learnt.items()}})

    def save(self, path: Path) -> None:
        """Everything that a later phase begins with."""
        kept = {f"{name} {part}": getattr(one, part) for name, one in self.learnt.items() for part in KEPT}
        with path.with_suffix(".part").open("wb") as file:
            np.savez(file, theta=self.theta, **kept)
        path.with_suffix(".part").replace(path)

    @staticmethod
    def load(path: Path) -> "Learner":
        """What was saved."""
        with np.load(path) as kept:
            learner = Learner(kept["theta"])
            for name in dict.fromkeys(key.split()[0] for key in kept if key != "theta"):
                one = learner.learnt[name] = Learning(parse_task(name), np.random.default_rng())
                for part in KEPT:
                    setattr(one, part, kept[f"{name} {part}"])
        return learner


KEPT = ("values", "log_std", "sums", "reward_sums")


def evaluate(theta: Float32, statistics: Statistics) -> dict[str, list[float]]:
    """Returns of the policy without noise, 50 episodes of every task."""
    networks = {task: POLICY.network(task, statistics) for task in TASKS}
    found = {task.name: vector.rollout(task, network, theta[None], EVALUATED) for task, network in networks.items()}
    return {name: rollouts.returns[0].round(1).tolist() for name, rollouts in found.items()}


def random_returns() -> dict[str, list[float]]:
    """Of as many policies before their first phase, an episode each."""
    thetas = np.stack([POLICY.initial(0, index=i) for i in range(len(EVALUATED))])
    found = {task.name: vector.rollout(task, POLICY.network(task), thetas, EVALUATED[:1]) for task in TASKS}
    return {name: rollouts.returns[:, 0].round(1).tolist() for name, rollouts in found.items()}


class Records:
    """results/gradient.jsonl: a line per phase."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.known = {self._key(json.loads(line)) for line in lines}

    @staticmethod
    def _key(record: Mapping[str, object]) -> str:
        return json.dumps([record[name] for name in ("learner", "method", "learnt", "seed")])

    def has(self, **key: object) -> bool:
        """Whether a phase is trained and evaluated."""
        return self._key(key) in self.known

    def add(self, **record: object) -> None:
        """One more phase."""
        self.known.add(self._key(record))
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print({name: value for name, value in record.items() if name != "returns"}, flush=True)


def es_config(order: str, replay: bool, seed: int, n_steps: int) -> Config:
    """PPO's policy and steps, and a population that leaves enough generations; standing pays less than it does PPO."""
    return Config(
        stream=(order,),
        seed=seed,
        steps=n_steps,
        pairs=8,
        policy=POLICY.config,
        healthy_bonus={"Hopper-v5": 0.0, "Walker2d-v5": 0.5},
        optimizer=Adam(learning_rate=0.06, weight_decay=0.003),
        method=Replay(budget=16) if replay else Naive(),
        evaluation=Evaluation(every_steps=n_steps, episodes=1, random_policies=1, snapshots=0),
    )


def run_es(order: str, replay: bool, seed: int, n_steps: int, work: Path, records: Records) -> None:
    """One order under ES; phases that the store has are not trained again."""
    method, started = ("replay" if replay else "naive"), time.process_time()
    folder = work / f"es-{method}-{order.replace('>', '')}-{seed}"
    run = train(es_config(order, replay, seed, n_steps), folder, threads=1, store=work / "es")
    for stage in range(len(run.phases)):
        learnt = [task.name for task in parse_stream((order,))[: stage + 1]]
        key = {"learner": "es", "method": method if stage else "first", "learnt": learnt, "seed": seed}
        if not records.has(**key):
            state, counted = run.state(stage), run.ledgers[stage].total_steps()
            steps = {kind: n for kind, n in counted.items() if n and kind != "evaluation"}
            records.add(**key, steps=steps, returns=evaluate(state.theta, state.statistics))
    print(f"{folder.name}: {time.process_time() - started:.0f} s of CPU", flush=True)


def run_ppo(order: str, replay: bool, seed: int, n_steps: int, work: Path, records: Records) -> None:
    """One order under PPO, phase by phase."""
    learner = Learner(first_theta(np.random.default_rng(seed)))
    for stage, task in enumerate(parse_stream((order,))):
        method = ("replay" if replay else "naive") if stage else "first"
        learnt = [known.name for known in parse_stream((order,))[: stage + 1]]
        key = {"learner": "ppo", "method": method, "learnt": learnt, "seed": seed}
        saved = work / f"ppo-{method}-{order.replace('>', '')[: stage + 1]}-{seed}.npz"
        if records.has(**key) and saved.exists():
            learner = Learner.load(saved)
            continue
        started = time.process_time()
        counted = learner.phase(task, replay, n_steps, PPO(), seed)
        learner.save(saved)
        steps = {"training": counted.pop(task.name), **({"replay": sum(counted.values())} if counted else {})}
        if not records.has(**key):
            records.add(**key, steps=steps, returns=evaluate(learner.theta, learner.statistics()))
        print(f"{saved.name}: {time.process_time() - started:.0f} s of CPU", flush=True)


def main() -> None:
    """Train what is missing, naive first, seed by seed, so that what decides is there first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for what later phases begin with")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--learners", nargs="+", default=["es", "ppo"], choices=["es", "ppo"])
    parser.add_argument("--methods", nargs="+", default=["naive", "replay"], choices=["naive", "replay"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=500_000, help="of every phase, replay included")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    records = Records(args.out)
    if not records.has(learner="random", method="first", learnt=[], seed=0):
        records.add(learner="random", method="first", learnt=[], seed=0, returns=random_returns())
    for method, seed, learner, order in itertools.product(args.methods, args.seeds, args.learners, ORDERS):
        run = run_es if learner == "es" else run_ppo
        run(order, method == "replay", seed, args.steps, args.work, records)


if __name__ == "__main__":
    main()
