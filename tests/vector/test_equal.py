"""Every step equals that of as many environments of Gymnasium's own: observations, rewards, endings, infos, starts."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import evergait.vector
from evergait.core.arrays import Array
from evergait.core.errors import EvergaitError
from evergait.engines.mujoco.tasks import RULES
from evergait.engines.planar.robot import TASKS, compile_environment
from evergait.policy.network import Acting
from evergait.tasks import Task
from evergait.tasks.quiet import quiet
from evergait.vector import Variant, make
from evergait.vector.planar import PlanarRobots
from evergait.vector.robots import Generators, normal_table

MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)
TINY = 2e-10
LIMIT = 40  # steps: so that there are truncations too
MEASURED = Path(__file__).parents[2] / "docs" / "vector.json"


@dataclass
class Agreement:
    """What two that were stepped side by side have shown."""

    steps: int = 0
    terminated: int = 0
    truncated: int = 0
    largest: float = 0.0
    """Difference of two numbers, relative to the largest entry where that is above 1."""
    where: str = ""

    def compare(self, mine: Any, right: Any, where: str) -> None:
        pairs = list(numbers(mine)), list(numbers(right))
        assert [name for name, _ in pairs[0]] == [name for name, _ in pairs[1]], where
        for (name, one), (_, other) in zip(*pairs, strict=True):
            assert one.dtype == other.dtype, (where, name)
            if one.dtype == bool:
                assert (one == other).all(), (where, name)
                continue
            apart = np.abs(one - other).max(initial=0.0) / max(1.0, np.abs(other).max(initial=0.0))
            assert np.isfinite(apart), (where, name)
            if apart > self.largest:
                self.largest, self.where = float(apart), f"{where}{name}"

    def step(self, mine: Any, right: Any) -> None:
        self.compare(mine, right, f"step {self.steps}")
        _, rewards, terminated, truncated, _ = mine
        self.steps += len(rewards)
        self.terminated += int(terminated.sum())
        self.truncated += int(truncated.sum())


def theirs(identifier: str, n: int, mode: AutoresetMode, **options: Any) -> Any:
    with quiet():
        return SyncVectorEnv([lambda: gymnasium.make(identifier, **options)] * n, autoreset_mode=mode)


def numbers(data: Any, name: str = "") -> Iterator[tuple[str, Array]]:
    """Every array in what a step returns, by where it is."""
    if isinstance(data, dict):
        for key in sorted(data):
            yield from numbers(data[key], f"{name}.{key}")
    elif isinstance(data, tuple):
        for i, part in enumerate(data):
            yield from numbers(part, f"{name}[{i}]")
    elif data.dtype == object:
        for i, part in enumerate(data):
            if part is not None:
                yield from numbers(part, f"{name}[{i}]")
    else:
        yield name, data


def follow(identifier: str, mode: AutoresetMode, n_steps: int, n: int, limit: int, **options: Any) -> Agreement:
    """Step both side by side. Robots are chaotic, so Gymnasium's are put where ours are before every step."""
    ours = evergait.vector.make(identifier, n, autoreset_mode=mode, max_episode_steps=limit, engine="planar", **options)
    bounds: Any = ours.action_space
    reference = theirs(identifier, n, mode, max_episode_steps=limit, **options)
    for env in reference.envs:
        env.unwrapped.model.opt.tolerance = 1e-15  # at its own, MuJoCo's solver stops at 1e-8
    assert isinstance(ours.robots, PlanarRobots)
    random = np.random.default_rng(1)
    scale = random.uniform(0.1, 1.2, (n, 1))  # beyond the bounds too, which only the control cost sees
    agreement = Agreement()
    agreement.compare(ours.reset(seed=3), reference.reset(seed=3), "reset")
    while agreement.steps < n_steps:
        for i, env in enumerate(reference.envs):
            env.unwrapped.data.qpos[:] = ours.robots.arrays.position[i]
            env.unwrapped.data.qvel[:] = ours.robots.arrays.velocity[i]
        action = (random.uniform(-1, 1, ours.action_space.shape) * scale * bounds.high).astype(np.float32)
        agreement.step(ours.step(action), reference.step(action))
    assert agreement.largest < TINY, agreement
    return agreement


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("identifier", sorted(TASKS))
def test_planar_robots_equal_gymnasium_to_rounding(identifier: str, mode: AutoresetMode) -> None:
    follow(identifier, mode, n_steps=1000, n=7, limit=LIMIT)


