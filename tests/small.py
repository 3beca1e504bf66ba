"""Small things to train."""

from evergait.config import Config, Evaluation
from evergait.methods import Replay


def tiny_config(**changes: object) -> Config:
    """Two cheap tasks, a few generations: trains in about a second."""
    settings = {
        "stream": ("InvertedPendulum-v5", "Reacher-v5"),
        "generations": 4,
        "pairs": 6,
        "engine": "mujoco",
        "evaluation": Evaluation(every=2, episodes=2, random_policies=2),
        "method": Replay(budget=4),
    }
    return Config(**{**settings, **changes})
