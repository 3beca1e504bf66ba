"""How fast the engines are: one generation of the same candidates on each, in turn, from a policy that survives.

A policy that falls at once would measure resets; so a short run of evolution strategies comes first.
"""

import importlib.util
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from evergait import _native
from evergait.core.arrays import Float32, Float64, Int64
from evergait.core.data import require
from evergait.core.errors import EvergaitError, nearest
from evergait.core.random import PERTURBATION, Noise
from evergait.engines import available, engine_name, get_engine
from evergait.engines.base import Episodes, Outcome
from evergait.engines.gymnasium.episode import perceived
from evergait.es import Adam, centered_ranks
from evergait.policy import Policy, PolicyConfig
from evergait.tasks import Task, Variant, make, spaces
from evergait.tasks.base import apply_to_environment

SIGMA = 0.02
LOOPS = ("python", "envpool")
"""What is measured beside our engines."""

Runner = Callable[[Episodes], Outcome]


@dataclass(frozen=True)
class Speed:
    """One line of a benchmark."""

    task: str
    engine: str
    threads: int
    env_steps_per_s: float
    ratio_to_mujoco: float | None
    """None where mujoco itself was not measured."""


def generation(task: Task, theta: Float32, n_rows: int, index: int, sigma: float = SIGMA) -> Episodes:
    """λ mirrored candidates around θ; every pair has its own initial state."""
    policy, row = Policy.build(PolicyConfig(), [task]), np.arange(n_rows)
    pair, sign = (row // 2).astype(np.uint32), np.where(row % 2, -1, 1).astype(np.float32)
    noise = Noise(0, PERTURBATION, generation=index)
    return Episodes(task, policy.network(task), theta, sigma, noise, pair, sign, (pair + index).astype(np.uint32))


def survivor(task: Task, n_threads: int, n_generations: int = 60, n_pairs: int = 48) -> Float32:
    """A policy that lasts, by a minute or less of evolution strategies (healthy bonus included)."""
    policy = Policy.build(PolicyConfig(), [task])
    theta, adam = policy.initial(0), Adam(learning_rate=0.02)
    engine, state = get_engine(engine_name("auto", task)), adam.start(policy.n_parameters)
    touched, pairs = np.ones(policy.n_parameters, bool), np.arange(n_pairs, dtype=np.uint32)
    for index in range(n_generations):
        request = generation(task, theta, 2 * n_pairs, index, sigma=0.05)
        outcome = engine.run(request, n_threads)
        if outcome.lengths.mean() > 0.95 * spaces(task).n_steps:
            break
        utility = centered_ranks(np.nan_to_num(outcome.returns, nan=-np.inf))
        gradient = np.zeros(policy.n_parameters)
        weights = (utility[0::2] - utility[1::2]) / (2 * n_pairs * 0.05)
        _native.accumulate_noise(request.noise, pairs, weights, 0, len(gradient), gradient, n_threads)
        theta, state = adam.update(theta, gradient, touched, state)
    return theta


def measure(
    tasks: list[Task],
    engines: list[str],
    n_threads: int,
    n_rows: int,
    n_rounds: int,
    tell: Callable[[str], None] = lambda text: None,
) -> Iterator[Speed]:
    """Time every engine on the same rows, interleaved, the best of all rounds; Python's own loops get fewer rows."""
    _check_names(tasks, engines)
    for task, runs in [(task, _runners(task, engines, n_threads, tell)) for task in tasks]:  # all, before work starts
        theta = survivor(task, n_threads)
        full = generation(task, theta, n_rows, index=1_000_000)
        best: dict[str, float] = {}
        for _ in range(n_rounds):
            for name, run in runs.items():
                share = {"python": 48, "envpool": 12}.get(name, 1)
                request = full.rows(slice(0, max(2 * n_threads, n_rows // share)))
                begin = time.perf_counter()
                n_steps = int(run(request).lengths.sum())
                speed = n_steps / (time.perf_counter() - begin)
                best[name] = max(best.get(name, 0.0), speed)
                tell(f"{task.name}, {name}: {n_steps:,} steps, {speed:,.0f} per second")
        for name, reached in best.items():
            threads = 1 if name == "python" else n_threads
            yield Speed(task.name, name, threads, reached, reached / best["mujoco"] if "mujoco" in best else None)


def _check_names(tasks: list[Task], engines: list[str]) -> None:
    known = ("auto", *available(), *LOOPS)
    require(bool(tasks), "tasks", tasks, "at least one, such as Hopper-v5")
    require(bool(engines), "engines", engines, f"at least one of {', '.join(known)}")
    for name in engines:
        if name not in known:
            raise EvergaitError(f"engines: there is none called {name!r}{nearest(name, known)}")


def _runners(task: Task, engines: list[str], n_threads: int, tell: Callable[[str], None]) -> dict[str, Runner]:
    """How to run a task's rows on each engine; those that refuse it are left out with words, and all cannot be."""
    spaces(task)  # refuses what is not there, and says it shorter than the engines would
    engine_name("auto", task)
    found, reasons = dict[str, Runner](), []
    for name in engines:
        try:
            found[name] = _runner(name, task, n_threads)
        except EvergaitError as error:
            reasons.append(str(error))
            tell(f"{task.name}, {name}: left out: {error}")
    if not found:
        raise EvergaitError(f"engines: none of them can be measured: {'; '.join(reasons)}")
    return found


def _runner(name: str, task: Task, n_threads: int) -> Runner:
    """How to run rows on an engine; raises EvergaitError if it refuses the task."""
    if name == "envpool":
        if task.variant != Variant():
            raise EvergaitError(f"task {task.name!r}: EnvPool knows no variants")
        if importlib.util.find_spec("envpool") is None:
            raise EvergaitError("envpool is not installed")
        return lambda rows: _envpool(rows, n_threads)
    if name == "python":
        return _python_loop
    engine = get_engine(engine_name(name, task))
    return lambda rows: engine.run(rows, n_threads)


def _python_loop(rows: Episodes) -> Outcome:
    """Gymnasium as most people run it: one environment, one core, the policy in NumPy."""
    task, env = rows.task, make(rows.task)
    apply_to_environment(task.variant, env)
    lengths = np.zeros(len(rows), np.int32)
    for row, seed in enumerate(rows.seed.tolist()):
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            if task.variant.observation_noise:
                n = rows.network.n_observations
                observation = perceived(task, observation, seed, int(lengths[row]), n)
            observation, _, terminated, truncated, _ = env.step(_act(rows, np.asarray(observation, np.float32)))
            lengths[row] += 1
            over = terminated or truncated
    env.close()
    return Outcome(np.zeros(len(rows)), lengths, np.zeros(len(rows), bool))


def _envpool(rows: Episodes, n_threads: int, n_steps: int = 250) -> Outcome:
    """EnvPool with as many environments as rows, all at once, and the policy in NumPy for all of them together."""
    import envpool

    n = len(rows)
    pool = envpool.make(rows.task.id, env_type="gymnasium", num_envs=n, num_threads=n_threads, seed=0)
    observation, _ = pool.reset()
    for _ in range(n_steps):
        observation, *_ = pool.step(_act(rows, observation.astype(np.float32)))
    return Outcome(np.zeros(n), np.full(n, n_steps, np.int32), np.zeros(n, bool))


def _act(rows: Episodes, x: Float32) -> Float64 | Int64:
    """Actions of the unperturbed policy for (…, n_observations)."""
    for layer in rows.network.layers:
        weight = rows.theta[layer.weight :][: layer.n_in * layer.n_out].reshape(layer.n_out, layer.n_in)
        x = x @ weight.T + rows.theta[layer.bias :][: layer.n_out]
        x = np.tanh(x) if layer.activation == "tanh" else np.maximum(x, 0) if layer.activation == "relu" else x
    network = rows.network
    if network.discrete:
        chosen: Int64 = np.argmax(x, axis=-1) + network.discrete_start
        return chosen
    return (network.action_middle + x * network.action_half_range).astype(np.float64)
