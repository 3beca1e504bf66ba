"""Our vectorised physics for planar robots."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evergait.engines.planar.engine import PlanarEngine, step, step_model

__all__ = ["PlanarEngine", "step", "step_model"]


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: it brings MuJoCo."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("evergait.engines.planar.engine"), name)
