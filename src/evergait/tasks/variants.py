"""Apply a variant to a MuJoCo environment: factors on its model and on its reset noise."""

import sys
from typing import Any

from evergait.tasks.base import Task, Variant

_MODEL_FIELDS = ("gravity", "friction", "mass", "strength")


def has_model(env: Any) -> bool:
    """Whether a Gymnasium environment simulates with MuJoCo."""
    mujoco = sys.modules.get("mujoco")  # not imported for the question's sake: who has a model has imported it
    return mujoco is not None and isinstance(getattr(env.unwrapped, "model", None), mujoco.MjModel)


def apply_to_model(variant: Variant, model: Any) -> None:
    """Multiply gravity, sliding friction, masses and gears of a model, in place."""
    # A factor of one must leave every bit alone, and mj_setConst recomputes constants that it need not.
    if variant.gravity != 1.0:
        model.opt.gravity *= variant.gravity
    if variant.friction != 1.0:
        model.geom_friction[:, 0] *= variant.friction
    if variant.mass != 1.0:
        model.body_mass *= variant.mass
        model.body_inertia *= variant.mass
    if variant.strength != 1.0:
        model.actuator_gear *= variant.strength
    if (variant.mass, variant.strength) != (1.0, 1.0):
        import mujoco

        mujoco.mj_setConst(model, mujoco.MjData(model))  # inverse weights, subtree masses, acc0


def apply_to_environment(variant: Variant, env: Any) -> None:
    """Change a Gymnasium environment in place: its model, if it has one, and the scale of its reset noise.

    Observation noise is added by whoever steps the environment. `unsupported` says beforehand what cannot be changed.
    """
    inner = env.unwrapped
    if variant.changes_model:
        apply_to_model(variant, inner.model)
    if variant.reset_noise != 1.0:
        inner._reset_noise_scale *= variant.reset_noise


def unsupported(task: Task, env: Any) -> str:
    """Why a Gymnasium environment cannot take the task's variant, or an empty string if it can."""
    inner, variant = env.unwrapped, task.variant
    if variant.changes_model and not has_model(env):
        changed = [name for name in _MODEL_FIELDS if getattr(variant, name) != 1.0]
        return f"task {task.name!r}: {task.id} is not a MuJoCo environment, so it cannot vary {', '.join(changed)}"
    if variant.reset_noise != 1.0 and not hasattr(inner, "_reset_noise_scale"):
        return f"task {task.name!r}: {task.id} has no scale of reset noise, so it cannot vary reset_noise"
    return ""
