"""What Gymnasium's VectorEnv promises, and what ours promises beyond it."""

import dataclasses
import gc
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers
from small import equal, play

from evergait.core.arrays import Array
from evergait.core.errors import EvergaitError
from evergait.engines.mujoco.tasks import RULES
from evergait.tasks import VARIANTS
from evergait.vector import Variant, VectorEnvironment, make
from evergait.vector.mujoco import MujocoRobots


@pytest.mark.parametrize("identifier", sorted(RULES))
def test_gymnasium_finds_ours_by_its_id(identifier: str) -> None:
    env = gymnasium.make_vec(f"evergait/{identifier}", num_envs=3, threads=2, autoreset_mode="SameStep")
    assert isinstance(env, VectorEnvironment)
    assert env.spec is not None
    assert env.spec.id == f"evergait/{identifier}"
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    single: Any = gymnasium.spec(identifier).make().observation_space
    observations, _ = env.reset(seed=1)
    assert env.single_observation_space == single
    assert env.observation_space.contains(observations)
    assert observations.shape == (3, *single.shape)
    assert env.observation_space.contains(env.step(env.action_space.sample())[0])


class One(gymnasium.Env[Array, Array]):
    """One environment of ours as a single one, for Gymnasium's own checker."""

    def __init__(self, identifier: str) -> None:
        self.env = make(identifier, 1)
        self.observation_space, self.action_space = self.env.single_observation_space, self.env.single_action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        observations, infos = self.env.reset(seed=seed, options=options)
        self.np_random = self.env.np_random[0]
        return observations[0], {name: values[0] for name, values in infos.items()}

    def step(self, action: Array) -> Any:
        observations, rewards, terminated, truncated, infos = self.env.step(action[np.newaxis])
        told = {name: values[0] for name, values in infos.items()}
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), told


@pytest.mark.parametrize("identifier", sorted(RULES))
@pytest.mark.filterwarnings("ignore:.*(infinity|symmetric|spec).*")
def test_gymnasiums_checker_finds_nothing(identifier: str) -> None:
    check_env(One(identifier), skip_render_check=True)


def test_what_gymnasiums_own_tests_ask_of_vector_environments() -> None:
    env = make("Hopper-v5", 4, autoreset_mode="Disabled")
    assert len(set(env.np_random_seed)) == 4
    env.reset(seed=42)
    assert env.np_random_seed == (42, 43, 44, 45)
    env.reset(seed=None)
    assert env.np_random_seed == (42, 43, 44, 45)
    actions = env.action_space.sample()
    assert [len(part) for part in env.step(actions)[:4]] == [4] * 4
    for wrong in (actions[:3], np.concatenate([actions, actions[:1]]), 0):
        with pytest.raises(ValueError, match="actions: their shape is"):
            env.step(wrong)  # type: ignore[arg-type]
    for mask in ([True], [True] * 5, [[True] * 4], [1, 1, 0, 0], [1.0, 1.0, 0.0, 0.0]):
        with pytest.raises(ValueError, match="must be an array of bool"):
            env.reset(options={"reset_mask": np.array(mask)})
    with pytest.raises(ValueError, match="is False everywhere"):
        env.reset(options={"reset_mask": np.zeros(4, bool)})
    for seed in (1.5, -1, [1, 2, -3, 4], "abc", [0, 1]):
        with pytest.raises(ValueError, match="seed: "):
            env.reset(seed=seed)  # type: ignore[arg-type]


def test_wrappers_of_gymnasium_work() -> None:
    env: Any = make("Hopper-v5", 4, max_episode_steps=20)
    env = wrappers.NormalizeReward(wrappers.NormalizeObservation(wrappers.RecordEpisodeStatistics(env)))
    env.reset(seed=1)
    told = [env.step(env.action_space.sample())[4] for _ in range(25)]
    assert any("episode" in infos and infos["episode"]["l"].max() <= 20 for infos in told)


