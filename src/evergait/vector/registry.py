"""`evergait/Walker2d-v5` and its siblings for `gymnasium.make_vec`; a single one is Gymnasium's own environment."""

import functools
from collections.abc import Callable
from typing import Any

import gymnasium

from evergait.engines.mujoco.tasks import RULES
from evergait.vector.environment import VectorEnvironment
from evergait.vector.making import make

NAMESPACE = "evergait"

_ENTRIES = {identifier.replace("-", "_"): identifier for identifier in RULES}


def __getattr__(name: str) -> Callable[..., VectorEnvironment]:
    """The entry point of an id, such as `Walker2d_v5`."""
    if name not in _ENTRIES:
        raise AttributeError(name)
    return functools.partial(_make, _ENTRIES[name])


def _make(identifier: str, num_envs: int, **arguments: Any) -> VectorEnvironment:
    return make(identifier, num_envs, **arguments)


def register() -> None:
    """Tell Gymnasium of our ids; calling it again does nothing."""
    for entry, identifier in _ENTRIES.items():
        own = f"{NAMESPACE}/{identifier}"
        if own in gymnasium.registry:
            continue
        theirs = gymnasium.spec(identifier)
        gymnasium.register(
            own,
            entry_point=theirs.entry_point,
            vector_entry_point=f"{__name__}:{entry}",
            max_episode_steps=theirs.max_episode_steps,
            reward_threshold=theirs.reward_threshold,
        )
