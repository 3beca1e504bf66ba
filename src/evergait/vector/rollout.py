"""Whole episodes of many policies at once in native code: what ES, CEM and quality-diversity ask for."""

import itertools
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from evergait import _native
from evergait.core.arrays import Array, Bool, Float32, Float64, Int32, UInt32
from evergait.core.data import MOST_ROWS, MOST_THREADS, require, within
from evergait.core.errors import EvergaitError, nearest
from evergait.core.random import PERTURBATION, Noise
from evergait.engines import Episodes
from evergait.engines.planar.engine import PlanarEngine
from evergait.engines.planar.robot import compile_robot
from evergait.policy import Network
from evergait.policy.network import Activation, ActiveLayer
from evergait.tasks import Task, spaces
from evergait.tasks.base import as_task

MOST_TRACE = 1 << 32
"""Bytes of the positions that one call may bring back."""
ACTIVATIONS = get_args(Activation)


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
    known = spaces(as_task(task))
    hidden = as_widths(hidden)
    if activation not in ACTIVATIONS:
        raise EvergaitError(f"activation: is {activation!r}{nearest(activation, ACTIVATIONS)}")
    sizes, layers, offset = (known.n_observations, *hidden, known.n_actions), [], 0
    for i, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
        kind: Activation = "tanh" if i == len(hidden) else activation
        layers.append(ActiveLayer(offset, offset + n_in * n_out, n_in, n_out, kind))
        offset += (n_in + 1) * n_out
    most = _native.MAX_PARAMETERS
    require(offset <= most, "hidden", hidden, f"smaller: θ would have {offset:,} numbers, at most {most:,}")
    return Network(tuple(layers), known.action_middle, known.action_half_range, n_parameters=offset)


def n_parameters(network: Network) -> int:
    """How long θ of such a policy is."""
    return network.n_parameters or max(layer.bias + layer.n_out for layer in network.layers)


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
    known = as_task(task)
    if not isinstance(network, Network):
        raise EvergaitError(f"network: is {network!r}; it must be a Network, such as policy({known.name!r})")
    each, engine, starts = _thetas(thetas, network), PlanarEngine(), _seeds(seeds)
    within(threads, 1, MOST_THREADS, "threads")
    within(horizon, 0, 2**31 - 1, "horizon")
    within(len(each) * len(starts), 1, MOST_ROWS, "thetas times seeds")
    if reason := engine.refuses(known):
        raise EvergaitError(reason)
    seen, needed = network.n_observations, spaces(known).n_observations
    if seen != needed:
        raise EvergaitError(f"network: sees {seen} numbers; {known.name} shows {needed}")
    n, m = len(each), len(starts)
    if trajectories:
        limit = min(filter(None, (horizon, spaces(known).n_steps)))
        n_bytes = 8 * n * m * (limit + 1) * compile_robot(known).model.n_dofs
        within(n_bytes, 0, MOST_TRACE, "trajectories (bytes)")
    request = Episodes(
        known,
        network,
        each[0],
        sigma=0.0,
        noise=Noise(0, PERTURBATION),
        pair=np.repeat(np.arange(n, dtype=np.uint32), m),
        sign=np.zeros(n * m, np.float32),
        seed=np.tile(starts, n),
        horizon=int(horizon),
    )
    outcome, trace = engine.run_each(request, each, int(threads), bool(trajectories))
    return Rollouts(
        outcome.returns.reshape(n, m),
        outcome.lengths.reshape(n, m),
        outcome.diverged.reshape(n, m),
        trace.reshape(n, m, *trace.shape[1:]) if trajectories else None,
    )


def as_widths(hidden: Any) -> tuple[int, ...]:
    """The widths of hidden layers, which a caller may have passed as anything."""
    listed = isinstance(hidden, list | tuple) or (isinstance(hidden, np.ndarray) and hidden.ndim == 1)
    require(listed, "hidden", hidden, "a tuple of widths, such as (32, 32)")
    for i, width in enumerate(hidden):
        within(width, 1, _native.MAX_WIDTH, f"hidden[{i}]")
    return tuple(map(int, hidden))


def _thetas(thetas: Any, network: Network) -> Float32:
    """(n, n_parameters) finite numbers, or more of a network that does not know how long θ is."""
    least = n_parameters(network)
    try:
        given = np.asarray(thetas)
        with np.errstate(over="ignore"):  # what is then infinite is refused by its row
            each = np.ascontiguousarray(given, None if given.dtype.kind == "c" else np.float32)
    except (TypeError, ValueError) as error:
        raise EvergaitError(f"thetas: are not an array of numbers: {error}") from None
    if each.dtype != np.float32:
        raise EvergaitError(f"thetas: are {each.dtype}; they must be real numbers")
    fits = each.ndim == 2 and (each.shape[1] == least or (each.shape[1] > least and not network.n_parameters))
    if not fits or not len(each):
        raise EvergaitError(f"thetas: their shape is {each.shape}; it must be (n, {least}) with n of at least 1")
    finite = np.isfinite(each).all(axis=1)
    if not finite.all():
        raise EvergaitError(f"thetas: row {int(np.argmin(finite))} has numbers that are not finite in float32")
    return each


def _seeds(seeds: Any) -> UInt32:
    """(m,) seeds."""
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        seeds = [seeds]
    try:
        given = np.atleast_1d(np.asarray(list(seeds) if isinstance(seeds, range) else seeds))
    except ValueError:
        given = np.zeros((0, 0))
    if given.ndim == 1 and not given.size:
        raise EvergaitError("seeds: there are none; give at least one")
    whole = given.ndim == 1 and all(isinstance(seed, int) and not isinstance(seed, bool) for seed in given.tolist())
    require(whole, "seeds", seeds, "a whole number or a list of whole numbers")
    low, high = int(given.min()), int(given.max())
    if low < 0 or high >= 2**32:
        raise EvergaitError(f"seeds: one is {low if low < 0 else high}; each must be from 0 to {2**32 - 1}")
    return given.astype(np.uint32)
