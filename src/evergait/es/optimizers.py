"""Gradient → step. All ascend; all work on the parameters that a generation touched and leave the others alone."""

import decimal
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evergait.core.arrays import Bool, Float32, Float64
from evergait.core.data import Family, require

State = Mapping[str, Float64]


def power(base: float, n: int) -> float:
    """baseⁿ, correctly rounded: the C library's own differs from processor to processor in the last bit.

    >>> power(0.5, 3)
    0.125
    """
    with decimal.localcontext() as context:
        context.prec = 50
        return float(decimal.Decimal(base) ** n)


@dataclass(frozen=True)
class Optimizer(Family):
    """Turns a search gradient into a step."""

    learning_rate: float = 0.05
    """Size of a step, η."""
    weight_decay: float = 0.0
    """Share of every touched parameter that is taken away per generation: θ ← (1 − weight_decay) θ + step."""

    def check(self) -> None:
        """Raise EvergaitError for settings that cannot work."""
        require(self.learning_rate > 0, "optimizer.learning_rate", self.learning_rate, "above 0")
        require(0 <= self.weight_decay < 1, "optimizer.weight_decay", self.weight_decay, "at least 0 and below 1")

    def start(self, n_parameters: int) -> State:
        """The state before the first generation of a phase."""
        return {}

    def step(self, gradient: Float64, state: State) -> tuple[Float64, State]:
        """(n,) gradient and state → (n,) step and next state."""
        raise TypeError(f"{type(self).__name__} does not say how to step")

    def update(self, theta: Float32, gradient: Float64, touched: Bool, state: State) -> tuple[Float32, State]:
        """One ascent of θ, in float64 and rounded once; untouched parameters and their state stay as they are."""
        before = {key: value[touched] if value.ndim else value for key, value in state.items()}
        step, part = self.step(gradient[touched], before)
        after = theta.copy()
        after[touched] = (1 - self.weight_decay) * theta[touched].astype(np.float64) + step
        return after, {key: _put(state[key], touched, value) for key, value in part.items()}


def _put(whole: Float64, touched: Bool, part: Float64) -> Float64:
    if not whole.ndim:
        return part
    whole = whole.copy()
    whole[touched] = part
    return whole


@dataclass(frozen=True)
class Plain(Optimizer, name="plain"):
    """θ ← θ + η g, the paper's update."""

    def step(self, gradient: Float64, state: State) -> tuple[Float64, State]:
        """η g."""
        return self.learning_rate * gradient, state


@dataclass(frozen=True)
class Momentum(Optimizer, name="momentum"):
    """v ← m v + (1 − m) g; θ ← θ + η v."""

    momentum: float = 0.9
    """Share m of the old velocity that is kept."""

    def check(self) -> None:
        """Raise EvergaitError for settings that cannot work."""
        super().check()
        require(0 <= self.momentum < 1, "optimizer.momentum", self.momentum, "at least 0 and below 1")

    def start(self, n_parameters: int) -> State:
        """No velocity."""
        return {"velocity": np.zeros(n_parameters)}

    def step(self, gradient: Float64, state: State) -> tuple[Float64, State]:
        """η v."""
        velocity = self.momentum * state["velocity"] + (1 - self.momentum) * gradient
        return self.learning_rate * velocity, {"velocity": velocity}


@dataclass(frozen=True)
class Adam(Optimizer, name="adam"):
    """Kingma & Ba 2015 (arXiv:1412.6980), Algorithm 1."""

    learning_rate: float = 0.02
    """Size of a step, η."""
    beta1: float = 0.9
    """Decay of the first moment."""
    beta2: float = 0.999
    """Decay of the second moment."""
    epsilon: float = 1e-8
    """Added to the root of the second moment."""

    def check(self) -> None:
        """Raise EvergaitError for settings that cannot work."""
        super().check()
        require(0 <= self.beta1 < 1, "optimizer.beta1", self.beta1, "at least 0 and below 1")
        require(0 <= self.beta2 < 1, "optimizer.beta2", self.beta2, "at least 0 and below 1")
        require(self.epsilon > 0, "optimizer.epsilon", self.epsilon, "above 0")

    def start(self, n_parameters: int) -> State:
        """Zero moments and no steps taken."""
        return {"first": np.zeros(n_parameters), "second": np.zeros(n_parameters), "n_steps": np.zeros(())}

    def step(self, gradient: Float64, state: State) -> tuple[Float64, State]:
        """η m̂ / (√v̂ + ε)."""
        n_steps = state["n_steps"] + 1
        first = self.beta1 * state["first"] + (1 - self.beta1) * gradient
        second = self.beta2 * state["second"] + (1 - self.beta2) * gradient**2
        unbiased_first = first / (1 - power(self.beta1, int(n_steps)))
        unbiased_second = second / (1 - power(self.beta2, int(n_steps)))
        step = self.learning_rate * unbiased_first / (np.sqrt(unbiased_second) + self.epsilon)
        return step, {"first": first, "second": second, "n_steps": np.asarray(n_steps)}


@dataclass(frozen=True)
class ClipUp(Optimizer, name="clipup"):
    """Toklu et al. 2020 (arXiv:2008.02387): normalised gradient, momentum, clipped velocity."""

    learning_rate: float = 0.15
    """Length of the step that a gradient adds to the velocity."""
    momentum: float = 0.9
    """Share of the old velocity that is kept."""
    max_speed: float = 0.3
    """Greatest length of the velocity."""

    def check(self) -> None:
        """Raise EvergaitError for settings that cannot work."""
        super().check()
        require(0 <= self.momentum < 1, "optimizer.momentum", self.momentum, "at least 0 and below 1")
        require(self.max_speed > 0, "optimizer.max_speed", self.max_speed, "above 0")

    def start(self, n_parameters: int) -> State:
        """No velocity."""
        return {"velocity": np.zeros(n_parameters)}

    def step(self, gradient: Float64, state: State) -> tuple[Float64, State]:
        """Clip(m v + η g/|g|)."""
        length = np.sqrt(np.sum(gradient**2))
        velocity = self.momentum * state["velocity"] + self.learning_rate * gradient / (length if length > 0 else 1.0)
        speed = np.sqrt(np.sum(velocity**2))
        velocity = velocity * min(1.0, self.max_speed / speed) if speed > 0 else velocity
        return velocity, {"velocity": velocity}
