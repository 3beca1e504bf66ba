"""A task of your own whose rewards are costs: evergait train --stream braking:Braking-v0 --out runs/braking"""

import gymnasium as gym
import numpy as np


class Braking(gym.Env):
    observation_space, action_space = gym.spaces.Box(-9, 9, (1,)), gym.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-3, 3, 1)
        return self.x, {}

    def step(self, action):
        self.x = np.clip(self.x + 0.3 * action, -9, 9)
        return self.x, -float(np.abs(self.x[0])), False, False, {}


gym.register("Braking-v0", "braking:Braking", max_episode_steps=40)