def test_float32_is_float64_rounded() -> None:
    wide, narrow = make("Swimmer-v5", 5), make("Swimmer-v5", 5, dtype="float32")
    assert narrow.observation_space.dtype == np.float32
    seen = wide.reset(seed=1)[0], narrow.reset(seed=1)[0]
    assert seen[1].dtype == np.float32
    assert (seen[0].astype(np.float32) == seen[1]).all()
    action = wide.action_space.sample()
    assert (wide.step(action)[0].astype(np.float32) == narrow.step(action)[0]).all()


def test_without_copies_the_arrays_are_the_same_ones() -> None:
    env = make("Swimmer-v5", 2, copy=False)
    first, _ = env.reset(seed=1)
    assert env.step(env.action_space.sample())[0] is first
    kept, _ = (env := make("Swimmer-v5", 2)).reset(seed=1)
    before = kept.copy()
    env.step(env.action_space.sample())
    assert (kept == before).all()


def test_resets_with_a_mask() -> None:
    env = make("Hopper-v5", 4, autoreset_mode="Disabled", max_episode_steps=3)
    env.reset(seed=1)
    actions = env.action_space.sample()
    for _ in range(3):
        *_, truncated, _ = env.step(actions)
    assert truncated.all()
    with pytest.raises(EvergaitError, match=r"environments \[0, 1, 2, 3\] have ended"):
        env.step(actions)
    before = env.robots.observations.copy()
    mask = np.array([True, False, True, False])
    observations, infos = env.reset(seed=[7, None, 9, None], options={"reset_mask": mask})
    fresh, _ = make("Hopper-v5", 4).reset(seed=[7, 8, 9, 10])
    assert (observations[mask] == fresh[mask]).all()
    assert (observations[~mask] == before[~mask]).all()
    assert (infos["_x_position"] == mask).all()
    env.reset(options={"reset_mask": ~mask})
    env.step(actions)


def test_states_are_come_back_to() -> None:
    for identifier in ("HalfCheetah-v5", "Hopper-v5@noisy", "Ant-v5"):
        env = make(identifier, 4, max_episode_steps=25)
        play(env, 20)
        state, twin = env.get_state(), env.clone()
        future = play(env, 20, seed=None)
        assert equal(future, play(twin, 20, seed=None)), identifier
        env.set_state(state)
        assert equal(future, play(env, 20, seed=None)), identifier


def test_a_planner_looks_ahead_from_one_state_in_many_environments() -> None:
    for identifier in ("Walker2d-v5", "Ant-v5", "Humanoid-v5"):
        env, ahead = make(identifier, 3), make(identifier, 5)
        play(env, 10)
        ahead.set_state(env.get_state().take([2] * 5))
        actions = env.action_space.sample()
        plans = np.stack([actions[2]] * 5)
        plans[1] = 0.0
        seen, rewards, *_, told = ahead.step(plans)
        right, right_rewards, *_, right_told = env.step(actions)
        for row in (0, 2, 3, 4):
            assert (seen[row] == right[2]).all()
            assert rewards[row] == right_rewards[2]
            assert told["x_velocity"][row] == right_told["x_velocity"][2]
        assert (seen[1] != right[2]).any()


def test_each_environment_has_a_variant_of_its_own() -> None:
    variants = [Variant(), *VARIANTS.values()] * 3
    mixed = play(make("Walker2d-v5", len(variants), variants=variants), 40)
    for variant in (Variant(), *VARIANTS.values()):
        alone = play(make("Walker2d-v5", len(variants), variants=[variant] * len(variants)), 40)
        rows = [i for i, one in enumerate(variants) if one == variant]
        assert equal([part[rows] for part in mixed], [part[rows] for part in alone])


def test_variants_change_in_the_middle_of_an_episode() -> None:
    moon = Variant(gravity=0.1654)
    env, other = make("Hopper-v5", 6), make("Hopper-v5", 6)
    play(env, 10), play(other, 10)
    env.set_variant([1, 4], moon)
    assert [variant == moon for variant in env.variants] == [False, True, False, False, True, False]
    one, two = play(env, 5, seed=None), play(other, 5, seed=None)
    changed = (one[-4] != two[-4]).any(axis=1)
    assert changed.tolist() == [False, True, False, False, True, False]
    env.set_variant(np.ones(6, bool), [Variant(friction=f) for f in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)])
    assert len(set(env.variants)) == 6
    env.set_variant(0, moon)
    assert env.variants[0] == moon
    assert set(make("Hopper-v5", 3, variants=moon).variants) == {moon}
    for which, variant, message in (
        ([6], moon, "which: "),
        ([0], "moon", "must be a Variant"),
        ([0], [moon] * 2, "for 1"),
    ):
        with pytest.raises(EvergaitError, match=message):
            env.set_variant(which, variant)  # type: ignore[arg-type]


