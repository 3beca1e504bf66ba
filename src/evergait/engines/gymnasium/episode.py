"""One episode of one candidate in one Gymnasium environment, and the process in which the engine runs such rows."""

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np

from evergait import _native
from evergait.core.arrays import Float32, Float64
from evergait.core.errors import EvergaitError, in_words
from evergait.core.random import OBSERVATION_NOISE, Noise
from evergait.engines.base import Episodes
from evergait.policy import Network
from evergait.policy.network import act, to_action
from evergait.tasks import Task, make
from evergait.tasks.base import apply_to_environment, has_model
from evergait.tasks.process import Channel, die_with, end_forks, register
from evergait.tasks.quiet import hushed
from evergait.tasks.robot_file import robot_digest

READY = -1
"""Stands for a row: a process answers it when it has made the environment."""
LARGEST = float(np.finfo(np.float32).max)


class Row(NamedTuple):
    """What came of a row."""

    total: float
    length: int
    diverged: bool
    sums: Float64 | None = None
    """(2, n_observations) sums of observations and of their squares, if asked for."""
    observations: Float64 | None = None
    """(length, n_observations) what the policy saw, if asked for."""


class Moment(NamedTuple):
    """A step of an episode, or the reason why there can be none."""

    seen: Float64
    """What the policy saw before the step."""
    reward: float = np.nan
    ended: Literal["", "terminated", "truncated", "diverged", "blind", "mute"] = ""
    """How the episode ended with this step; blind and mute: without it, for what there is to see, or the policy's
    answer to it, is not finite."""


def perceived(task: Task, observation: object, seed: int, step: int, n: int) -> Float64:
    """The observation as the policy sees it: n float64, with the variant's noise."""
    seen = observed(observation, n)
    if not task.variant.observation_noise:
        return seen
    noise = Noise(seed, OBSERVATION_NOISE).normals(step, 0, n)
    return seen + task.variant.observation_noise * noise.astype(np.float64)


def observed(observation: object, n: int) -> Float64:
    """An environment's observation, which must be as its space promises."""
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
    """A task's environment, used for one episode after another: the one loop that steps Gymnasium."""

    def __init__(self, task: Task, env: Any = None) -> None:
        """With an environment that has the task's variant already, or a new one."""
        self.task = task
        self.env: gymnasium.Env[Any, Any] = env or make(task)
        if env is None:
            apply_to_environment(task.variant, self.env)
        self._inner: Any = self.env.unwrapped
        self._physics: Any = getattr(self._inner, "data", None) if has_model(self.env) else None
        self._healthy_reward: float | None = getattr(self._inner, "_healthy_reward", None)

    def moments(self, network: Network, packed: Float32, seed: int, jitter: "Jitter | None" = None) -> Iterator[Moment]:
        """Reset now; then step after step, until the episode ends or nobody asks for more."""
        observation, _ = self.env.reset(seed=seed)
        return self._moments(observation, network, packed, seed, jitter)

    def _moments(
        self, observation: Any, network: Network, packed: Float32, seed: int, jitter: "Jitter | None"
    ) -> Iterator[Moment]:
        ended: Literal["", "terminated", "truncated", "diverged"] = ""
        n, step = network.n_observations, 0
        while not ended:
            seen = perceived(self.task, observation, seed, step, n)
            if not is_usable(seen):
                yield Moment(seen, ended="blind")
                return
            outputs = act(network, packed, seen)
            if not np.isfinite(outputs).all():
                yield Moment(seen, ended="mute")
                return
            if jitter:
                outputs = jitter.disturb(network, outputs, step, self.env.action_space)
            observation, reward, terminated, truncated, _ = self.env.step(to_action(network, outputs))
            value, step = rewarded(reward), step + 1
            if self.diverged(observed(observation, n), value):
                ended = "diverged"
            else:
                ended = "terminated" if terminated else "truncated" if truncated else ""
            yield Moment(seen, value, ended)

    def run(self, episodes: Episodes, row: int) -> Row:
        """Simulate one row."""
        if self._healthy_reward is not None:
            self._inner._healthy_reward = self._healthy_reward * episodes.healthy_bonus
        # A candidate may drive the physics to infinity; its row says so, and nothing else should.
        with hushed(episodes.task), np.errstate(all="ignore"):
            return self._run(episodes, row)

    def _run(self, episodes: Episodes, row: int) -> Row:
        network, total, length, moment = episodes.network, 0.0, 0, None
        sums = np.zeros((2, network.n_observations)) if episodes.gather_statistics else None
        kept: list[Float64] = []
        for moment in self.moments(network, pack(episodes, row), int(episodes.seed[row]), _jitter(episodes, row)):
            if sums is not None and moment.ended != "blind":
                sums[0] += moment.seen
                sums[1] += moment.seen * moment.seen
            if moment.ended in ("blind", "mute"):
                break
            total, length = total + moment.reward, length + 1
            if episodes.recording:
                kept.append(moment.seen)
            if length == episodes.horizon:
                break
        diverged = moment is not None and moment.ended in ("diverged", "blind", "mute")
        diverged = diverged or not np.isfinite(total)
        seen = np.array(kept).reshape(length, network.n_observations) if episodes.recording else None
        return Row(np.nan if diverged else total, length, diverged, sums, seen)

    def diverged(self, observation: Float64, reward: float) -> bool:
        """Whether the physics have left the finite numbers."""
        if self._physics is not None:
            from evergait.engines.mujoco.library import HUGE, was_reset

            moving = np.concatenate((self._physics.qpos, self._physics.qvel))
            fine = np.abs(moving).max() <= HUGE and not was_reset(self._physics.warning.number)
        else:
            fine = is_usable(observation)
        return not (fine and np.isfinite(reward))


