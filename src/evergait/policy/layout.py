"""The policy of the paper: an input layer per task, shared hidden layers, a head that is shared or one per task.

θ is one flat float32 vector. Each layer is a weight (n_out, n_in) by rows, then a bias (n_out,). The order of layers is
hidden, shared head, then input layer (and own head) of each task sorted by name, so that θ does not depend on the
order of the stream. Initial numbers belong to a layer's name: adding tasks changes none of the others.
"""

import functools
import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from evergait import _native
from evergait.core.arrays import Array, Float32, Float64, Int32
from evergait.core.data import require
from evergait.core.errors import EvergaitError
from evergait.core.files import write_tensors
from evergait.core.random import INITIAL_WEIGHTS, Noise, layer_index, uniform
from evergait.policy.network import Activation, ActiveLayer, Network
from evergait.tasks import Spaces, Task, spaces
from evergait.tasks.robot_file import robot_digest

Part = Literal["active", "shared", "own", "all"]


@dataclass(frozen=True)
class PolicyConfig:
    """Shape of the policy."""

    input_width: int = 64
    """Outputs of each task's input layer."""
    hidden: tuple[int, ...] = (64,)
    """Widths of the shared hidden layers."""
    input_activation: Activation = "linear"
    """Activation of the input layers."""
    activation: Activation = "relu"
    """Activation of the hidden layers."""
    output_activation: Activation = "tanh"
    """Activation of the head; its range is stretched to the task's action bounds."""
    heads: Literal["shared", "separate"] = "shared"
    """One head for all tasks (task-agnostic), or one per task (task-aware)."""
    normalise: bool = False
    """Whether each task's observations are normalised by running statistics, which are part of the policy."""
    replay_updates_statistics: bool = False
    """Whether replayed episodes of an earlier task update that task's statistics too."""

    def check(self) -> None:
        """Raise EvergaitError for sizes that make no network."""
        widths = {"policy.input_width": self.input_width}
        widths |= {f"policy.hidden[{i}]": width for i, width in enumerate(self.hidden)}
        for where, width in widths.items():
            require(1 <= width <= _native.MAX_WIDTH, where, width, f"from 1 to {_native.MAX_WIDTH}")


@dataclass(frozen=True)
class Layer:
    """Where one layer lies in θ."""

    name: str
    offset: int
    n_in: int
    n_out: int

    @property
    def bias(self) -> int:
        """Offset of the bias."""
        return self.offset + self.n_in * self.n_out

    @property
    def end(self) -> int:
        """Offset behind the bias."""
        return self.bias + self.n_out


