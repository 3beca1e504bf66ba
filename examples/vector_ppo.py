"""PPO in one file, in the manner of CleanRL, on evergait's robots or on Gymnasium's own. Needs `pip install torch`.

python examples/vector_ppo.py [--task Walker2d-v5] [--steps 1000000] [--envs 64] [--seed 1] [--gymnasium]
"""

import argparse
import time

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import vector as wrappers
from torch import nn

import evergait.vector  # noqa: F401 - registers evergait/...


def network(n_in: int, n_out: int, last: float) -> nn.Sequential:
    layers = [nn.Linear(n_in, 64), nn.Linear(64, 64), nn.Linear(64, n_out)]
    for layer, gain in zip(layers, (2**0.5, 2**0.5, last), strict=True):
        nn.init.orthogonal_(layer.weight, gain), nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])


def main() -> None:
    """Train, and print the mean return of episodes that end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="Walker2d-v5")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gymnasium", action="store_true", help="Gymnasium's environments, for comparison")
    args = parser.parse_args()
    torch.manual_seed(args.seed), torch.set_num_threads(1)  # the networks are small
    name = args.task if args.gymnasium else f"evergait/{args.task}"
    env = wrappers.RecordEpisodeStatistics(gymnasium.make_vec(name, args.envs), buffer_length=100)
    returns, n_in, n_out = env.return_queue, env.single_observation_space.shape[0], env.single_action_space.shape[0]
    env = wrappers.NormalizeReward(wrappers.NormalizeObservation(env))
    actor, critic, log_std = network(n_in, n_out, 0.01), network(n_in, 1, 1.0), nn.Parameter(torch.zeros(n_out))
    parameters = [*actor.parameters(), *critic.parameters(), log_std]
    optimizer = torch.optim.Adam(parameters, lr=3e-4, eps=1e-5)
    length, gamma, lam = 2048 // args.envs or 1, 0.99, 0.95
    seen, over = torch.tensor(env.reset(seed=args.seed)[0], dtype=torch.float32), torch.zeros(args.envs)
    started, n_updates = time.perf_counter(), max(1, args.steps // (length * args.envs))
    for update in range(n_updates):
        batch = []
        with torch.no_grad():
            for _ in range(length):
                policy = torch.distributions.Normal(actor(seen), log_std.exp())
                action = policy.sample()
                after, reward, terminated, truncated, _ = env.step(action.numpy())
                value, log_p = critic(seen)[:, 0], policy.log_prob(action).sum(1)
                batch.append((seen, action, log_p, value, torch.tensor(reward).float().clip(-10, 10), over))
                seen = torch.tensor(after, dtype=torch.float32).clip(-10, 10)
                over = torch.tensor(terminated | truncated).float()
            next_value, next_over, gain, gains = critic(seen)[:, 0], over, 0.0, []
            for *_, value, reward, was_over in reversed(batch):  # the step after an ending only resets
                delta = reward + gamma * next_value * (1 - next_over) - value
                gain = delta + gamma * lam * (1 - next_over) * gain
                gains.insert(0, gain)
                next_value, next_over = value, was_over
        x, u, old, v, _, was_over = (torch.cat(parts) for parts in zip(*batch, strict=True))
        advantage, target, real = torch.cat(gains), torch.cat(gains) + v, torch.nonzero(was_over == 0)[:, 0]
        for _ in range(10):
            for part in real[torch.randperm(len(real))].split(512):
                policy = torch.distributions.Normal(actor(x[part]), log_std.exp())
                ratio = (policy.log_prob(u[part]).sum(1) - old[part]).exp()
                a = (advantage[part] - advantage[part].mean()) / (advantage[part].std() + 1e-8)
                loss = -torch.min(ratio * a, ratio.clip(0.8, 1.2) * a).mean()
                loss = loss + 0.5 * ((critic(x[part])[:, 0] - target[part]) ** 2).mean()
                optimizer.zero_grad(), loss.backward()
                nn.utils.clip_grad_norm_(parameters, 0.5)
                optimizer.step()
        if update % 10 == 0 or update == n_updates - 1:
            steps, seconds = (update + 1) * length * args.envs, time.perf_counter() - started
            print(f"{steps} steps, {seconds:.1f} s: mean return {np.mean(returns or [0]):.1f}", flush=True)


if __name__ == "__main__":
    main()
