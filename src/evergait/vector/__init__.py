"""The engines' physics for one's own algorithm: a Gymnasium VectorEnv, stepped by native code.

    import evergait.vector
    env = evergait.vector.make("Walker2d-v5", num_envs=256, threads=2)

or, after the import, `gymnasium.make_vec("evergait/Walker2d-v5", num_envs=256)`.
"""

from evergait.tasks import Variant
from evergait.vector.environment import VectorEnvironment, VectorState
from evergait.vector.making import make, register
from evergait.vector.own import Motion, PlanarTask, make_own
from evergait.vector.rollout import Rollouts, n_parameters, policy, rollout

__all__ = [
    "Motion",
    "PlanarTask",
    "Rollouts",
    "Variant",
    "VectorEnvironment",
    "VectorState",
    "make",
    "make_own",
    "n_parameters",
    "policy",
    "register",
    "rollout",
]

register()
