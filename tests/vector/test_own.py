"""Users' own planar robots, and whole episodes of many policies."""

from typing import Any

import mujoco
import numpy as np
import pytest

from evergait.core.errors import EvergaitError
from evergait.tasks import Task
from evergait.vector import Motion, PlanarTask, Variant, make, make_own, n_parameters, policy, rollout
from evergait.zoo import pretrained

CART = """<mujoco><option timestep="0.01"/><worldbody><body pos="0 0 1"><joint name="x" type="slide" axis="1 0 0"/>
<geom type="sphere" size="0.1" contype="0" conaffinity="0"/><body><joint name="turn" type="hinge" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 0.5" size="0.05" contype="0" conaffinity="0"/></body></body></worldbody>
<actuator><motor joint="x" gear="20" ctrllimited="true" ctrlrange="-2 2"/></actuator></mujoco>"""


def speed(motion: Motion) -> np.ndarray:
    return (motion.qpos[:, 0] - motion.qpos_before[:, 0]) / motion.dt - 0.1 * motion.action[:, 0] ** 2


def fallen(motion: Motion) -> np.ndarray:
    return np.abs(motion.qpos[:, 1]) > 0.5


def test_a_robot_of_ones_own_moves_as_in_mujoco() -> None:
    env = make_own(PlanarTask(CART, speed, fallen, frame_skip=3, max_episode_steps=50), 6)
    assert env.single_action_space.high.tolist() == [2.0]
    model = mujoco.MjModel.from_xml_string(CART)
    state, _ = env.reset(seed=1)
    random, ends = np.random.default_rng(0), 0
    for _ in range(120):
        begun = env._over.copy()
        action = random.uniform(-2, 2, (6, 1)).astype(np.float32)
        after, rewards, terminated, _, _ = env.step(action)
        for i in np.flatnonzero(~begun):
            data = mujoco.MjData(model)
            data.qpos[:], data.qvel[:], data.ctrl[:] = state[i, :2], state[i, 2:], action[i]
            mujoco.mj_step(model, data, 3)
            assert np.allclose(after[i], [*data.qpos, *data.qvel], rtol=0, atol=1e-9)
            right = (data.qpos[0] - state[i, 0]) / 0.03 - 0.1 * action[i, 0] ** 2
            assert rewards[i] == pytest.approx(right, abs=1e-6)
            assert terminated[i] == (abs(data.qpos[1]) > 0.5)
        ends += int(terminated.sum())
        state = after
    assert ends > 3


def test_observation_start_and_variants_are_the_users() -> None:
    task = PlanarTask(
        mujoco.MjModel.from_xml_string(CART),
        speed,
        observe=lambda qpos, qvel: np.sin(qpos),
        reset=lambda generator: (generator.normal(size=2), np.zeros(2)),
    )
    env = make_own(task, 3, variants=[Variant(), Variant(gravity=2.0), Variant()])
    observations, _ = env.reset(seed=5)
    right = np.sin([np.random.default_rng(5 + i).normal(size=2) for i in range(3)])
    assert (observations == right).all()
    assert env.clone().step(np.zeros((3, 1)))[0].shape == (3, 2)


def test_what_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(EvergaitError, match="MuJoCo cannot read it"):
        make_own(PlanarTask("<mujoco><nonsense/></mujoco>", speed))
    ball = '<mujoco><worldbody><body><freejoint/><geom size="1"/></body></worldbody></mujoco>'
    with pytest.raises(EvergaitError, match="free joints are not supported"):
        make_own(PlanarTask(ball, speed))
    with pytest.raises(EvergaitError, match="num_envs: is 0"):
        make_own(PlanarTask(CART, speed), 0)
    with pytest.raises(EvergaitError, match="there are 1 for 2 environments"):
        make_own(PlanarTask(CART, speed), 2, variants=[Variant()])
    env = make_own(PlanarTask(CART, lambda motion: motion.qpos), 2)
    env.reset(seed=1)
    with pytest.raises(EvergaitError, match=r"reward: its shape is \(2, 2\); it must be \(2,\)"):
        env.step(np.zeros((2, 1)))


