"""Hooks of other people's methods: one that is misspelt is refused, and so is what none of them may return."""

import functools
import inspect
from collections.abc import Callable, Mapping
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from evergait.core.errors import EvergaitError


def _is_memory(value: Any, *given: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and isinstance(item, np.ndarray | np.generic) and item.dtype.kind in "fiub"
        for key, item in value.items()
    )


def _is_plan(value: Any, *given: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) > 0 and all(hasattr(batch, "n_pairs") for batch in value)


def _is_utilities(value: Any, batches: Any, fitness: Any, *given: Any) -> bool:
    listed = isinstance(value, list | tuple | np.ndarray) and len(value) == len(fitness)
    return listed and all(_is_like(mine, theirs, "d") for mine, theirs in zip(value, fitness, strict=True))


def _is_like(value: Any, given: Any, kinds: str) -> bool:
    return isinstance(value, np.ndarray) and value.shape == given.shape and value.dtype.char in kinds


def _is_gradient(value: Any, batches: Any, gradients: Any, combined: Any) -> bool:
    return _is_like(value, combined, "fd")


def _is_step(value: Any, context: Any, step: Any, theta: Any, memory: Any) -> bool:
    return (
        isinstance(value, tuple | list) and len(value) == 2 and _is_like(value[0], theta, "f") and _is_memory(value[1])
    )


HOOKS: Mapping[str, tuple[Callable[..., bool], str]] = {
    "begin": (_is_memory, "memory, a dictionary of arrays of numbers"),
    "plan": (_is_plan, "a tuple of batches, at least one"),
    "utilities": (_is_utilities, "a list of float64 arrays, one per batch, of a number per member"),
    "combine": (_is_gradient, "a gradient of the same shape as `combined`"),
    "after_step": (_is_step, "θ, float32 and of the same shape, and memory, a dictionary of arrays of numbers"),
}
"""Name → whether an answer is right, given also what the hook was given, and what it must be."""


def guard(method: type[Any]) -> None:
    """Let every hook that a class writes be checked whenever training asks it."""
    written = {name: member for name, member in vars(method).items() if inspect.isfunction(member)}
    for name, member in written.items():
        if name in HOOKS:
            setattr(method, name, _checked(name, member))
        elif meant := next((hook for hook in HOOKS if hook not in written and _is_misspelt(name, hook)), ""):
            raise EvergaitError(f"{method.__qualname__}: there is no hook {name!r}; did you mean {meant!r}?")


def _is_misspelt(name: str, hook: str) -> bool:
    """Whether a name can hardly be another one; a short word has too many neighbours, such as plane and combined."""
    close = len(hook) > 8 and SequenceMatcher(None, name, hook).ratio() > 0.85
    return close or name.replace("_", "").lower() == hook.replace("_", "")


def _checked(hook: str, function: Callable[..., Any]) -> Callable[..., Any]:
    is_right, words = HOOKS[hook]

    @functools.wraps(function)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        was_finite = hook == "after_step" and not named and np.isfinite(given[2]).all()
        answer = function(self, *given, **named)
        if not named and not is_right(answer, *given):  # training asks by position; who asks by name looks for himself
            raise EvergaitError(f"method {self.name!r}: {hook} has returned {answer!r:.100}; it must be {words}")
        if was_finite and not np.isfinite(answer[0]).all():
            raise EvergaitError(f"method {self.name!r}: {hook} has returned a θ that is not finite")
        return answer

    return call
