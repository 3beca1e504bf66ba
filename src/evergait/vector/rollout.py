"""Whole episodes of many policies at once in native code: what ES, CEM and quality-diversity ask for."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from evergait.core.arrays import Array, Bool, Float64, Int32
from evergait.core.errors import EvergaitError
from evergait.core.random import PERTURBATION, Noise
from evergait.engines import Episodes
from evergait.engines.planar.engine import PlanarEngine
from evergait.policy import Network
from evergait.policy.network import Activation, ActiveLayer
from evergait.tasks import Task, parse_task, spaces


@dataclass(frozen=True)
class Rollouts:
    """What came of n policies, each on the same m seeds: (n, m) arrays."""

    returns: Float64
    """NaN where the physics diverged."""
    lengths: Int32
    diverged: Bool
    positions: Float64 | None
    """(n, m, limit + 1, nq) if asked for; zeros behind an episode's end."""


def policy(task: Task | str, hidden: tuple[int, ...] = (), activation: Activation = "tanh") -> Network:
    """Dense layers for a task, with tanh at the end stretched to the action's range.

    θ of it is a flat vector: of each layer the weights (n_out, n_in) by rows, then the bias.
    """
    known = spaces(parse_task(task) if isinstance(task, str) else task)
    sizes, layers, offset = (known.n_observations, *hidden, known.n_actions), [], 0
    for i, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
        kind: Activation = "tanh" if i == len(hidden) else activation
        layers.append(ActiveLayer(offset, offset + n_in * n_out, n_in, n_out, kind))
        offset += (n_in + 1) * n_out
    return Network(tuple(layers), known.action_middle, known.action_half_range)


def n_parameters(network: Network) -> int:
    """How long θ of such a policy is."""
    return max(layer.bias + layer.n_out for layer in network.layers)


def rollout(
    task: Task | str,
    network: Network,
    thetas: Array,
    seeds: Array | list[int] | int,
    *,
    horizon: int = 0,
    threads: int = 1,
    trajectories: bool = False,
) -> Rollouts:
    """Run every policy of `thetas` (n, n_parameters) once on every seed; planar tasks only.

    An episode is what a policy would do in `make(task)` after `reset(seed=...)`, to the bit.
    """
    known = parse_task(task) if isinstance(task, str) else task
    each = np.ascontiguousarray(thetas, np.float32)
    least = n_parameters(network)
    if each.ndim != 2 or each.shape[1] < least or not len(each):
        raise EvergaitError(f"thetas: their shape is {each.shape}; it must be (n, {least}) with n of at least 1")
    engine, starts = PlanarEngine(), np.array(list(map(_seed, np.atleast_1d(seeds))), np.uint32)
    if threads < 1:
        raise EvergaitError(f"threads: is {threads}; it must be at least 1")
    if not starts.size:
        raise EvergaitError("seeds: there are none; give at least one")
    if reason := engine.refuses(known):
        raise EvergaitError(reason)
    seen, needed = network.n_observations, spaces(known).n_observations
    if seen != needed:
        raise EvergaitError(f"network: sees {seen} numbers; {known.name} shows {needed}")
    n, m = len(each), len(starts)
    request = Episodes(
        known,
        network,
        each[0],
        sigma=0.0,
        noise=Noise(0, PERTURBATION),
        pair=np.repeat(np.arange(n, dtype=np.uint32), m),
        sign=np.zeros(n * m, np.float32),
        seed=np.tile(starts, n),
        horizon=horizon,
    )
    outcome, trace = engine.run_each(request, each, threads, trajectories)
    return Rollouts(
        outcome.returns.reshape(n, m),
        outcome.lengths.reshape(n, m),
        outcome.diverged.reshape(n, m),
        trace.reshape(n, m, *trace.shape[1:]) if trajectories else None,
    )


def _seed(seed: Any) -> int:
    if not 0 <= seed < 2**32:
        raise EvergaitError(f"seeds: one is {seed}; each must be from 0 to {2**32 - 1}")
    return int(seed)
