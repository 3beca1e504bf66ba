"""Environments of a careless user: each misbehaves in its own way, or has very many observations."""

import contextlib
import os
import subprocess
import time
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np

from evergait.core.random import COLLECTION, Noise

COMMAND = Path("/proc/self/cmdline").read_text()
IS_ASKED, IS_SIMULATED = ("evergait." + module in COMMAND for module in ("tasks.process", "engines.gymnasium.episode"))
"""What the process that imports this is there for."""
LITTER = "3607"
"""Seconds that a forgotten process would sleep; nothing else sleeps as long."""


RECORDING = ("recording-raise", "recording-hang", "recording-die")
RECORDED = {int(seed) for seed in Noise(0, COLLECTION, stage=1).integers(2)}
"""Seeds of the episodes that are recorded when the second phase of a run begins."""


class Careless(gymnasium.Env):
    """Two observations, one action, and a fault that some episodes meet in their second step."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.n_steps, self.bad = 0, False
        if (fault == "making" and IS_SIMULATED) or (fault == "asking" and IS_ASKED):
            time.sleep(3600)
        if fault == "litter":
            subprocess.Popen(["sleep", LITTER])
        if fault == "dying" and IS_ASKED:
            os._exit(7)
        if fault == "unmakable":
            raise ZeroDivisionError("no such motor")

    def misbehave(self, fault: str) -> None:
        """What the fault does to the process."""
        if fault == "raise":
            raise ZeroDivisionError("the joint is missing")
        if fault == "hang":
            time.sleep(3600)
        if fault == "die":
            os._exit(7)


class Broken(Careless):
    """Three steps; the episode with seed 103 meets the fault."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.n_steps, self.bad = 0, seed == 103
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.n_steps += 1
        if self.bad and self.n_steps == 2:
            self.misbehave(self.fault)
        return np.zeros(2, np.float32), 1.0, self.n_steps == 3, False, {}


class Strange(Careless):
    """Five steps; a candidate whose first action is positive meets the fault from its second step on."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.n_steps, self.bad = 0, False
        if self.fault in RECORDING and seed in RECORDED:
            self.misbehave(self.fault.removeprefix("recording-"))
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.n_steps += 1
        self.bad |= self.n_steps == 1 and bool(action[0] > 0)
        reward, observation = float(action[0]), self.np_random.uniform(-1, 1, 2).astype(np.float32)
        if self.bad and self.n_steps >= 2:
            self.misbehave(self.fault)
            if self.fault == "observation":
                observation = np.full(2, np.nan, np.float32)
            reward = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "overflow": 1.7e308}.get(self.fault, reward)
        return observation, reward, self.n_steps == 5, False, {}


class UnreadableError(Exception):
    """Cannot be told in words, nor pickled."""

    def __init__(self) -> None:
        self.thing = lambda: None

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Liar(Careless):
    """What its second step, or its reset, returns is not what its spaces promise."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.n_steps = 0
        return self.seen("reset-"), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.n_steps += 1
        if self.n_steps == 2:
            self.lie()
        reward = {"reward-text": "1.0", "reward-list": [1.0, 2.0], "reward-none": None}.get(self.fault, 1.0)
        return self.seen(""), reward, self.n_steps == 3, False, {}

    def seen(self, prefix: str) -> object:
        wrong = {
            "short": np.zeros(1),
            "empty": np.zeros(0),
            "long": np.zeros(3),
            "matrix": np.zeros((1, 2)),
            "number": np.float64(1.0),
            "text": np.array(["1", "2"]),
            "complex": np.zeros(2, np.complex128),
            "object": np.array([None, None]),
            "ragged": [[0.0], [1.0, 2.0]],
            "nothing": None,
        }
        name = self.fault.removeprefix(prefix) if prefix else self.fault
        is_now = self.fault.startswith(prefix) if prefix else self.n_steps == 2
        return wrong[name] if is_now and name in wrong else np.zeros(2, np.float32)

    def lie(self) -> None:
        """What is worse than a wrong number."""
        if self.fault == "unreadable":
            raise UnreadableError
        if self.fault == "exit":
            raise SystemExit(0)
        if self.fault == "interrupt":
            raise KeyboardInterrupt
        if self.fault == "scribble":
            for descriptor in range(3, 256):
                with contextlib.suppress(OSError):
                    os.write(descriptor, b"AAAAAAAA" * 64)
        if self.fault == "fork" and os.fork() == 0:
            self.n_steps += 0  # the child goes on as if it were the parent


class Void(Careless):
    """Observes nothing, or can do nothing."""

    def __init__(self, fault: str = "") -> None:
        super().__init__(fault)
        if fault == "blind":
            self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (0,))
        else:
            self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (0,))


WRONG = ("short", "empty", "long", "matrix", "number", "text", "complex", "object", "ragged", "nothing")
REWARDS = ("reward-text", "reward-list", "reward-none")
LIES = (*WRONG, *(f"reset-{name}" for name in WRONG), *REWARDS, "unreadable", "exit", "interrupt", "scribble", "fork")
for fault in LIES:
    gymnasium.register(f"Liar-{fault}-v0", cast("Any", Liar), kwargs={"fault": fault})
for fault in ("blind", "lame"):
    gymnasium.register(f"Void-{fault}-v0", cast("Any", Void), kwargs={"fault": fault})
for fault in ("raise", "hang", "die"):
    gymnasium.register(f"Broken-{fault}-v0", cast("Any", Broken), kwargs={"fault": fault})
FAULTS = ("litter", "raise", "hang", "die", "making", "asking", "dying", "unmakable", *RECORDING)
for fault in (*FAULTS, "nan", "inf", "-inf", "overflow", "observation", ""):
    gymnasium.register(f"Strange{fault.title()}-v0", cast("Any", Strange), kwargs={"fault": fault})


class Wide(gymnasium.Env):
    """Three steps of noise; the reward is the action."""

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))

    def __init__(self, n: int) -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (n,))
        self.n_steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.n_steps = 0
        return self.look(), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.n_steps += 1
        return self.look(), float(action[0]), self.n_steps == 3, False, {}

    def look(self) -> np.ndarray:
        return self.np_random.uniform(-1, 1, self.observation_space.shape)


for n in (600, 20_000, 65_536, 65_537):
    gymnasium.register(f"Wide{n}-v0", cast("Any", Wide), kwargs={"n": n})
