"""Continual evolution strategies for control."""

__version__ = "0.1.0"
