"""The layers of θ that one task uses, as engines and methods take them, and a policy that acts by them."""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evergait import _native
from evergait.core.arrays import Array, Float32, Float64, UInt32
from evergait.core.errors import EvergaitError
from evergait.core.random import PERTURBATION, Noise

Activation = Literal["linear", "relu", "tanh"]


@dataclass(frozen=True)
class ActiveLayer:
    """Where a layer lies in θ, and the part of it that a task uses."""

    weight: int
    """Offset of the weight, (n_out, n_in) by rows."""
    bias: int
    """Offset of the bias."""
    n_in: int
    n_out: int
    activation: Activation


@dataclass(frozen=True)
class Network:
    """The layers of θ that are active for one task, and what surrounds them: all that an engine needs."""

    layers: tuple[ActiveLayer, ...]
    action_middle: Float32
    action_half_range: Float32
    discrete: bool = False
    discrete_start: int = 0
    mean: Float64 | None = None
    """Observation normalisation: (observation − mean) · scale, in float64, before the cast to float32."""
    scale: Float64 | None = None
    n_parameters: int = 0
    """Length of θ, which may have layers of other tasks, too; 0 if nobody has said."""

    @property
    def n_observations(self) -> int:
        """Size of the observation."""
        return self.layers[0].n_in

    @property
    def n_actions(self) -> int:
        """Outputs of the head that this task uses."""
        return self.layers[-1].n_out

    @functools.cached_property
    def native(self) -> _native.Network:
        """This, as the native core takes it: read by the names of the fields, and checked."""
        return _native.Network(self)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def outputs(self, theta: Float64, observations: Array) -> Float64:
        """(n, n_actions) of the head in float64, in [−1, 1] with tanh: not yet stretched to the action bounds."""
        self._check(observations)
        out = np.empty((len(observations), self.n_actions))
        _native.outputs(self.native, theta, np.ascontiguousarray(observations, np.float64), out)
        return out

    def pull_back(self, theta: Float64, observations: Array, cotangents: Float64, squared: bool = False) -> Float64:
        """(n_parameters,) Σ over rows of ∂(cotangent · outputs)/∂θ, or of its squares: back-propagation."""
        self._check(observations)
        gradient = np.zeros(len(theta))
        seen, pulls = (np.ascontiguousarray(rows, np.float64) for rows in (observations, cotangents))
        _native.pull_back(self.native, theta, seen, pulls, squared, gradient)
        return gradient

    def approach(
        self,
        theta: Float64,
        observations: Float32,
        targets: Float32,
        rows: UInt32,
        gradient: Float64,
        least: float = 0.0,
    ) -> None:
        """Take ∂/∂θ of the mean of ½ ‖outputs − target‖² over these rows from `gradient`; no error above `least`: 0."""
        self._check(observations)
        _native.approach(self.native, theta, observations, targets, rows, least, gradient)

    def _check(self, observations: Array) -> None:
        if observations.ndim != 2 or observations.shape[1] != self.n_observations:
            right = f"it must be (n, {self.n_observations}) for this task"
            raise EvergaitError(f"observations: their shape is {observations.shape}; {right}")


@dataclass(frozen=True)
class Candidates:
    """θ + sign·σ·ε(pair), one per row; the native core reads these fields, of this class or another."""

    network: Network
    theta: Float32
    sigma: float
    noise: Noise
    pair: UInt32
    sign: Float32


def act(network: Network, packed: Float32, observation: Float64) -> Float32:
    """Outputs of the head for one observation."""
    out = np.empty(network.n_actions, np.float32)
    _native.act(network.native, packed, observation[np.newaxis], out[np.newaxis], 1)
    return out


def to_action(network: Network, outputs: Float32) -> Float32 | int:
    """What `env.step` takes: the outputs themselves, or the index of the largest."""
    return int(np.argmax(outputs)) + network.discrete_start if network.discrete else outputs


@dataclass(frozen=True)
class Acting:
    """The unperturbed policy on one task."""

    network: Network
    packed: Float32

    @staticmethod
    def of(network: Network, theta: Float32) -> "Acting":
        """With these parameters."""
        packed = np.empty((1, network.native.packed_size), np.float32)
        one, none = np.zeros(1, np.uint32), np.zeros(1, np.float32)
        _native.pack_candidates(Candidates(network, theta, 0.0, Noise(0, PERTURBATION), one, none), packed, 1)
        return Acting(network, packed)

    def __call__(self, observation: Float64) -> Float32 | int:
        """What `env.step` takes."""
        return to_action(self.network, act(self.network, self.packed, observation))
