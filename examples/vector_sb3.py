"""Stable-Baselines3 PPO on evergait's robots, or on Gymnasium's own. Needs `pip install stable-baselines3`.

python examples/vector_sb3.py [--task Walker2d-v5] [--steps 200000] [--envs 64] [--threads 2] [--gymnasium]
"""

import argparse
import time

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv, VecMonitor, VecNormalize

import evergait.vector


class Robots(VecEnv):
    """A VectorEnv of Gymnasium's in SameStep mode, as Stable-Baselines3 wants it."""

    def __init__(self, env: gymnasium.vector.VectorEnv) -> None:
        self.env = env
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self):
        observations, _ = self.env.reset(seed=self._seeds)
        self._reset_seeds()  # the next one goes on
        return observations

    def step_async(self, actions):
        self.actions = actions

    def step_wait(self):
        observations, rewards, terminated, truncated, told = self.env.step(self.actions)
        infos, over = [{} for _ in range(self.num_envs)], terminated | truncated
        for row in np.flatnonzero(over):
            infos[row]["terminal_observation"] = told["final_obs"][row]
            infos[row]["TimeLimit.truncated"] = bool(truncated[row] and not terminated[row])
        return observations, rewards.astype(np.float32), over, infos

    def close(self):
        self.env.close()

    def get_attr(self, attr_name, indices=None):
        return [getattr(self.env, attr_name, None)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name, value, indices=None):
        setattr(self.env, attr_name, value)

    def env_method(self, method_name, *arguments, indices=None, **keywords):
        return [getattr(self.env, method_name)(*arguments, **keywords)]

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * len(list(self._get_indices(indices)))


def main() -> None:
    """Train, and print the mean return of the last hundred episodes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="Walker2d-v5")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gymnasium", action="store_true", help="Gymnasium's environments, for comparison")
    args, started = parser.parse_args(), time.perf_counter()
    torch.set_num_threads(1)  # the networks are small
    if args.gymnasium:
        env = gymnasium.make_vec(args.task, args.envs, "sync", vector_kwargs={"autoreset_mode": "SameStep"})
    else:
        env = evergait.vector.make(args.task, args.envs, threads=args.threads, autoreset_mode="SameStep")
    settings = {"n_steps": max(1, 2048 // args.envs), "batch_size": 256, "seed": args.seed, "device": "cpu"}
    model = PPO("MlpPolicy", VecNormalize(VecMonitor(Robots(env))), **settings)
    model.learn(args.steps)
    seconds, mean = time.perf_counter() - started, np.mean([episode["r"] for episode in model.ep_info_buffer])
    print(f"{model.num_timesteps} steps, {seconds:.1f} s: mean return {mean:.1f}")


if __name__ == "__main__":
    main()