def test_one_variant_is_for_all() -> None:
    heavy = Variant(gravity=2.0)
    assert make_own(PlanarTask(CART, speed), 3, variants=heavy).variants == (heavy,) * 3
    for wrong in (3, "moon", [heavy, None], np.zeros(2)):
        with pytest.raises(EvergaitError, match=r"variants: is .* it must be a Variant, or a list of one for each"):
            make_own(PlanarTask(CART, speed), 2, variants=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"frame_skip": 0}, "frame_skip: is 0; it must be at least 1"),
        ({"frame_skip": 2.5}, "frame_skip: is 2.5; it must be a whole number"),
        ({"frame_skip": 10**9}, "frame_skip: is 1000000000; it must be at most 1,048,576"),
        ({"reset_noise": np.nan}, "reset_noise: is nan; it must be a finite number of at least 0"),
        ({"reset_noise": -1.0}, "reset_noise: is -1.0; it must be a finite number of at least 0"),
        ({"reset_noise": "much"}, "reset_noise: is 'much'; it must be a finite number of at least 0"),
    ],
)
def test_a_task_names_what_is_wrong_with_it(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(EvergaitError, match=message):
        PlanarTask(CART, speed, **settings)
    assert PlanarTask(CART, speed, reset_noise=np.float32(0.1), frame_skip=np.int64(2)).frame_skip == 2  # type: ignore[arg-type]


TWO = np.zeros(2)


@pytest.mark.parametrize(
    "start", [(0.3, 0.1), (TWO, 0.0), (TWO, np.zeros(3)), TWO[:1], (TWO, TWO, TWO), None, (TWO, "ab")]
)
def test_a_start_of_another_shape_is_refused(start: Any) -> None:
    env = make_own(PlanarTask(CART, speed, reset=lambda generator: start), 2)
    with pytest.raises(EvergaitError, match=r"reset: is .* it must be qpos and qvel, \(2,\) finite numbers each"):
        env.reset(seed=1)


def test_a_start_from_children_of_the_generator_is_refused() -> None:
    task = PlanarTask(CART, speed, reset=lambda generator: (generator.spawn(1)[0].normal(size=2), np.zeros(2)))
    with pytest.raises(TypeError, match="does not implement spawning"):
        make_own(task, 2).reset(seed=1)


def test_what_the_users_functions_are_given_is_theirs() -> None:
    kept: list[np.ndarray] = []

    def reward(motion: Motion) -> np.ndarray:
        kept.append(motion.qpos)
        gained = speed(motion)
        motion.qvel[:] = 1e9
        return gained

    def observe(qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        seen = qpos[:, :1].copy()
        qpos[:] = 1e9
        return seen

    ours, plain = make_own(PlanarTask(CART, reward, observe=observe), 2), make_own(PlanarTask(CART, speed), 2)
    ours.reset(seed=1), plain.reset(seed=1)
    for _ in range(3):
        assert (ours.step(np.ones((2, 1)))[0][:, 0] == plain.step(np.ones((2, 1)))[0][:, 0]).all()
    assert len({array.tobytes() for array in kept}) == 3


def test_what_one_function_writes_neither_another_nor_the_caller_sees() -> None:
    def reward(motion: Motion) -> np.ndarray:
        for array in (motion.qpos_before, motion.qvel_before, motion.qpos, motion.qvel, motion.action):
            array[:] = 7.0
        return np.zeros(2)

    seen: list[np.ndarray] = []

    def terminated(motion: Motion) -> np.ndarray:
        seen.extend((motion.qpos_before, motion.qvel_before, motion.qpos, motion.qvel, motion.action))
        return fallen(motion)

    env, actions = make_own(PlanarTask(CART, reward, terminated), 2), np.ones((2, 1), np.float32)
    env.reset(seed=1)
    env.step(actions)
    assert actions.tolist() == [[1.0], [1.0]]
    assert not any((array == 7.0).any() for array in seen)
    actions[:] = 2.0
    assert seen[-1].tolist() == [[1.0], [1.0]]


def test_what_users_functions_give_is_checked_by_name() -> None:
    answers: dict[str, list[Any]] = {
        "is not an array of numbers": [[1, 2], [3]],
        "must give real numbers": [["a"], ["b"]],
    }
    for words, wrong in answers.items():
        with pytest.raises(EvergaitError, match=f"observe: .*{words}"):
            make_own(PlanarTask(CART, speed, observe=lambda *_, wrong=wrong: wrong), 2)
        for name in ("reward", "terminated"):
            functions: dict[str, Any] = {"reward": speed, name: lambda _, wrong=wrong: wrong}
            env = make_own(PlanarTask(CART, **functions), 2)
            env.reset(seed=1)
            with pytest.raises(EvergaitError, match=f"{name}: .*{words}"):
                env.step(np.zeros((2, 1)))


def test_a_task_of_another_kind_is_refused() -> None:
    with pytest.raises(EvergaitError, match=r"task: is '<mujoco>.* it must be a PlanarTask"):
        make_own(CART)  # type: ignore[arg-type]
    for name, value in (("reward", 5), ("terminated", 5), ("observe", "x"), ("reset", 0)):
        with pytest.raises(EvergaitError, match=f"{name}: is .* it must be a function"):
            PlanarTask(**{"model": CART, "reward": speed, name: value})  # type: ignore[arg-type]
    with pytest.raises(EvergaitError, match=r"model: is .* it must be an mujoco.MjModel, .*\.compile\(\)"):
        PlanarTask(mujoco.MjSpec.from_string(CART), speed)


def test_noise_that_no_number_holds_is_refused() -> None:
    with pytest.raises(EvergaitError, match=r"reset_noise: is 1e\+308; it must be a finite number of at least 0, and"):
        PlanarTask(CART, speed, reset_noise=1e308)
    with pytest.raises(EvergaitError, match="reset_noise, times the variant's: is inf"):
        make_own(PlanarTask(CART, speed, reset_noise=1e300), variants=Variant(reset_noise=1e10))


def test_a_state_belongs_to_its_model() -> None:
    one, same, other = (make_own(PlanarTask(text, speed), 2) for text in (CART, CART, CART.replace("0.05", "0.06")))
    one.reset(seed=1)
    same.set_state(one.get_state())
    with pytest.raises(EvergaitError, match=r"state: is of a model with digest .* it must be of a model with digest"):
        other.set_state(one.get_state())


def test_a_model_that_was_edited_after_it_was_compiled_is_refused() -> None:
    model = mujoco.MjModel.from_xml_string(CART)
    model.body_mass[1] *= 5
    with pytest.raises(EvergaitError, match=r"model: dof_M0 does not follow .* call mujoco.mj_setConst"):
        make_own(PlanarTask(model, speed))
    mujoco.mj_setConst(model, mujoco.MjData(model))
    make_own(PlanarTask(model, speed))
    model.geom_contype[1] = 1
    with pytest.raises(EvergaitError, match="body 2: a contype of its geoms was edited, and MuJoCo does not see it"):
        make_own(PlanarTask(model, speed))


def test_a_model_that_is_edited_afterwards_is_another_one() -> None:
    model = mujoco.MjModel.from_xml_string(CART)
    env = make_own(PlanarTask(model, speed), 2)
    env.reset(seed=1)
    model.opt.gravity[2] = -1.0
    twin, action = env.clone(), np.ones((2, 1))
    env.set_variant(1, Variant(mass=2.0))
    twin.set_variant(1, Variant(mass=2.0))
    for _ in range(5):
        seen = env.step(action)[0]
        assert (seen == twin.step(action)[0]).all()
    heavy = make_own(PlanarTask(CART, speed), 2, variants=[Variant(), Variant(mass=2.0)])
    heavy.reset(seed=1)
    for _ in range(5):
        right = heavy.step(action)[0]
    assert (seen == right).all()


def test_observation_noise_is_refused_and_not_forgotten() -> None:
    words = r"variant: observation_noise is 0.1; it must be 0 for a robot of one's own"
    noisy = Variant(observation_noise=0.1)
    with pytest.raises(EvergaitError, match=words):
        make_own(PlanarTask(CART, speed), 2, variants=[Variant(), noisy])
    env = make_own(PlanarTask(CART, speed), 2)
    with pytest.raises(EvergaitError, match=words):
        env.set_variant(1, noisy)
    assert env.variants == (Variant(), Variant())


def test_reset_noise_is_refused_where_the_user_draws_the_start() -> None:
    start = np.zeros(2), np.zeros(2)
    with pytest.raises(EvergaitError, match=r"variant: reset_noise is 0.5; it must be 1 for a task with a `reset`"):
        make_own(PlanarTask(CART, speed, reset=lambda generator: start), 1, variants=[Variant(reset_noise=0.5)])


def test_rollouts_are_episodes_of_each_policy() -> None:
    network = policy("Hopper-v5", (4,))
    thetas = np.random.default_rng(0).normal(0, 0.5, (5, n_parameters(network))).astype(np.float32)
    both = rollout("Hopper-v5", network, thetas, [1, 2, 3], horizon=30, trajectories=True, threads=2)
    assert both.returns.shape == (5, 3)
    assert len(np.unique(both.returns)) == 15
    for i in range(5):
        alone = rollout("Hopper-v5", network, thetas[i : i + 1], [1, 2, 3], horizon=30)
        assert (alone.returns[0] == both.returns[i]).all()
        assert (alone.lengths[0] == both.lengths[i]).all()
    assert both.positions is not None
    start = make("Hopper-v5", 3)
    start.reset(seed=1)
    assert (both.positions[0, :, 0] == start.robots.arrays.position).all()  # type: ignore[attr-defined]
    with pytest.raises(EvergaitError, match="thetas: their shape is"):
        rollout("Hopper-v5", network, thetas[:, :-1], [1])
    with pytest.raises(EvergaitError, match="thetas: their shape is"):
        rollout("Hopper-v5", network, np.hstack([thetas, thetas[:, :1]]), [1])  # of another architecture
    cheetah = pretrained("cheetah")  # its θ has layers of four robots
    task, state = Task("HalfCheetah-v5"), cheetah.state()
    alike = rollout(task, cheetah.policy.network(task, state.statistics), state.theta[None], [1], horizon=9)
    assert np.isfinite(alike.returns).all()
    for seeds in ([2**32], [-1], np.array([2**32]), []):
        with pytest.raises(EvergaitError, match="seeds: "):
            rollout("Hopper-v5", network, thetas, seeds)
    with pytest.raises(EvergaitError, match="Ant-v5 is not one of"):
        rollout("Ant-v5", network, thetas, [1])
    with pytest.raises(EvergaitError, match="threads: is 0"):
        rollout("Hopper-v5", network, thetas, [1], threads=0)
    with pytest.raises(EvergaitError, match="network: sees 11 numbers; Walker2d-v5 shows 17"):
        rollout("Walker2d-v5", network, thetas, 1)


HOPPER = policy("Hopper-v5", (4,))
THETAS = np.zeros((2, n_parameters(HOPPER)))
NAN, HUGE = np.full_like(THETAS, np.nan), np.full_like(THETAS, 1e300)


@pytest.mark.parametrize(
    ("argument", "wrong"),
    [
        ("task", (None, 3, b"x", "")),
        ("network", (None, 3, "x", object())),
        ("thetas", (None, "x", [], THETAS[0], THETAS[:0], NAN, HUGE, THETAS.astype(complex), [["a"]], [[1, 2], [3]])),
        ("seeds", (None, "x", -1, 2**32, 2**80, 1.5, np.nan, [], [[1, 2]], [True], [None], {}, {1}, [1, [2]])),
        ("seeds", (range(3 * 10**6),)),
        ("threads", (None, "x", 0, 1.5, True, 2**40, [])),
        ("horizon", (None, "x", -1, 1.5, True, 2**40, [], np.nan)),
    ],
)
def test_rollouts_name_what_is_wrong_before_native_code(argument: str, wrong: tuple[object, ...]) -> None:
    right: dict[str, Any] = {"task": "Hopper-v5", "network": HOPPER, "thetas": THETAS, "seeds": 0}
    for value in wrong:
        with pytest.raises(EvergaitError, match=argument):
            rollout(**{**right, argument: value})


def test_trajectories_that_fit_in_no_memory_are_refused() -> None:
    with pytest.raises(EvergaitError, match=r"trajectories \(bytes\): is .* it must be at most 4,294,967,296"):
        rollout("Hopper-v5", HOPPER, THETAS, list(range(200_000)), trajectories=True)


def test_policies_name_what_is_wrong() -> None:
    for hidden in (None, 3, "x", (0,), (-1,), (1.5,), (2**40,), ("a",), (True,), (65536, 65536)):
        with pytest.raises(EvergaitError, match="hidden"):
            policy("Hopper-v5", hidden)  # type: ignore[arg-type]
    wrong: tuple[Any, ...] = (None, 3, "sigmoid", [])
    for activation in wrong:
        with pytest.raises(EvergaitError, match="activation"):
            policy("Hopper-v5", (4,), activation)


def test_environments_name_arguments_of_another_kind() -> None:
    wrong: dict[str, tuple[object, ...]] = {
        "num_envs": (None, "x", 1.5, True, 10**9),
        "max_episode_steps": ("x", True, 1.5),
        "autoreset_mode": (None, [], np.zeros(2)),
        "variants": (3, object(), [None, None], ["x", "y"], np.zeros(2)),
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(EvergaitError, match=name):
                make("Hopper-v5", **{"num_envs": 2, name: value})  # type: ignore[arg-type]
    with pytest.raises(EvergaitError, match="options"):
        make("Hopper-v5").reset(options=3)  # type: ignore[arg-type]
    assert make("Hopper-v5", 1, max_episode_steps=np.int64(2)).num_envs == 1  # type: ignore[arg-type]


def test_what_is_given_wrongly_is_refused_by_its_name() -> None:
    env: Any = make("Hopper-v5", 2)
    env.reset(seed=1)
    for seed in ("ab", [float("nan"), 1], [None, "x"], np.array([[1], [2]]), b"ab", [float("inf"), 1]):
        with pytest.raises(ValueError, match="seed: is "):
            env.reset(seed=seed)
    with pytest.raises(ValueError, match="actions: are not an array of numbers"):
        env.step([[1.0, 2.0, 3.0], [1.0]])
    for variant in (None, 5):
        with pytest.raises(ValueError, match=f"variant: is {variant}; it must be a Variant"):
            env.set_variant([0], variant)
    for which in (None, [0.5], [[0], [0, 1]], [[0, 1]]):
        with pytest.raises(ValueError, match=r"which: .* it must be a mask or indices of 2 environments"):
            env.set_variant(which, Variant())
    with pytest.raises(ValueError, match=r"rows: .* it must be a mask or indices of 2 environments"):
        env.get_state().take([5])
