"""Requests and outcomes as bytes, so that what travels can be counted.

A request carries counters and θ, never candidates; an outcome carries a few numbers per row.
"""

import pickle
from collections.abc import Sequence

import gymnasium
import numpy as np

from evergait.core.plugins import import_trusted, plugin_of, trust
from evergait.engines import ENGINES, Episodes, Outcome

# Ray's own messages are pickles too: only who holds the cluster's token can send them.


def pack_request(engine: str, episodes: Episodes) -> bytes:
    """All that the rows of a request share, and the rows."""
    plugin = plugin_of(ENGINES.get(engine))
    return pickle.dumps((engine, episodes, _environment(episodes), plugin), protocol=5)


def unpack_request(data: bytes) -> tuple[str, Episodes]:
    """The engine's name and the request; an environment that the sender registered by itself is made known here."""
    engine, episodes, environment, plugin = pickle.loads(data)  # noqa: S301
    if plugin:
        trust(plugin)
        import_trusted([plugin], f"engine {engine}")
    if environment and episodes.task.id not in gymnasium.registry:
        gymnasium.registry[episodes.task.id] = pickle.loads(environment)  # noqa: S301
    return engine, episodes


def _environment(episodes: Episodes) -> bytes:
    """How to make the task's environment, or nothing: then the other side must know by itself."""
    try:
        return pickle.dumps(gymnasium.registry[episodes.task.id])
    except (KeyError, pickle.PicklingError, AttributeError, TypeError):
        return b""


_ARRAYS = ("returns", "lengths", "diverged", "statistics")


def pack_outcome(outcome: Outcome) -> bytes:
    """The arrays of an outcome."""
    arrays = tuple(np.ascontiguousarray(getattr(outcome, name)) for name in _ARRAYS)
    return pickle.dumps((*arrays, outcome.observations), protocol=5)


def unpack_outcome(data: bytes) -> Outcome:
    """The outcome of some rows."""
    return Outcome(*pickle.loads(data))  # noqa: S301


def join_outcomes(parts: Sequence[tuple[int, Outcome]]) -> Outcome:
    """Outcomes of consecutive rows, each with its first row, in the order of rows."""
    return Outcome.concatenate([outcome for _, outcome in sorted(parts, key=lambda part: part[0])])
