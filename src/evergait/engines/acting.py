"""A policy that acts, one observation at a time, by the same native code that training uses."""

from dataclasses import dataclass

import numpy as np

from evergait import _native
from evergait.core.arrays import Float32, Float64
from evergait.core.random import PERTURBATION, Noise
from evergait.policy import Candidates, Network


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
