"""One episode of one candidate in one Gymnasium environment: what every process of the engine does."""

from typing import Any

import gymnasium
import numpy as np

from evergait import _native
from evergait.core.arrays import Float32, Float64
from evergait.core.errors import EvergaitError
from evergait.core.random import OBSERVATION_NOISE, Noise
from evergait.engines.base import Episodes
from evergait.policy import Network
from evergait.tasks import Task, make
from evergait.tasks.quiet import hushed
from evergait.tasks.variants import apply_to_environment, has_model

READY = -1
"""Stands for a row: a process answers it when it has made the environment."""
LARGEST = float(np.finfo(np.float32).max)
Row = tuple[float, int, bool, Float64 | None]
"""Return, length, diverged, and sums of observations and of their squares (2, n_observations) if asked for."""


def act(network: Network, packed: Float32, observation: Float64) -> Float32:
    """Outputs of the head for one observation, by the same native code that batches use."""
    out = np.empty(network.n_actions, np.float32)
    around = network.action_middle, network.action_half_range, network.mean, network.scale
    _native.act(network.layers, *around, packed, observation[np.newaxis], out[np.newaxis], 1)
    return out


def to_action(network: Network, outputs: Float32) -> Float32 | int:
    """What `env.step` takes: the outputs themselves, or the index of the largest."""
    return int(np.argmax(outputs)) + network.discrete_start if network.discrete else outputs


def perceived(task: Task, observation: object, seed: int, step: int, n: int) -> Float64:
    """The observation as the policy sees it: n float64, with the variant's noise."""
    seen = observed(observation, n)
    if not task.variant.observation_noise:
        return seen
    noise = Noise(seed, OBSERVATION_NOISE).normals(step, 0, n)
    return seen + task.variant.observation_noise * noise.astype(np.float64)


def observed(observation: object, n: int) -> Float64:
    """An environment's observation, which must be as its space promises: the native core trusts its length."""
    try:
        seen = np.asarray(observation)
    except ValueError:  # ragged
        seen = np.array(None)
    if seen.shape != (n,) or seen.dtype.kind not in "biuf":
        what = f"an array of shape {seen.shape} and type {seen.dtype}"
        raise EvergaitError(f"the environment's observation is {what}; it must be a vector of {n} numbers")
    return np.ascontiguousarray(seen, np.float64)


def rewarded(reward: object) -> float:
    """An environment's reward, which must be one number."""
    try:
        found = np.asarray(reward)
    except ValueError:
        found = np.array(None)
    if found.size != 1 or found.dtype.kind not in "biuf":
        raise EvergaitError(f"the environment's reward is of type {type(reward).__name__}; it must be one number")
    return float(found.reshape(()))


def is_usable(seen: Float64) -> bool:
    """Whether the policy can see it: all of it within float32's range."""
    return bool((np.abs(seen) <= LARGEST).all())


class Episode:
    """A task's environment, used for one episode after another."""

    def __init__(self, task: Task) -> None:
        self.env: gymnasium.Env[Any, Any] = make(task)
        apply_to_environment(task.variant, self.env)
        self._inner: Any = self.env.unwrapped
        self._physics: Any = getattr(self._inner, "data", None) if has_model(self.env) else None
        self._healthy_reward: float | None = getattr(self._inner, "_healthy_reward", None)

    def run(self, episodes: Episodes, row: int) -> Row:
        """Simulate one row."""
        if self._healthy_reward is not None:
            self._inner._healthy_reward = self._healthy_reward * episodes.healthy_bonus
        # A candidate may drive the physics to infinity; its row says so, and nothing else should.
        with hushed(episodes.task), np.errstate(all="ignore"):
            return self._run(episodes, row)

    def _run(self, episodes: Episodes, row: int) -> Row:
        network, seed = episodes.network, int(episodes.seed[row])
        packed = pack(episodes, row)
        sums = np.zeros((2, network.n_observations)) if episodes.gather_statistics else None
        total, length, over = 0.0, 0, False
        observation, _ = self.env.reset(seed=seed)
        while not over and not (episodes.horizon and length >= episodes.horizon):
            seen = perceived(episodes.task, observation, seed, length, network.n_observations)
            if not is_usable(seen):
                return np.nan, length, True, sums
            if sums is not None:
                sums[0] += seen
                sums[1] += seen * seen
            outputs = act(network, packed, seen)
            if not np.isfinite(outputs).all():
                return np.nan, length, True, sums
            observation, reward, terminated, truncated, _ = self.env.step(to_action(network, outputs))
            value = rewarded(reward)
            total += value
            length += 1
            if self.diverged(observed(observation, network.n_observations), value):
                return np.nan, length, True, sums
            over = terminated or truncated
        return (total, length, False, sums) if np.isfinite(total) else (np.nan, length, True, sums)

    def diverged(self, observation: Float64, reward: float) -> bool:
        """Whether the physics have left the finite numbers."""
        if self._physics is not None:
            from evergait.engines.mujoco.library import HUGE, was_reset

            moving = np.concatenate((self._physics.qpos, self._physics.qvel))
            fine = np.abs(moving).max() <= HUGE and not was_reset(self._physics.warning.number)
        else:
            fine = is_usable(observation)
        return not (fine and np.isfinite(reward))


def pack(episodes: Episodes, row: int) -> Float32:
    """(1, n) one row's candidate, as `act` takes it."""
    packed = np.empty((1, _native.packed_size(episodes.network.layers)), np.float32)
    part = slice(row, row + 1)
    candidate = *episodes.noise.words, episodes.pair[part], episodes.sign[part]
    _native.pack_candidates(episodes.network.layers, episodes.theta, episodes.sigma, *candidate, packed, 1)
    return packed
