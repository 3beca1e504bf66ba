"""Requests for the engines' tests."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evergait.core.random import PERTURBATION, Noise
from evergait.engines import Episodes
from evergait.policy import ActiveLayer, Network
from evergait.tasks import parse_task, spaces


def make_episodes(task: str, n_rows: int = 12, sigma: float = 0.1, **changes: Any) -> Episodes:
    """Mirrored candidates of a small random policy; keyword arguments replace fields of the request."""
    known = spaces(parse_task(task))
    sizes = [known.n_observations, 8, known.n_actions]
    layers, offset = [], 0
    for (n_in, n_out), activation in zip(itertools.pairwise(sizes), ("relu", "tanh"), strict=True):
        layers.append(ActiveLayer(offset, offset + n_in * n_out, n_in, n_out, activation))  # type: ignore[arg-type]
        offset += (n_in + 1) * n_out
    around = known.action_middle, known.action_half_range, known.discrete, known.discrete_start
    theta = 0.3 * np.random.default_rng(1).standard_normal(offset).astype(np.float32)
    rows = np.arange(n_rows, dtype=np.uint32)
    values = {
        "task": parse_task(task),
        "network": Network(tuple(layers), *around),
        "theta": theta,
        "sigma": sigma,
        "noise": Noise(3, PERTURBATION, generation=2),
        "pair": rows // 2,
        "sign": np.where(rows % 2, -1.0, 1.0).astype(np.float32),
        "seed": 100 + rows,
        **changes,
    }
    return Episodes(**values)


@pytest.fixture
def episodes() -> Callable[..., Episodes]:
    return make_episodes
