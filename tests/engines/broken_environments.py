"""Environments that misbehave, each in its own way."""

import os
import time

import gymnasium
import numpy as np


class Broken(gymnasium.Env):
    """Ends after three steps unless it does what its name says in the second."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        super().reset(seed=seed)
        self.n_steps, self.bad = 0, seed == 103
        return np.zeros(2, np.float32), {}

    def step(self, action: np.ndarray) -> tuple:
        self.n_steps += 1
        if self.bad and self.n_steps == 2:
            if self.fault == "raise":
                raise ZeroDivisionError("the joint is missing")
            if self.fault == "hang":
                time.sleep(3600)
            if self.fault == "die":
                os._exit(7)
        return np.zeros(2, np.float32), 1.0, self.n_steps == 3, False, {}


for fault in ("raise", "hang", "die"):
    gymnasium.register(f"Broken-{fault}-v0", Broken, kwargs={"fault": fault})