@dataclass(frozen=True)
class Jitter:
    """Noise on actions."""

    noise: Noise
    scale: float

    def disturb(self, network: Network, outputs: Float32, step: int, space: gymnasium.Space[Any]) -> Float32:
        """Outputs with the noise of a step, within the action's bounds."""
        drawn = self.noise.normals(step, 0, len(outputs))
        outputs = outputs + np.float32(self.scale) * network.action_half_range * drawn
        return np.clip(outputs, space.low, space.high) if isinstance(space, gymnasium.spaces.Box) else outputs


def _jitter(episodes: Episodes, row: int) -> Jitter | None:
    """Every second recorded row has noise of its own."""
    number, recording = int(episodes.pair[row]), episodes.recording
    if not recording or not recording.action_noise or number % 2 == 0:
        return None
    return Jitter(replace(recording.noise, generation=number), recording.action_noise)


def pack(episodes: Episodes, row: int) -> Float32:
    """(1, n) one row's candidate, as `act` takes it."""
    packed = np.empty((1, episodes.network.native.packed_size), np.float32)
    _native.pack_candidates(episodes.rows(slice(row, row + 1)), packed, 1)
    return packed


def main(pipe: int, lifeline: int) -> None:
    """Serve until the other end of the pipe is closed; both arguments are file descriptors."""
    die_with(lifeline)
    connection, us = Channel(socket.socket(fileno=pipe)), os.getpid()
    environments: dict[tuple[Task, str], Episode] = {}
    with contextlib.suppress(EOFError, OSError):
        while True:
            # First what to simulate, then some of its rows, until something else is to be simulated.
            message = connection.recv()
            if isinstance(message, tuple):
                episodes, spec = message
                register(episodes.task, spec)
                message = [READY]
            for row in message:
                answer = _answer(environments, episodes, row)
                end_forks(us)
                connection.send((row, answer))


def _answer(environments: dict[tuple[Task, str], Episode], episodes: Episodes, row: int) -> Row | str | None:
    """The outcome of a row, nothing if it is READY, or what the environment's user must read."""
    try:
        known = episodes.task, robot_digest(episodes.task)  # a robot's file may have been edited since
        if known not in environments:
            environments[known] = Episode(episodes.task)
        return None if row == READY else environments[known].run(episodes, row)
    except EvergaitError as error:
        return str(error)
    except BaseException as error:  # also SystemExit and KeyboardInterrupt: this process ends by its pipe alone
        return in_words(error)