@dataclass(frozen=True)
class Policy:
    """Layout of θ for a set of tasks."""

    config: PolicyConfig
    tasks: tuple[Task, ...]
    """The tasks it can act in, sorted by name."""

    @staticmethod
    def build(config: PolicyConfig, tasks: Iterable[Task]) -> "Policy":
        """A policy for a set of tasks, in any order, repeats allowed."""
        return Policy(config, tuple(sorted(set(tasks), key=lambda task: task.name)))

    @functools.cached_property
    def _known(self) -> dict[Task, tuple[Spaces, str]]:
        """Each task's spaces and its robot file's digest, asked once: an edited file must not change half a layout."""
        return {task: (spaces(task), robot_digest(task)) for task in self.tasks}

    def space(self, task: Task) -> Spaces:
        """Observation and action of a task that it can act in, as they were when θ was laid out."""
        return self._known[task][0]

    @functools.cached_property
    def layers(self) -> dict[str, Layer]:
        """Every layer by name, in the order of θ."""
        config = self.config
        widths = (config.input_width, *config.hidden)
        shapes = {f"hidden.{i}": shape for i, shape in enumerate(itertools.pairwise(widths))}
        if config.heads == "shared":
            shapes["head"] = (widths[-1], max(self.space(task).n_actions for task in self.tasks))
        for task in self.tasks:
            shapes[f"input.{task.name}"] = (self.space(task).n_observations, config.input_width)
            if config.heads == "separate":
                shapes[f"head.{task.name}"] = (widths[-1], self.space(task).n_actions)
        layers: dict[str, Layer] = {}
        offset = 0
        for name, (n_in, n_out) in shapes.items():
            layers[name] = Layer(name, offset, n_in, n_out)
            offset = layers[name].end
        return layers

    @property
    def n_parameters(self) -> int:
        """Length of θ."""
        return next(reversed(self.layers.values())).end

    def check(self) -> None:
        """Raise EvergaitError for more observations, actions or parameters than the native core takes."""
        for task in self.tasks:
            widths = {"observations": self.space(task).n_observations, "actions": self.space(task).n_actions}
            for what, width in widths.items():
                right = f"from 1 to {_native.MAX_WIDTH}"
                require(1 <= width <= _native.MAX_WIDTH, f"task {task.name!r}: the number of its {what}", width, right)
        right = f"at most {_native.MAX_PARAMETERS}: make layers narrower, or tasks fewer"
        where, n = "policy: the number of its parameters", self.n_parameters
        require(n <= _native.MAX_PARAMETERS, where, n, right)

    def initial(self, seed: int, purpose: int = INITIAL_WEIGHTS, index: int = 0) -> Float32:
        """Uniform ±1/√n_in for weights and biases; `index` counts independent initialisations."""
        theta = np.empty(self.n_parameters, np.float32)
        for layer in self.layers.values():
            words = Noise(seed, purpose, generation=index).integers(layer.end - layer.offset, layer_index(layer.name))
            theta[layer.offset : layer.end] = (2 * uniform(words) - 1) / np.sqrt(np.float32(layer.n_in))
        return theta

    def path(self, task: Task) -> list[tuple[Layer, int, Activation]]:
        """The layers that an observation of the task passes through: (layer, outputs used, activation)."""
        config, layers = self.config, self.layers
        hidden = [layers[f"hidden.{i}"] for i in range(len(config.hidden))]
        head = layers["head" if config.heads == "shared" else f"head.{task.name}"]
        first = layers[f"input.{task.name}"]
        return [
            (first, first.n_out, config.input_activation),
            *((layer, layer.n_out, config.activation) for layer in hidden),
            (head, self.space(task).n_actions, config.output_activation),
        ]

    def network(self, task: Task, statistics: "Statistics | None" = None) -> Network:
        """What an engine needs to act in the task; an error if that is another robot than θ was laid out for."""
        space, digest = self._known[task]
        if robot_digest(task) != digest:
            raise EvergaitError(
                f"task {task.name!r}: its file, or one of its model, has been edited since this policy was laid out "
                "for it; put it back, or load or train anew"
            )
        layers = tuple(
            ActiveLayer(layer.offset, layer.bias, layer.n_in, n_out, activation)
            for layer, n_out, activation in self.path(task)
        )
        mean, scale = statistics.normaliser(task) if statistics and self.config.normalise else (None, None)
        return Network(
            layers,
            space.action_middle,
            space.action_half_range,
            space.discrete,
            space.discrete_start,
            mean,
            scale,
            self.n_parameters,
        )

    def active(self, task: Task, part: Part = "active", whole_layers: bool = False) -> list[tuple[int, int]]:
        """Ranges of θ, in rising order: what the task uses, of that what is shared or its own, or all of θ.

        Outputs of a shared head that the task does not use are left out, unless whole layers are wanted.
        """
        if part == "all":
            return [(0, self.n_parameters)]
        ranges = []
        for layer, n_used, _ in self.path(task):
            own = layer.name.endswith(f".{task.name}")
            n_out = layer.n_out if whole_layers else n_used
            if part == "active" or own == (part == "own"):
                ranges += [(layer.offset, layer.offset + n_out * layer.n_in), (layer.bias, layer.bias + n_out)]
        return sorted(ranges)

    def transplant(self, source: "Policy", theta: Float32, seed: int) -> Float32:
        """θ of a policy that knows other tasks, moved into this layout; layers that it lacks are initialised.

        A shared head that must grow keeps its old outputs and gets new ones.
        """
        moved = self.initial(seed)
        for name, old in source.layers.items():
            if name not in self.layers:
                continue
            new = self.layers[name]
            right = f"as wide as in the other policy, which has {old.n_in} inputs"
            require(new.n_in == old.n_in, f"layer {name}", f"{new.n_in} inputs wide", right)
            n_out = min(old.n_out, new.n_out)
            n = n_out * old.n_in
            moved[new.offset : new.offset + n] = theta[old.offset : old.offset + n]
            moved[new.bias : new.bias + n_out] = theta[old.bias : old.bias + n_out]
        return moved


@dataclass(frozen=True)
class Statistics:
    """Per task: count, sums and sums of squares of the observations that training has seen."""

    sums: Mapping[str, Float64]
    """Task name → (3, n_observations)."""

    @staticmethod
    def empty(tasks: Iterable[Task]) -> "Statistics":
        """No observation seen yet."""
        return Statistics({task.name: np.zeros((3, spaces(task).n_observations)) for task in tasks})

    def normaliser(self, task: Task) -> tuple[Float64, Float64] | tuple[None, None]:
        """(mean, 1/standard deviation), or none before the first observation."""
        count, total, squares = self.sums[task.name]
        if count[0] == 0:
            return None, None
        mean = total / count
        variance = np.maximum(squares / count - mean * mean, 1e-6)
        return mean, 1 / np.sqrt(variance)

    def add(self, task: Task, lengths: Int32, sums: Float64) -> "Statistics":
        """Add rows (n,) and (n, 2, n_observations), in row order."""
        added = np.zeros_like(self.sums[task.name])
        for length, row in zip(lengths, sums, strict=True):
            added[0] += length
            added[1:] += row
        return Statistics({**self.sums, task.name: self.sums[task.name] + added})


def export_policy(path: Path, policy: Policy, theta: Float32, statistics: Statistics) -> None:
    """Write every layer as `<layer>.weight` (n_out, n_in) and `<layer>.bias`, and the layout as JSON in the header."""
    tensors: dict[str, Array] = {}
    for layer in policy.layers.values():
        tensors[f"{layer.name}.weight"] = theta[layer.offset : layer.bias].reshape(layer.n_out, layer.n_in)
        tensors[f"{layer.name}.bias"] = theta[layer.bias : layer.end]
    layout = {}
    for task in policy.tasks:
        space = policy.space(task)
        mean, scale = statistics.normaliser(task) if policy.config.normalise else (None, None)
        if mean is not None and scale is not None:
            tensors[f"{task.name}.mean"], tensors[f"{task.name}.scale"] = mean, scale
        layout[task.name] = {
            "layers": [[layer.name, n_out, activation] for layer, n_out, activation in policy.path(task)],
            "discrete": space.discrete,
            "action_middle": space.action_middle.tolist(),
            "action_half_range": space.action_half_range.tolist(),
        }
        if space.discrete_start:  # only there, so that other files keep their bytes
            layout[task.name]["discrete_start"] = space.discrete_start
    write_tensors(path, tensors, {"format": "evergait-policy-1", "tasks": json.dumps(layout)})