def test_making_a_robot_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    make("HalfCheetah-v5", 2).close()
    assert capfd.readouterr() == ("", "")


def test_variants_of_the_past_are_not_kept() -> None:
    def alive() -> int:
        gc.collect()
        return sum(MujocoEnv in type(one).__mro__ for one in gc.get_objects())

    env = make("Hopper-v5", 2)
    before = alive()
    for mass in np.linspace(1.1, 1.9, 20):
        env.set_variant([0, 1], [Variant(mass=mass), Variant(mass=mass + 1)])
    assert alive() <= before


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "id": ({"id": "Walker2D-v5"}, "did you mean 'Walker2d-v5'"),
    "num_envs": ({"num_envs": 0}, "num_envs: is 0"),
    "threads": ({"threads": 0}, "threads: is 0"),
    "dtype": ({"dtype": "int8"}, "dtype: is 'int8'"),
    "mode": ({"autoreset_mode": "samestep"}, "did you mean 'SameStep'"),
    "variants": ({"num_envs": 2, "variants": [Variant()]}, "there are 1 for 2"),
    "option": ({"gait": 3}, "does not take these options"),
    "mixed": ({"id": "Ant-v5", "num_envs": 2, "variants": [Variant(), Variant(mass=2.0)]}, "one variant for all"),
    "picture": ({"render_mode": "rgb_array"}, "draws no pictures"),
    "a billion": ({"num_envs": 10**9}, "num_envs: is 1000000000; it must be at most 4,194,304"),
    "beyond": ({"num_envs": 2**63}, "it must be at most"),
    "half": ({"num_envs": 1.5}, "num_envs: is 1.5; it must be a whole number"),
    "word": ({"num_envs": "3"}, "num_envs: is '3'; it must be a whole number"),
    "number": ({"id": 3}, "id: is 3; it must be a text"),
    "engine": ({"engine": None}, "engine: is None; it must be a text"),
    "crowd": ({"threads": 10**9}, "threads: is 1000000000; it must be at most 1,024"),
    "for ever": ({"max_episode_steps": 2**40}, "max_episode_steps: .* at most 2,147,483,647"),
    "no time": ({"frame_skip": 0}, "does not take these options"),
    "all time": ({"frame_skip": 10**9}, "frame_skip: cannot be simulated: .* from 1 to 1048576"),
    "no noise": ({"reset_noise_scale": float("nan")}, "reset_noise_scale: is nan; it must be finite"),
    "half a range": ({"healthy_z_range": (1,)}, "healthy_z_range: cannot be simulated"),
    "no weight": ({"ctrl_cost_weight": "a"}, "ctrl_cost_weight: cannot be simulated"),
    "no model": ({"xml_file": "/etc/passwd"}, "does not take these options: XML"),
    "noise of a kind": ({"reset_noise_scale": np.float32("inf")}, "reset_noise_scale: is inf; it must be finite"),
    "too much noise": ({"reset_noise_scale": 1e308}, r"reset_noise_scale: is 1e\+308; it must be a finite number"),
    "less than no noise": ({"reset_noise_scale": -1.0}, "reset_noise_scale: is -1.0; it must be .* at least 0"),
    "option of reacher": (
        {"id": "Reacher-v5", "reward_dist_weight": 2.0},
        "reward_dist_weight: the mujoco engine takes",
    ),
    "option of ant": ({"id": "Ant-v5", "engine": "mujoco", "healthy_reward": 2.0}, "takes no options"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str) -> None:
    arguments, message = MISTAKES[name]
    with pytest.raises(EvergaitError, match=message):
        make(**{"id": "Hopper-v5", **arguments})


