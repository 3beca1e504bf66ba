"""The policy: layout of θ, its networks, observation statistics."""

from evergait.policy.layout import Layer, Part, Policy, PolicyConfig, Statistics
from evergait.policy.network import Activation, ActiveLayer, Candidates, Network

__all__ = [
    "Activation",
    "ActiveLayer",
    "Candidates",
    "Layer",
    "Network",
    "Part",
    "Policy",
    "PolicyConfig",
    "Statistics",
]
