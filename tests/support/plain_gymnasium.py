"""The obvious loop around Gymnasium: the oracle of every engine."""

import numpy as np

from evergait.core.arrays import Float32
from evergait.core.random import PERTURBATION, Noise
from evergait.engines import Episodes
from evergait.engines.gymnasium.episode import pack, perceived
from evergait.policy import Network
from evergait.policy.network import act, to_action
from evergait.tasks import Task, make
from evergait.tasks.variants import apply_to_environment


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