@pytest.mark.parametrize("engine", ["planar", "mujoco"])
def test_mistakes_in_a_step_are_named_and_change_nothing(engine: str) -> None:
    env = make("Hopper-v5", 2, engine=engine)
    actions = np.zeros((2, 3), np.float32)
    with pytest.raises(EvergaitError, match="call reset first"):
        env.step(actions)
    before, _ = env.reset(seed=1)
    with pytest.raises(EvergaitError, match=r"actions: their shape is \(3,\)"):
        env.step(actions[0])
    actions[1, 2] = np.nan
    with pytest.raises(EvergaitError, match=r"actions\[1\]: is .*nan"):
        env.step(actions)
    for odd, kind in (
        (np.zeros((2, 3), complex), "complex128"),
        (np.full((2, 3), "a"), "<U1"),
        (actions.astype(object), "object"),
    ):
        with pytest.raises(EvergaitError, match=f"actions: are {kind}; they must be real numbers"):
            env.step(odd)
    with pytest.raises(EvergaitError, match=r"actions\[0\]: is .*inf"):
        env.step(np.full((2, 3), 1e308))
    assert (env.robots.observations == before).all()
    with pytest.raises(EvergaitError, match="there are 1 for 2 environments"):
        env.reset(seed=[1])
    with pytest.raises(EvergaitError, match="must be an array of bool"):
        env.reset(options={"reset_mask": [True, False]})


def test_only_what_has_begun_is_stepped_and_cloned() -> None:
    env = make("Hopper-v5", 3, autoreset_mode="Disabled")
    actions = np.zeros((3, 3), np.float32)
    for mask, missing in (([True, False, False], r"\[1, 2\]"), ([False, False, True], r"\[1\]")):
        env.reset(seed=1, options={"reset_mask": np.array(mask)})
        for what, call in (("step", lambda: env.step(actions)), ("get_state", env.get_state), ("clone", env.clone)):
            with pytest.raises(EvergaitError, match=f"{what}: environments {missing} have not begun; call reset first"):
                call()
    env.reset(seed=1, options={"reset_mask": np.array([False, True, False])})
    whole = make("Hopper-v5", 3)
    whole.reset(seed=1)
    assert (env.clone().step(actions)[0] == whole.step(actions)[0]).all()


def test_auto_leaves_a_variant_that_the_planar_engine_refuses_to_mujoco() -> None:
    slippery = Variant(friction=0.001)
    env = make("HalfCheetah-v5", 2, variants=slippery)
    assert isinstance(env.robots, MujocoRobots)
    assert env.variants == (slippery, slippery)
    assert make("HalfCheetah-v5@friction=0.001", 2, variants=Variant()).variants == (Variant(), Variant())
    with pytest.raises(EvergaitError, match="is too stiff"):
        make("HalfCheetah-v5", 2, variants=[Variant(), slippery])


def test_one_that_took_a_state_over_goes_on_with_its_generators() -> None:
    env, twin = make("Hopper-v5", 2), make("Hopper-v5", 2)
    env.reset(seed=1)
    twin.set_state(env.get_state())
    assert (env.reset()[0] == twin.reset()[0]).all()


def test_a_robot_that_diverges_and_begins_in_the_same_step_says_so() -> None:
    env = make("HalfCheetah-v5", 2, autoreset_mode="SameStep")
    env.reset(seed=1)
    env.robots.arrays.velocity[1] = 1e9  # type: ignore[attr-defined]
    infos = env.step(env.action_space.sample())[4]
    assert infos["diverged"].tolist() == [False, True]


def test_a_robot_that_diverges_ends_where_it_was_last_seen() -> None:
    env = make("HalfCheetah-v5", 2)
    before, _ = env.reset(seed=1)
    env.robots.arrays.velocity[1] = 1e9  # type: ignore[attr-defined]
    observations, rewards, terminated, _, infos = env.step(env.action_space.sample())
    assert terminated.tolist() == [False, True]
    assert infos["diverged"].tolist() == [False, True]
    assert (observations[1] == before[1]).all()
    assert np.isfinite(rewards).all()
    observations, *_, infos = env.step(env.action_space.sample())
    assert np.isfinite(observations).all()
    assert "diverged" not in infos


