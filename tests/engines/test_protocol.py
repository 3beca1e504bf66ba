"""One suite for every engine: a row's outcome depends on nothing but the row."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from oracles import replay_in_gymnasium

from evergait.core.errors import EvergaitError
from evergait.engines import Engine, Episodes, Outcome, available, engine_name, make_engine
from evergait.engines.gymnasium.episode import pack, perceived
from evergait.engines.mujoco.engine import MujocoEngine
from evergait.policy.network import act, to_action
from evergait.tasks import Task, make, parse_task
from evergait.tasks.base import apply_to_environment

Make = Callable[..., Episodes]

TASKS = {
    "planar": ["Hopper-v5", "Swimmer-v5"],
    "mujoco": ["Hopper-v5", "Ant-v5", "Pusher-v5", "InvertedDoublePendulum-v5", "Hopper-v5@noisy,heavy,reset_noise=3"],
    "gymnasium": ["CartPole-v1", "Pendulum-v1", "Hopper-v5", "Hopper-v5@noisy,heavy,reset_noise=3"],
}
CASES = [(engine, task) for engine in available() for task in TASKS[engine]]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def case(request: pytest.FixtureRequest) -> Iterator[tuple[Engine, str]]:
    name, task = request.param
    engine = MujocoEngine(n_slots=5) if name == "mujoco" else make_engine(name)
    if engine.refuses(parse_task(task)):
        pytest.skip(engine.refuses(parse_task(task)))
    yield engine, task
    engine.close()


NAMES = ("returns", "lengths", "diverged", "statistics")


def same(a: Outcome, b: Outcome) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name), equal_nan=name == "returns") for name in NAMES)


def test_keeps_the_protocol(case: tuple[Engine, str], episodes: Make) -> None:
    engine, task = case
    assert isinstance(engine, Engine)
    assert engine.name in available()
    assert "no-such-task" in engine.refuses(Task("no-such-task"))
    nothing = engine.run(episodes(task, n_rows=0), 2)
    assert len(nothing.returns) == len(nothing.lengths) == len(nothing.diverged) == 0


def test_rows_do_not_depend_on_order_threads_or_company(case: tuple[Engine, str], episodes: Make) -> None:
    engine, task = case
    asked = episodes(task, n_rows=14, horizon=40, gather_statistics=True)
    outcome = engine.run(asked, 2)
    order = np.random.default_rng(0).permutation(14)
    shuffled = dataclasses.replace(asked, pair=asked.pair[order], sign=asked.sign[order], seed=asked.seed[order])
    other = engine.run(shuffled, 1)
    back = np.argsort(order)
    assert same(outcome, Outcome(*(getattr(other, name)[back] for name in NAMES)))
    parts = [engine.run(asked.rows(slice(low, low + 3)), 3) for low in range(0, 14, 3)]
    assert same(outcome, Outcome.concatenate(parts))


def test_rows_equal_a_slow_loop(case: tuple[Engine, str], episodes: Make) -> None:
    engine, task = case
    asked = episodes(task, n_rows=6, horizon=30, gather_statistics=True)
    outcome = engine.run(asked, 2)
    env = make(asked.task)
    apply_to_environment(asked.task.variant, env)
    slow = Outcome(np.zeros(6), np.zeros(6, np.int32), np.zeros(6, bool), np.zeros_like(outcome.statistics))
    for row, seed in enumerate(asked.seed.tolist()):
        observation, over = env.reset(seed=seed)[0], False
        while not over and slow.lengths[row] < 30:
            seen = perceived(asked.task, observation, seed, int(slow.lengths[row]), len(observation))  # type: ignore[arg-type]
            slow.statistics[row] += seen, seen**2
            action = to_action(asked.network, act(asked.network, pack(asked, row), seen))
            observation, reward, terminated, truncated, _ = env.step(action)
            slow.returns[row] += float(reward)
            slow.lengths[row] += 1
            over = terminated or truncated
    assert (slow.lengths < 30).any() or task not in ("Hopper-v5", "CartPole-v1")  # some end by themselves
    if engine.name == "planar":  # equal to rounding, which grows along an episode
        assert np.allclose(outcome.returns, slow.returns, rtol=1e-5)
    else:
        assert same(outcome, slow)


def test_whole_episodes_equal_the_replay(case: tuple[Engine, str], episodes: Make) -> None:
    engine, task = case
    asked = episodes(task, n_rows=2, sign=np.zeros(2, np.float32))
    outcome = engine.run(asked, 2)
    replays = [replay_in_gymnasium(asked.network, asked.theta, asked.task, seed) for seed in asked.seed.tolist()]
    if engine.name == "planar":
        assert np.allclose(outcome.returns, [total for total, _ in replays], rtol=1e-3)
    else:
        assert list(zip(outcome.returns.tolist(), outcome.lengths.tolist(), strict=True)) == replays


def test_horizon_ends_episodes(case: tuple[Engine, str], episodes: Make) -> None:
    engine, task = case
    assert set(engine.run(episodes(task, horizon=3), 2).lengths.tolist()) == {3}


def test_no_noise_is_the_unperturbed_policy(case: tuple[Engine, str], episodes: Make) -> None:
    engine, task = case
    plain = engine.run(episodes(task, n_rows=4, sign=np.zeros(4, np.float32), horizon=20), 2)
    assert same(plain, engine.run(episodes(task, n_rows=4, sigma=0.0, horizon=20), 2))
    assert not same(plain, engine.run(episodes(task, n_rows=4, horizon=20), 2))


def test_healthy_bonus_scales_the_healthy_reward_only(case: tuple[Engine, str], episodes: Make) -> None:
    engine, task = case
    full, none, plain = (
        engine.run(episodes(task, n_rows=4, horizon=3, **bonus), 2)
        for bonus in ({"healthy_bonus": 1.0}, {"healthy_bonus": 0.0}, {})
    )
    assert same(full, plain)
    assert np.array_equal(full.lengths, none.lengths)
    per_step = {"Hopper": 1.0, "Ant": 1.0, "InvertedDoublePendulum": 10.0}.get(task.partition("-")[0], 0.0)
    assert np.allclose(full.returns - none.returns, 3 * per_step)


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_wild_weights_are_flagged_and_nothing_else(
    case: tuple[Engine, str], episodes: Make, poison: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, task = case
    monkeypatch.chdir(tmp_path)
    asked = episodes(task, n_rows=3, sigma=0.0)
    theta = asked.theta.copy()
    theta[asked.network.layers[-1].bias] = np.nan if np.isnan(poison) else poison
    theta[asked.network.layers[0].bias :] = poison
    outcome = engine.run(dataclasses.replace(asked, theta=theta), 2)
    assert outcome.diverged.all() or np.isinf(poison)
    assert np.isnan(outcome.returns[outcome.diverged]).all()
    assert np.isfinite(outcome.returns[~outcome.diverged]).all()
    assert not engine.run(asked, 2).diverged.any()
    assert list(tmp_path.iterdir()) == []  # no MUJOCO_LOG.TXT


# Engines by name.


def test_names_make_engines() -> None:
    for name in available():
        assert make_engine(name).name == name
    with pytest.raises(EvergaitError, match="did you mean 'mujoco'"):
        make_engine("mujocco")


def test_auto_takes_the_first_that_can() -> None:
    assert engine_name("auto", Task("Humanoid-v5")) == "mujoco"
    assert engine_name("auto", Task("Hopper-v5")) in ("planar", "mujoco")
    assert engine_name("auto", Task("CartPole-v1")) == "gymnasium"
    assert engine_name("gymnasium", Task("Hopper-v5")) == "gymnasium"


def test_nobody_simulates_what_nobody_can() -> None:
    with pytest.raises(EvergaitError, match="the mujoco engine does not know 'CartPole-v1'"):
        engine_name("mujoco", Task("CartPole-v1"))
    with pytest.raises(EvergaitError, match="cannot vary mass"):
        engine_name("auto", parse_task("CartPole-v1@heavy"))
