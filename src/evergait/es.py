"""Evolution strategies: returns → utilities, gradient → step."""

import decimal
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evergait.core.arrays import Bool, Float32, Float64
from evergait.core.data import Family, require

Shaping = Literal["centered-ranks", "ordered-ranks", "z-score", "nes", "raw"]
BY_ORDER = ("centered-ranks", "ordered-ranks", "nes")
"""Those that see nothing of returns but their order."""


def mean_ranks(fitness: Float64) -> Float64:
    """(n,) ranks 0..n-1, rising with fitness; ties share the mean of their ranks.

    >>> mean_ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [1.5, 0.0, 1.5]
    """
    _, place, count = np.unique(fitness, return_inverse=True, return_counts=True)
    below = np.cumsum(count) - count
    return (below + (count - 1) / 2)[place]


def centered_ranks(fitness: Float64) -> Float64:
    """(n,) ranks scaled to [−½, ½]; their sum is zero (Salimans et al. 2017, arXiv:1703.03864).

    >>> centered_ranks(np.array([10.0, 30.0, 20.0])).tolist()
    [-0.5, 0.5, 0.0]
    """
    n = len(fitness)
    return mean_ranks(fitness) / (n - 1) - 0.5 if n > 1 else np.zeros(n)


def ordered_ranks(fitness: Float64) -> Float64:
    """(n,) centred ranks with no ties: of equal members, the later one has the higher rank.

    >>> ordered_ranks(np.array([7.0, 0.0, 7.0])).tolist()
    [0.0, -0.5, 0.5]
    """
    n = len(fitness)
    ranks = np.empty(n)
    ranks[np.argsort(fitness, kind="stable")] = np.arange(n)
    return ranks / (n - 1) - 0.5 if n > 1 else np.zeros(n)


def z_score(fitness: Float64) -> Float64:
    """(n,) (F − mean) / standard deviation; zero where all are equal."""
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = fitness - fitness.mean()
        spread = np.sqrt(np.mean(deviation**2))
    if not np.isfinite(spread):  # too large to be squared or summed
        return z_score(fitness / np.abs(fitness).max())
    return deviation / spread if spread > 0 else np.zeros(len(fitness))


def nes(fitness: Float64) -> Float64:
    """(n,) utilities max(0, ln(n/2+1) − ln(place)), scaled to sum one, minus 1/n, times n (Wierstra et al. 2014).

    The factor n makes up for the division by the population in the gradient. Ties share their mean place.
    """
    n = len(fitness)
    place = n - mean_ranks(fitness)  # 1 is best
    # math.log, for NumPy's own logarithm depends on the machine's vector instructions in the last bit
    weight = np.array([max(0.0, math.log(n / 2 + 1) - math.log(p)) for p in place])
    utilities: Float64 = n * weight / weight.sum() - 1
    return utilities


SHAPINGS: dict[str, Callable[[Float64], Float64]] = {
    "centered-ranks": centered_ranks,
    "ordered-ranks": ordered_ranks,
    "z-score": z_score,
    "nes": nes,
    "raw": lambda fitness: fitness,
}


def shape(fitness: Float64, shaping: Shaping) -> Float64:
    """(n,) returns of all members, not finite where diverged → (n,) utilities."""
    diverged = ~np.isfinite(fitness)
    if diverged.all():
        return np.zeros(len(fitness))
    worst = fitness[~diverged].min()
    if shaping in BY_ORDER:  # strictly below the worst that survived
        with np.errstate(over="ignore"):
            worst = np.nextafter(worst, -np.inf)
    return SHAPINGS[shaping](np.where(diverged, worst, fitness))


OptimizerState = Mapping[str, Float64]


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

    def start(self, n_parameters: int) -> OptimizerState:
        """The state before the first generation of a phase."""
        return {}

    def step(self, gradient: Float64, state: OptimizerState) -> tuple[Float64, OptimizerState]:
        """(n,) gradient and state → (n,) step and next state."""
        raise TypeError(f"{type(self).__name__} does not say how to step")

    def update(
        self, theta: Float32, gradient: Float64, touched: Bool, state: OptimizerState
    ) -> tuple[Float32, OptimizerState]:
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

    def step(self, gradient: Float64, state: OptimizerState) -> tuple[Float64, OptimizerState]:
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

    def start(self, n_parameters: int) -> OptimizerState:
        """No velocity."""
        return {"velocity": np.zeros(n_parameters)}

    def step(self, gradient: Float64, state: OptimizerState) -> tuple[Float64, OptimizerState]:
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

    def start(self, n_parameters: int) -> OptimizerState:
        """Zero moments and no steps taken."""
        return {"first": np.zeros(n_parameters), "second": np.zeros(n_parameters), "n_steps": np.zeros(())}

    def step(self, gradient: Float64, state: OptimizerState) -> tuple[Float64, OptimizerState]:
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

    def start(self, n_parameters: int) -> OptimizerState:
        """No velocity."""
        return {"velocity": np.zeros(n_parameters)}

    def step(self, gradient: Float64, state: OptimizerState) -> tuple[Float64, OptimizerState]:
        """Clip(m v + η g/|g|)."""
        length = np.sqrt(np.sum(gradient**2))
        velocity = self.momentum * state["velocity"] + self.learning_rate * gradient / (length if length > 0 else 1.0)
        speed = np.sqrt(np.sum(velocity**2))
        velocity = velocity * min(1.0, self.max_speed / speed) if speed > 0 else velocity
        return velocity, {"velocity": velocity}