@pytest.mark.parametrize(
    ("identifier", "options"),
    [
        ("Walker2d-v5", {"terminate_when_unhealthy": False, "exclude_current_positions_from_observation": False}),
        ("Hopper-v5", {"healthy_reward": 3.0, "ctrl_cost_weight": 0.5, "healthy_z_range": (1.0, 1.3)}),
        ("Swimmer-v5", {"frame_skip": 2, "exclude_current_positions_from_observation": False}),
        ("HalfCheetah-v5", {"forward_reward_weight": 2.0, "reset_noise_scale": 0.3}),
    ],
)
def test_options_of_the_environment_are_followed(identifier: str, options: dict[str, Any]) -> None:
    follow(identifier, AutoresetMode.NEXT_STEP, n_steps=300, n=5, limit=LIMIT, **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("identifier", sorted(RULES))
def test_the_mujoco_engine_equals_gymnasium_bit_for_bit(identifier: str, mode: AutoresetMode) -> None:
    match(identifier, mode, n_steps=300, n=5, limit=LIMIT)


def match(identifier: str, mode: AutoresetMode, n_steps: int, n: int, limit: int) -> Agreement:
    """Step both side by side, from the same seeds on, and never touch them."""
    ours = evergait.vector.make(identifier, n, autoreset_mode=mode, max_episode_steps=limit, engine="mujoco")
    bounds: Any = ours.action_space
    reference = theirs(identifier, n, mode, max_episode_steps=limit)
    random, agreement = np.random.default_rng(1), Agreement()
    agreement.compare(ours.reset(seed=3), reference.reset(seed=3), "reset")
    while agreement.steps < n_steps:
        action = random.uniform(-1, 1, ours.action_space.shape).astype(np.float32)
        action *= bounds.high
        agreement.step(ours.step(action), reference.step(action))
        assert agreement.largest == 0.0, agreement
    return agreement


@pytest.mark.agree
@pytest.mark.parametrize("identifier", sorted(RULES))
def test_a_million_steps(identifier: str) -> None:
    """Half of them in each autoreset mode; docs/vector.md shows what is recorded here."""
    record(identifier, [])
    check = follow if identifier in TASKS else match
    record(identifier, [check(identifier, mode, n_steps=500_000, n=16, limit=1000) for mode in MODES])


def record(identifier: str, agreements: list[Agreement]) -> None:
    measured = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    proof = measured.setdefault("proof", {})
    proof.pop(identifier, None)
    if agreements:
        counts = {name: sum(getattr(one, name) for one in agreements) for name in ("steps", "terminated", "truncated")}
        engine = "planar" if identifier in TASKS else "mujoco"
        proof[identifier] = {"engine": engine, **counts, "largest": max(one.largest for one in agreements)}
    measured["versions"] = {"gymnasium": gymnasium.__version__, "mujoco": mujoco.__version__}
    MEASURED.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")


def test_an_episode_has_the_return_that_the_engine_gives_it() -> None:
    network = evergait.vector.policy("Walker2d-v5@noisy", (8,))
    theta = np.random.default_rng(0).normal(0, 0.4, evergait.vector.n_parameters(network)).astype(np.float32)
    right = evergait.vector.rollout("Walker2d-v5@noisy", network, theta[np.newaxis], [11, 12, 13])
    env, act = make("Walker2d-v5@noisy", 3), Acting.of(network, theta)
    observations, _ = env.reset(seed=11)
    returns, alive = np.zeros(3), np.ones(3, bool)
    while alive.any():
        actions = np.array([act(row) for row in observations])
        observations, rewards, terminated, truncated, _ = env.step(actions)
        returns += np.where(alive, rewards, 0.0)
        alive &= ~(terminated | truncated)
    assert returns.tolist() == right.returns[0].tolist()


PENDULUM = (Path(gymnasium.__file__).parent / "envs/mujoco/assets/inverted_double_pendulum.xml").read_text()
CART, TIP = '<geom name="cart"', '<site name="tip" pos="0 0 .6" size="0.01 0.01"/>'
BUMP = '<geom type="sphere" size=".1" contype="1" conaffinity="1"'


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({CART: f"{BUMP}/>{CART}", '<geom name="rail"': f'{BUMP} pos="-.19 0 0"/><geom name="rail"'}, "may touch"),
        ({CART: f'<site pos="0 0 0"/>{CART}'}, "its first site, the tip, must be on the body of the last joint"),
        ({TIP: "", '<body name="pole2"': f'{TIP}<body name="pole2"'}, "must be on the body of the last joint"),
        ({CART: f'<body><joint axis="0 1 0"/><geom size=".1"/></body>{CART}'}, "must be a chain of at least three"),
        ({'axis="0 1 0"': 'axis="1 0 0"', 'axis="1 0 0" limited': 'axis="0 1 0" limited'}, "in the plane of x and z"),
    ],
)
def test_a_double_pendulum_of_ones_own_fits_the_rules_or_is_refused(
    changes: dict[str, str], reason: str, tmp_path: Path
) -> None:
    text = PENDULUM
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "own.xml").write_text(text)

    def made(task: Task) -> object:
        return gymnasium.make(task.id, xml_file=str(tmp_path / "own.xml"))

    if not reason:
        assert compile_environment(Task("InvertedDoublePendulum-v5"), made).rules.tip == (0.0, 0.6)
        return
    with pytest.raises(EvergaitError, match=reason):
        compile_environment(Task("InvertedDoublePendulum-v5"), made)