@pytest.mark.parametrize("identifier", ["HalfCheetah-v5", "Walker2d-v5"])
def test_on_mujoco_a_robot_that_diverges_ends_as_on_planar(identifier: str) -> None:
    planar, env = (make(f"{identifier}@strength=1e9", 2, engine=engine) for engine in ("planar", "mujoco"))
    before, _ = env.reset(seed=1)
    planar.reset(seed=1)
    actions = np.ones((2, 6), np.float32)
    for step in range(4):
        right, (seen, rewards, terminated, truncated, infos) = planar.step(actions), env.step(actions)
        assert (seen == right[0]).all()
        assert [x.tolist() for x in (rewards, terminated, truncated)] == [x.tolist() for x in right[1:4]]
        assert terminated.all() == (step % 2 == 0) == ("diverged" in infos)
        assert all(np.isfinite(values).all() for values in infos.values())
        if not step:
            assert (seen == before).all()


def test_a_state_of_another_robot_is_refused_and_changes_nothing() -> None:
    env, other = make("Walker2d-v5", 2), make("Walker2d-v5", 2, engine="mujoco")
    env.reset(seed=1), other.reset(seed=2)
    cheetah = make("HalfCheetah-v5", 2)
    cheetah.reset(seed=3)
    state, before = other.get_state(), env.get_state()
    robots = {**before.robots, "velocity": np.ones((2, 3)), "position": np.ones((2, 9))}
    lacking = {name: values for name, values in before.robots.items() if name != "elapsed"}
    for wrong, message in (
        (cheetah.get_state(), "state: is of HalfCheetah-v5 on the planar engine; it must be of Walker2d-v5 on"),
        (state, "state: is of Walker2d-v5 on the mujoco engine; it must be of Walker2d-v5 on the planar engine"),
        (
            dataclasses.replace(before, robots=robots),
            r"state: its velocity are float64 \(2, 3\); they must be float64 \(2, 9\)",
        ),
        (dataclasses.replace(before, robots=lacking), "elapsed is amiss"),
        (before.take([0]), r"state: its observations are float64 \(1, 17\); they must be"),
        (None, "state: is None; it must be what get_state gives"),
    ):
        with pytest.raises(EvergaitError, match=message):
            env.set_state(wrong)  # type: ignore[arg-type]
        assert all((values == before.robots[name]).all() for name, values in env.robots.live().items())
    with pytest.raises(EvergaitError, match="it must be of Walker2d-v5 on the mujoco engine"):
        other.set_state(before)
    assert all((values == state.robots[name]).all() for name, values in other.robots.live().items())


def test_a_reset_of_some_leaves_the_speed_of_others_as_it_is() -> None:
    env, twin = (make("Ant-v5", 2, autoreset_mode="Disabled") for _ in range(2))
    play(env, 3)
    twin.set_state(env.get_state())
    first = {"reset_mask": np.array([True, False])}
    actions = env.action_space.sample()
    env.reset(options=first), twin.reset(options=first)
    assert env.step(actions)[1].tolist() == twin.step(actions)[1].tolist()


def test_a_spec_says_what_was_made() -> None:
    made = make("Hopper-v5", 2, max_episode_steps=50, ctrl_cost_weight=0.5).spec
    assert made is not None
    assert (made.max_episode_steps, made.kwargs["ctrl_cost_weight"]) == (50, 0.5)
    assert gymnasium.make(made).unwrapped._ctrl_cost_weight == 0.5  # type: ignore[attr-defined]
    stock = gymnasium.spec("Hopper-v5")
    assert (stock.max_episode_steps, stock.kwargs) == (1000, {})
    endless = make("Hopper-v5", 2, max_episode_steps=0).spec
    assert endless is not None
    assert endless.max_episode_steps is None
    for limit in (0, 50):
        found: Any = gymnasium.make_vec("evergait/Hopper-v5", 2, max_episode_steps=limit)
        assert found.spec.max_episode_steps == (limit or None)
        assert gymnasium.make_vec(found.spec).spec == found.spec
