"""The policy: layout of θ, its networks, observation statistics."""

from evergait.policy.layout import Activation, Layer, Network, Part, Policy, PolicyConfig, Statistics

__all__ = ["Activation", "Layer", "Network", "Part", "Policy", "PolicyConfig", "Statistics"]
