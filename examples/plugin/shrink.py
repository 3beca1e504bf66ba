"""pip install . && evergait train --method shrink --method.share 0.1 --out runs/shrink"""

from dataclasses import dataclass

import evergait as eg


@dataclass(frozen=True)
class Shrink(eg.Method, name="shrink"):
    """Takes a share of θ away after every step."""

    share: float = 0.01

    def after_step(self, context, step, theta, memory):
        return (theta * (1 - self.share)).astype(theta.dtype), memory
