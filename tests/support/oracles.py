"""Oracles: the obvious loop around Gymnasium for every engine, and MuJoCo itself for the planar one."""

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from evergait.core.arrays import Float32
from evergait.core.random import PERTURBATION, Noise
from evergait.engines.base import Episodes
from evergait.engines.gymnasium.episode import pack, perceived
from evergait.policy import Network, Policy, PolicyConfig
from evergait.policy.network import act, to_action
from evergait.tasks import Task, make, parse_task
from evergait.tasks.base import apply_to_environment
from evergait.tasks.quiet import quiet


def replay_in_gymnasium(network: Network, theta: Float32, task: Task, seed: int) -> tuple[float, int]:
    """Return and length of one unperturbed episode."""
    one = np.zeros(1, np.uint32)
    packed = pack(Episodes(task, network, theta, 0.0, Noise(0, PERTURBATION), one, np.zeros(1, np.float32), one), 0)
    env = make(task)
    apply_to_environment(task.variant, env)
    total, length, over = 0.0, 0, False
    observation, _ = env.reset(seed=seed)
    while not over:
        seen = perceived(task, observation, seed, length, network.n_observations)
        observation, reward, terminated, truncated, _ = env.step(to_action(network, act(network, packed, seen)))
        total += float(reward)
        length += 1
        over = terminated or truncated
    env.close()
    return total, length


TASKS = ("Hopper-v5", "Walker2d-v5", "Swimmer-v5", "HalfCheetah-v5", "InvertedPendulum-v5", "InvertedDoublePendulum-v5")


def episodes(name: str, n: int = 24, horizon: int = 0, sigma: float = 0.05) -> Episodes:
    """Rows of mirrored candidates around an untrained policy."""
    task = parse_task(name)
    policy, row = Policy.build(PolicyConfig(), [task]), np.arange(n)
    sign = np.where(row % 2, -1, 1).astype(np.float32)
    noise, theta = Noise(1, PERTURBATION), policy.initial(0)
    pair, seed = (row // 2).astype(np.uint32), (row + 5).astype(np.uint32)
    return Episodes(task, policy.network(task), theta, sigma, noise, pair, sign, seed, horizon)


def environment(task: Task) -> Any:
    """Gymnasium's environment with the task's variant applied."""
    with quiet():
        env = make(task)
    apply_to_environment(task.variant, env)
    env.close()
    return env.unwrapped


def tighten(model: mujoco.MjModel) -> mujoco.MjModel:
    """Let MuJoCo's solver run until it converges; as shipped it stops at a tolerance of 1e-8."""
    model.opt.tolerance, model.opt.iterations = 1e-16, 200
    model.opt.ls_tolerance, model.opt.ls_iterations = 1e-8, 100
    return model


def random_states(model: mujoco.MjModel, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standing, airborne, fallen, limits violated, deep penetration, self-collision, |v| ≤ 10, large controls."""
    random = np.random.default_rng(seed)
    position = np.tile(model.qpos0, (n, 1))
    velocity = random.uniform(-10, 10, (n, model.nv)) * random.choice([0.01, 0.3, 1.0], (n, 1))
    standing, airborne = (random.integers(0, 5, n) == kind for kind in (0, 1))
    for joint in range(model.njnt):
        hinge = model.jnt_type[joint] == 3
        low, high = model.jnt_range[joint] if model.jnt_limited[joint] else (-3.2, 3.2) if hinge else (-5.0, 5.0)
        beyond = 0.15 * (high - low)
        near = model.qpos0[joint] + random.uniform(-0.2, 0.2, n)
        position[:, joint] = np.where(standing, near, random.uniform(low - beyond, high + beyond, n))
    if model.ngeom and (model.geom_type == 0).any() and model.opt.gravity[2] and model.nv > 5:
        height = model.qpos0[1]
        fallen = random.uniform(-0.3, 1.5, n) - (model.body_pos[1, 2] - height if height == 0 else 0)
        high = height + random.uniform(1, 3, n)
        upright = height + random.uniform(-0.15, 0.1, n)
        position[:, 1] = np.where(standing, upright, np.where(airborne, high, fallen))
    control = 1.5 * random.uniform(*model.actuator_ctrlrange.T, (n, model.nu))  # type: ignore[call-overload]
    return position, velocity, control


def mujoco_steps(model: mujoco.MjModel, states: Any, n_frames: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The oracle: positions, velocities, and whether the state diverged (MuJoCo then resets it)."""
    position, velocity, control = states
    data = mujoco.MjData(model)
    after_q, after_v, bad = np.empty_like(position), np.empty_like(velocity), np.zeros(len(position), bool)
    bad_kinds = slice(int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADQACC) + 1)
    with quiet():
        for row in range(len(position)):
            mujoco.mj_resetData(model, data)
            data.qpos[:], data.qvel[:], data.ctrl[:] = position[row], velocity[row], control[row]
            mujoco.mj_step(model, data, nstep=n_frames)
            after_q[row], after_v[row] = data.qpos, data.qvel
            bad[row] = data.warning.number[bad_kinds].any()
    # A state beyond 1e10 would be found bad at the start of the next step.
    bad |= ~(np.abs(np.hstack([after_q, after_v])) <= 1e10).all(axis=1)
    return after_q, after_v, bad


def relative_error(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> np.ndarray:
    """(n,) the larger of position's and velocity's largest error, relative to 1 + their largest entry."""
    errors = [np.abs(a - b).max(axis=1) / (1 + np.abs(b).max(axis=1)) for a, b in zip(ours, theirs, strict=True)]
    return np.maximum(*errors)  # type: ignore[no-any-return]


def smallest_separation(model: mujoco.MjModel, state: Any, n_frames: int) -> float:
    """The least distance between the axes of two touching capsules on the way; at zero the normal is undefined."""
    data, least = mujoco.MjData(model), np.inf
    data.qpos[:], data.qvel[:], data.ctrl[:] = state
    mujoco.mj_forward(model, data)
    for frame in range(n_frames + 1):
        if frame:
            mujoco.mj_step(model, data)
        for contact in range(data.ncon):
            one, two = data.contact.geom[contact]
            if model.geom_type[one] == 3:
                radii = model.geom_size[one, 0] + model.geom_size[two, 0]
                least = min(least, float(data.contact.dist[contact] + radii))
    return least
