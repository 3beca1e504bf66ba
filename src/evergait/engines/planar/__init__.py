"""Our vectorised physics for planar robots."""

from evergait.engines.planar.engine import PlanarEngine, step, step_model

__all__ = ["PlanarEngine", "step", "step_model"]
