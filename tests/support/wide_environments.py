"""Environments with many observations."""

from typing import Any, cast

import gymnasium
import numpy as np


class Wide(gymnasium.Env):
    """Three steps of noise; the reward is the action."""

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))

    def __init__(self, n: int) -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (n,))
        self.n_steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.n_steps = 0
        return self.look(), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.n_steps += 1
        return self.look(), float(action[0]), self.n_steps == 3, False, {}

    def look(self) -> np.ndarray:
        return self.np_random.uniform(-1, 1, self.observation_space.shape)


for n in (600, 20_000, 65_536, 65_537):
    gymnasium.register(f"Wide{n}-v0", cast("Any", Wide), kwargs={"n": n})
