"""A policy as one .safetensors file that needs no evergait to be read; docs/policy-file.md shows how."""

import json
from pathlib import Path

from evergait.core.arrays import Array, Float32
from evergait.core.files import write_tensors
from evergait.policy.layout import Policy, Statistics
from evergait.tasks import spaces


def export_policy(path: Path, policy: Policy, theta: Float32, statistics: Statistics) -> None:
    """Write every layer as `<layer>.weight` (n_out, n_in) and `<layer>.bias`, and the layout as JSON in the header."""
    tensors: dict[str, Array] = {}
    for layer in policy.layers.values():
        tensors[f"{layer.name}.weight"] = theta[layer.offset : layer.bias].reshape(layer.n_out, layer.n_in)
        tensors[f"{layer.name}.bias"] = theta[layer.bias : layer.end]
    layout = {}
    for task in policy.tasks:
        space = spaces(task)
        mean, scale = statistics.normaliser(task) if policy.config.normalise else (None, None)
        if mean is not None and scale is not None:
            tensors[f"{task.name}.mean"], tensors[f"{task.name}.scale"] = mean, scale
        layout[task.name] = {
            "layers": [[layer.name, n_out, activation] for layer, n_out, activation in policy.path(task)],
            "discrete": space.discrete,
            "action_middle": space.action_middle.tolist(),
            "action_half_range": space.action_half_range.tolist(),
        }
    write_tensors(path, tensors, {"format": "evergait-policy-1", "tasks": json.dumps(layout)})
