"""Hooks of other people's methods: one that is misspelt is refused, and so is what none of them may return."""

import functools
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from evergait.core.errors import EvergaitError


def _is_memory(value: Any, *given: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and isinstance(item, np.ndarray) and item.dtype.kind in "fiub"
        for key, item in value.items()
    )


def _is_plan(value: Any, *given: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) > 0 and all(hasattr(batch, "n_pairs") for batch in value)


def _is_utilities(value: Any, batches: Any, fitness: Any, *given: Any) -> bool:
    return isinstance(value, list | tuple) and [np.shape(part) for part in value] == [part.shape for part in fitness]


def _is_like(value: Any, given: Any) -> bool:
    return isinstance(value, np.ndarray) and (value.shape, value.dtype) == (given.shape, given.dtype)


def _is_gradient(value: Any, batches: Any, gradients: Any, combined: Any) -> bool:
    return _is_like(value, combined)


def _is_step(value: Any, context: Any, step: Any, theta: Any, memory: Any) -> bool:
    fits = isinstance(value, tuple | list) and len(value) == 2 and _is_like(value[0], theta) and _is_memory(value[1])
    return fits and bool(np.isfinite(value[0]).all() or not np.isfinite(theta).all())


HOOKS: Mapping[str, tuple[Callable[..., bool], str]] = {
    "begin": (_is_memory, "memory, a dictionary of arrays of numbers"),
    "plan": (_is_plan, "a tuple of batches, at least one"),
    "utilities": (_is_utilities, "a list of arrays, one per batch, of a number per member"),
    "combine": (_is_gradient, "a gradient of the same shape and dtype as `combined`"),
    "after_step": (_is_step, "θ, finite, of the same shape and dtype, and memory, a dictionary of arrays of numbers"),
}
"""Name → what its answer must be, as a function of it and of what the hook was given, and in words."""


def guard(method: type[Any]) -> None:
    """Let every hook that a class writes be checked whenever it answers."""
    for name, member in list(vars(method).items()):
        if name in HOOKS and callable(member):
            setattr(method, name, _checked(name, member))
        elif callable(member) and not name.startswith("_") and (meant := get_close_matches(name, HOOKS, 1, 0.8)):
            raise EvergaitError(f"{method.__qualname__}: there is no hook {name!r}; did you mean {meant[0]!r}?")


def _checked(hook: str, function: Callable[..., Any]) -> Callable[..., Any]:
    is_right, words = HOOKS[hook]

    @functools.wraps(function)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        answer = function(self, *given, **named)
        if not is_right(answer, *given, *named.values()):
            raise EvergaitError(f"method {self.name!r}: {hook} has returned {answer!r:.100}; it must be {words}")
        return answer

    return call