# Native draws are NumPy's, number by number.


def test_the_ziggurat_is_numpys() -> None:
    width, bound = normal_table()
    words = np.random.PCG64(5).random_raw(200_000)
    normals = np.random.Generator(np.random.PCG64(5))
    layer, steps = words & np.uint64(0xFF), words >> np.uint64(9) & np.uint64(2**52 - 1)
    mine = steps * width[layer] * np.where(words >> np.uint64(8) & np.uint64(1), -1.0, 1.0)
    taken = steps < bound[layer]
    first_refused = int(np.argmin(taken))
    assert 0.98 < taken.mean() < 0.999
    assert first_refused > 5
    # Up to the first that only NumPy can draw, each word is one normal; from then on they are out of step.
    assert (normals.standard_normal(first_refused) == mine[:first_refused]).all()
    for row in np.flatnonzero(taken)[:3000]:
        bits = np.random.PCG64(5)
        bits.advance(int(row))
        assert np.random.Generator(bits).standard_normal() == mine[row]


def test_generators_go_on_where_they_stood() -> None:
    ours, right = Generators(2), seeding.np_random(9)[0]
    ours.seed(1, 9)
    for _ in range(3):
        generator = ours.get(1)
        assert generator.uniform(size=4).tolist() == right.uniform(size=4).tolist()
        ours.put(1, generator)
    before = ours.words.copy()
    ours.seed(1, None)
    assert (ours.words == before).all()


def test_thousands_of_resets_draw_what_gymnasium_draws() -> None:
    for identifier in ("HalfCheetah-v5", "InvertedDoublePendulum-v5", "Hopper-v5"):
        factors = 1.0, 0.5, 1.0
        env = make(identifier, 3, variants=[Variant(reset_noise=factor) for factor in factors])
        env.reset(seed=4)
        right: Any = gymnasium.make(identifier).unwrapped
        noise, generators = right._reset_noise_scale, [seeding.np_random(4 + i)[0] for i in range(3)]
        for _ in range(300):
            for i, generator in enumerate(generators):
                right._reset_noise_scale, right.np_random = noise * factors[i], generator
                right.reset_model()
                assert env.robots.arrays.position[i].tolist() == right.data.qpos.tolist()  # type: ignore[attr-defined]
                assert env.robots.arrays.velocity[i].tolist() == right.data.qvel.tolist()  # type: ignore[attr-defined]
            env.reset()
