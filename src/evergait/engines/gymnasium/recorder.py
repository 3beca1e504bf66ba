"""Observations that a policy meets in plain Gymnasium, for methods that learn from them."""

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from evergait.core.arrays import Float32, Float64
from evergait.core.errors import EvergaitError
from evergait.core.random import ACTION_NOISE, COLLECTION, RESERVOIR, Noise
from evergait.engines.base import Episodes
from evergait.engines.gymnasium.episode import Episode, act, is_usable, observed, pack, perceived, rewarded, to_action
from evergait.policy import Network
from evergait.tasks import Task
from evergait.tasks.process import Beat, ask, is_foreign
from evergait.tasks.quiet import hushed


@dataclass
class Recorder:
    """Records observations at one stage of a run, and counts the environment steps that it takes."""

    seed: int
    stage: int
    n_steps: int = 0

    def record(
        self, task: Task, network: Network, theta: Float32, n_episodes: int, n_kept: int, noise: float
    ) -> Float32:
        """(n, n_observations) a uniform sample of what the policy saw; every second episode has action noise."""
        arguments = self, task, network, theta, n_episodes, n_kept, noise
        n_steps, kept = _elsewhere(*arguments) if is_foreign(task) else record(*arguments)
        self.n_steps += n_steps
        return kept

    def noise(self, purpose: int, episode: int = 0) -> Noise:
        """A stream of this stage."""
        return Noise(self.seed, purpose, episode, self.stage)


def record(
    recorder: Recorder,
    task: Task,
    network: Network,
    theta: Float32,
    n_episodes: int,
    n_kept: int,
    noise: float,
    beat: Beat = lambda: None,
) -> tuple[int, Float32]:
    """How many steps were taken, and what was kept of them."""
    none, draw = np.zeros(1, np.uint32), recorder.noise
    unperturbed = Episodes(task, network, theta, 0.0, draw(COLLECTION), none, none.astype(np.float32), none)
    packed = pack(unperturbed, 0)
    episode = Episode(task)
    beat()
    seen: list[Float64] = []
    try:
        with hushed(task), np.errstate(all="ignore"):
            for number, seed in enumerate(draw(COLLECTION).integers(n_episodes)):
                jitter = draw(ACTION_NOISE, number), noise * (number % 2)
                seen += _observations(episode, task, network, packed, int(seed), *jitter)
                beat()
    finally:
        episode.env.close()
    if not seen:
        raise EvergaitError(f"task {task.name!r}: the policy's actions are not finite; nothing can be kept of it")
    order = np.argsort(draw(RESERVOIR).integers(len(seen)), kind="stable")
    return len(seen), np.array(seen)[np.sort(order[:n_kept])].astype(np.float32)


def _elsewhere(recorder: Recorder, task: Task, *arguments: Any) -> tuple[int, Float32]:
    """`record` in a process of its own, for an environment that may hang or die."""
    found: tuple[int, Float32] = ask(task, f"{__name__}:record", (recorder, task, *arguments), "recording an episode")
    return found


def _observations(
    episode: Episode, task: Task, network: Network, packed: Float32, seed: int, noise: Noise, scale: float
) -> list[Float64]:
    """What the policy saw in one episode, one observation per environment step."""
    seen: list[Float64] = []
    observation, _ = episode.env.reset(seed=seed)
    over = False
    while not over:
        sight = perceived(task, observation, seed, len(seen), network.n_observations)
        outputs = act(network, packed, sight)
        if not (np.isfinite(outputs).all() and is_usable(sight)):
            break
        if scale:
            jitter = noise.normals(len(seen), 0, len(outputs))
            outputs = outputs + np.float32(scale) * network.action_half_range * jitter
            space = episode.env.action_space
            if isinstance(space, gymnasium.spaces.Box):
                outputs = np.clip(outputs, space.low, space.high).astype(np.float32)
        seen.append(sight)
        observation, reward, terminated, truncated, _ = episode.env.step(to_action(network, outputs))
        over = (
            terminated or truncated or episode.diverged(observed(observation, network.n_observations), rewarded(reward))
        )
    return seen
