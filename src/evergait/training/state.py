"""What a phase carries from one generation to the next, and its form in a checkpoint."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evergait.core.arrays import Array, Float32, Float64
from evergait.core.errors import EvergaitError
from evergait.core.files import parse_json
from evergait.policy import Policy, Statistics

GROUPS = "optimizer.", "statistics."
"""Of tensors that a start of its own has beside θ."""


@dataclass(frozen=True)
class State:
    """A phase after some generation."""

    theta: Float32
    optimizer: Mapping[str, Float64]
    statistics: Statistics
    generation: int = 0
    horizon: int = 0
    """Where training episodes are cut; 0 leaves the task's own limit."""
    best_theta: Float32 = field(default_factory=lambda: np.zeros(0, np.float32))
    """The θ with the best evaluation on what is being learnt, empty before the first one; with carry "best-population",
    the one after the generation whose members did best."""
    best_return: float = -np.inf
    snapshots: Mapping[str, Float32] = field(default_factory=dict)
    """θ at some evaluations on the way, by generation."""
    steps: Mapping[str, int] = field(default_factory=dict)
    """Environment steps since the last evaluation, by kind."""
    diverged: int = 0
    """Training episodes that diverged since the last evaluation."""
    n_steps: int = 0
    """Environment steps of the whole phase so far, evaluations included."""
    spent: int = 0
    """The same without evaluations: what counts where a phase's length is in steps."""
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    """Sums over the generations since the last evaluation; they decide nothing."""
    memory: Mapping[str, Array] = field(default_factory=dict)
    """What the method keeps, by name; the next phase starts from it."""

    n_started: int = 0
    """How many of several starts are over."""
    rival: Mapping[str, Array] = field(default_factory=dict)
    """θ, optimizer and statistics at the end of the best of them, while others follow."""
    rival_return: float = -np.inf
    """Mean return of its members."""

    def tensors(self) -> dict[str, Array]:
        """The arrays, by name."""
        return {
            "theta": self.theta,
            "best_theta": self.best_theta,
            **{f"snapshot.{generation}": theta for generation, theta in self.snapshots.items()},
            **{f"optimizer.{key}": value for key, value in self.optimizer.items()},
            **{f"statistics.{task}": value for task, value in self.statistics.sums.items()},
            **{f"memory.{name}": value for name, value in self.memory.items()},
            **{f"rival.{name}": value for name, value in self.rival.items()},
        }

    def result(self) -> dict[str, Array]:
        """The arrays that outlive the phase."""
        return {name: value for name, value in self.tensors().items() if not name.startswith("optimizer.")}

    def metadata(self) -> dict[str, str]:
        """The numbers, as text."""
        numbers: dict[str, Any] = {
            "generation": self.generation,
            "horizon": self.horizon,
            "best_return": self.best_return if np.isfinite(self.best_return) else None,
            "steps": dict(self.steps),
            "diverged": self.diverged,
            "n_steps": self.n_steps,
            "spent": self.spent,
        }
        if self.diagnostics:
            numbers["diagnostics"] = dict(self.diagnostics)
        if self.n_started:
            numbers["n_started"] = self.n_started
            numbers["rival_return"] = self.rival_return if np.isfinite(self.rival_return) else None
        return {"state": json.dumps(numbers)}

    @staticmethod
    def load(tensors: Mapping[str, Array], metadata: Mapping[str, str], policy: Policy, where: object) -> "State":
        """Back from tensors and metadata, which must fit the policy: the native core trusts their sizes."""
        try:
            state = State._parse(tensors, metadata)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise EvergaitError(f"{where}: holds no state of a phase ({error!r})") from error
        n = policy.n_parameters
        names = ("theta", *(f"snapshot.{generation}" for generation in state.snapshots))
        expected: dict[str, tuple[tuple[int, ...], Any]] = dict.fromkeys(names, ((n,), np.float32))
        expected["best_theta"] = (n if state.best_theta.size else 0,), np.float32
        for name, sums in Statistics.empty(policy.tasks).sums.items():
            expected[f"statistics.{name}"] = sums.shape, np.float64
        if state.rival:
            alike = {"theta": state.theta} | {k: v for k, v in state.tensors().items() if k.startswith(GROUPS)}
            expected |= {f"rival.{name}": (tensor.shape, tensor.dtype) for name, tensor in alike.items()}
        for name, (shape, kind) in expected.items():
            tensor = tensors.get(name)
            if tensor is None or tensor.shape != shape or tensor.dtype != kind:
                raise EvergaitError(f"{where}: its tensor {name!r} does not fit the policy of its config")
        return state

    @staticmethod
    def _parse(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> "State":
        numbers = parse_json(metadata["state"])
        numbers.setdefault("spent", 0)  # files from before lengths in steps
        numbers.setdefault("n_started", 0)
        counts = [numbers[name] for name in ("generation", "horizon", "diverged", "n_steps", "spent", "n_started")]
        if not all(type(count) is int and count >= 0 for count in (*counts, *numbers["steps"].values())):
            raise ValueError("a count in it is not a whole number")
        sums = numbers.setdefault("diagnostics", {}).values()
        if not all(type(number) in (int, float) for number in sums):
            raise ValueError("a sum in it is not a number")
        for name in ("best_return", "rival_return"):
            numbers[name] = -np.inf if numbers.get(name) is None else float(numbers[name])

        def group(prefix: str) -> dict[str, Array]:
            return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}

        if not all(name.isascii() and name.isdigit() for name in group("snapshot.")):
            raise ValueError("a snapshot's name is not a generation")
        return State(
            theta=tensors["theta"],
            best_theta=tensors["best_theta"],
            snapshots=group("snapshot."),
            optimizer=group("optimizer."),
            statistics=Statistics(group("statistics.")),
            memory=group("memory."),
            rival=group("rival."),
            **numbers,
        )
