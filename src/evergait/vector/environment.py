"""A Gymnasium VectorEnv around robots: spaces, seeds, autoreset and infos as Gymnasium's SyncVectorEnv has them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from evergait.core.arrays import Array, Bool, Float64
from evergait.core.errors import EvergaitError, nearest
from evergait.tasks import Variant
from evergait.vector.robots import Columns, Robots, everybody, nobody

Infos = dict[str, Any]


class RefusedError(EvergaitError, ValueError):
    """A mistake in what was given to an environment; Gymnasium's own raise ValueError."""


@dataclass(frozen=True)
class VectorState:
    """A vector environment at one moment, to come back to."""

    robots: Mapping[str, Array]
    observations: Array
    over: Bool
    variants: tuple[Variant, ...]
    kind: str
    """Which robot on which engine."""

    def take(self, rows: Array | Sequence[int]) -> "VectorState":
        """Some environments of it, in any order and as often as wanted, for an environment of as many."""
        which = _rows(rows, len(self.variants), "rows")
        robots = {name: values[which] for name, values in self.robots.items()}
        variants = tuple(self.variants[row] for row in which)
        return VectorState(robots, self.observations[which], self.over[which], variants, self.kind)


class VectorEnvironment(VectorEnv[Array, Array, Array]):
    """`num_envs` robots, each equal to an environment of Gymnasium's own."""

    threads: int = 1
    _spec: EnvSpec | None = None

    def __init__(
        self,
        robots: Robots,
        observation_space: gymnasium.spaces.Box,
        action_space: gymnasium.spaces.Box,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        infos: bool = True,
    ) -> None:
        self._robots: Robots | None = robots
        self.num_envs, self.copy, self.infos = robots.n, copy, infos
        self.autoreset_mode = _mode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self.single_observation_space: gymnasium.spaces.Box = observation_space
        self.single_action_space: gymnasium.spaces.Box = action_space
        self.observation_space = batch_space(observation_space, self.num_envs)
        self.action_space = batch_space(action_space, self.num_envs)
        self._over = everybody(self.num_envs)
        self._begun = nobody(self.num_envs)

    @property
    def robots(self) -> Robots:
        """What is stepped."""
        if self._robots is None:
            raise RefusedError("the environment is closed; make another one")
        return self._robots

    def close_extras(self, **kwargs: Any) -> None:
        """Let go of the robots and of the threads that step them."""
        self._robots = None

    @property
    def spec(self) -> EnvSpec | None:
        """What was made; Gymnasium's make_vec gives one of its registry, whose time limit may be another one."""
        return self._spec

    @spec.setter
    def spec(self, given: EnvSpec | None) -> None:
        if given and self._spec:
            given = replace(given, max_episode_steps=self._spec.max_episode_steps)
        self._spec = given

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The variant of every environment."""
        return tuple(self.robots.variants)

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]
        """What each environment's generator was seeded with; from the system's entropy if by nobody yet."""
        for row in range(self.num_envs):
            self.robots.generators.seed(row, None)
        return tuple(self.robots.generators.seeds)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Copies of the generators that resets draw from."""
        assert None not in self.np_random_seed  # noqa: S101 - asking seeds them
        return tuple(self.robots.generators.get(i) for i in range(self.num_envs))

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, Infos]:
        """Begin new episodes, in all environments or in those of `options["reset_mask"]`."""
        which = self._reset_mask(options)
        for i, one in enumerate(self._seeds(seed)):
            if which[i]:
                self.robots.generators.seed(i, one)
        self.robots.begin(which)
        self._over[which] = False
        self._begun |= which
        return self._given(self.robots.observations), self._told(nobody(self.num_envs), which)

    def step(self, actions: Array) -> tuple[Array, Float64, Bool, Bool, Infos]:
        """One step of every environment; those that ended begin anew as the autoreset mode says."""
        robots, begun = self.robots, self._over
        self._require_begun("step")
        numbers = real_numbers(actions, "actions: are", "they must be")
        with np.errstate(over="ignore"):  # what is then infinite is refused by its place
            acting = np.ascontiguousarray(numbers, np.float32)
        if acting.shape != self.action_space.shape:
            raise RefusedError(f"actions: their shape is {acting.shape}; it must be {self.action_space.shape}")
        final: Infos = {}
        ended = bool(begun.any())
        if self.autoreset_mode == AutoresetMode.DISABLED and ended:
            rows = np.flatnonzero(begun)[:5].tolist()
            raise RefusedError(f"step: environments {rows} have ended; reset them with options={{'reset_mask': ...}}")
        robots.step(acting, ~begun if ended else everybody(self.num_envs))
        if self.autoreset_mode == AutoresetMode.NEXT_STEP and ended:
            robots.begin(begun)
            for values in (robots.rewards, robots.terminated, robots.truncated):
                values[begun] = 0
        over, diverged = robots.terminated | robots.truncated, robots.diverged.copy()
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            begun, self._over = over, nobody(self.num_envs)
            if over.any():
                final = self._final(over)
                robots.begin(over)
        else:
            self._over = over
        infos = self._told(~begun, begun) | final
        if diverged.any():
            infos["diverged"], infos["_diverged"] = diverged, diverged.copy()
        given = (self._given(x) for x in (robots.observations, robots.rewards, robots.terminated, robots.truncated))
        return *given, infos  # type: ignore[return-value]

    def set_variant(self, which: Array | Sequence[int] | int, variant: Variant | Sequence[Variant]) -> None:
        """Change the bodies of some environments, named by a mask or by indices, in the middle of their episodes."""
        rows = _rows(which, self.num_envs, "which")
        given: Any = [variant] * len(rows) if isinstance(variant, Variant) else variant
        new = list(given) if isinstance(given, Iterable) else [given]
        if wrong := [one for one in new if not isinstance(one, Variant)]:
            raise RefusedError(f"variant: is {wrong[0]!r}; it must be a Variant, such as Variant(gravity=0.5)")
        if len(new) != len(rows):
            raise RefusedError(f"variant: there are {len(new)} for {len(rows)} environments; give one, or one for each")
        variants = list(self.robots.variants)
        for row, one in zip(rows, new, strict=True):
            variants[row] = one
        self.robots.set_variants(variants)

    def get_state(self) -> VectorState:
        """Everything that decides what comes next, to come back to."""
        self._require_begun("get_state")
        observations = self.robots.observations.copy()
        robots = {name: values.copy() for name, values in self.robots.live().items()}
        return VectorState(robots, observations, self._over.copy(), self.variants, self.robots.kind)

    def set_state(self, state: VectorState) -> None:
        """Go back to a state of this environment, or of one that was made alike."""
        live = self.robots.live()
        self._check_state(state, live)
        if state.variants != self.variants:
            self.robots.set_variants(state.variants)
        for name, values in live.items():
            values[:] = state.robots[name]
        self.robots.observations[:] = state.observations
        self._over, self._begun = state.over.copy(), everybody(self.num_envs)

    def clone(self) -> "VectorEnvironment":
        """Another one in the same state, to look ahead with."""
        self._require_begun("clone")
        spaces_ = self.single_observation_space, self.single_action_space
        twin = VectorEnvironment(self.robots.twin(), *spaces_, self.autoreset_mode, self.copy, self.infos)
        twin.spec, twin.threads = self.spec, self.threads
        twin.robots.generators.seeds = list(self.robots.generators.seeds)
        twin.set_state(self.get_state())
        return twin

    def _check_state(self, state: Any, live: Mapping[str, Array]) -> None:
        """Refuse a state of something else while nothing has been written."""
        if not isinstance(state, VectorState):
            raise RefusedError(f"state: is {state!r}; it must be what get_state gives")
        if state.kind != self.robots.kind:
            raise RefusedError(f"state: is of {state.kind}; it must be of {self.robots.kind}")
        right = {"observations": self.robots.observations, "over": self._over, **live}
        found = {"observations": state.observations, "over": state.over, **state.robots}
        if wrong := set(right) ^ set(found):
            raise RefusedError(f"state: its arrays are {', '.join(sorted(found))}; {sorted(wrong)[0]} is amiss")
        for name, values in right.items():
            given = np.asarray(found[name])
            if given.shape != values.shape or given.dtype.kind != values.dtype.kind:
                is_, must = (f"{array.dtype} {array.shape}" for array in (given, values))
                raise RefusedError(f"state: its {name} are {is_}; they must be {must}")
        if len(state.variants) != self.num_envs:
            raise RefusedError(f"state: it has {len(state.variants)} variants; it must have {self.num_envs}")

    def _require_begun(self, what: str) -> None:
        if not self._begun.all():
            rows = np.flatnonzero(~self._begun)[:5].tolist()
            raise RefusedError(f"{what}: environments {rows} have not begun; call reset first")

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Iterable[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            seed = [int(seed) + i for i in range(self.num_envs)]
        if isinstance(seed, str | bytes) or not isinstance(seed, Sequence | np.ndarray):
            raise RefusedError(
                f"seed: is {seed!r}; it must be a whole number, None, or one of these for each environment"
            )
        if len(seed) != self.num_envs:
            raise RefusedError(f"seed: there are {len(seed)} for {self.num_envs} environments; give one for each")
        return [None if one is None else _seed(one) for one in seed]

    def _reset_mask(self, options: dict[str, Any] | None) -> Bool:
        if not isinstance(options, dict | None):
            raise RefusedError(f"options: is {options!r}; it must be a dictionary or None")
        if not options or "reset_mask" not in options:
            return everybody(self.num_envs)
        mask = options["reset_mask"]
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            is_ = f"{mask.dtype} {mask.shape}" if isinstance(mask, np.ndarray) else type(mask).__name__
            raise RefusedError(f"options['reset_mask']: is {is_}; it must be an array of bool, ({self.num_envs},)")
        if not mask.any():
            raise RefusedError("options['reset_mask']: is False everywhere; it must name an environment")
        return np.ascontiguousarray(mask)

    def _given(self, values: Array) -> Array:
        return values.copy() if self.copy else values

    def _told(self, stepped: Bool, begun: Bool) -> Infos:
        """Infos of environments that made a step, and of those that began; zeros where there is nothing to tell."""
        if not self.infos:
            return {}
        if not begun.any():
            return _masked(self.robots.step_infos(), stepped)
        told: Infos = {}
        if stepped.any():
            step_infos = self.robots.step_infos()
            told = _masked({name: _only(values, stepped) for name, values in step_infos.items()}, stepped)
        for name, values in self.robots.reset_infos().items():
            shown = _only(values, begun)
            if name in told:
                shown[stepped] = told[name][stepped]
            told[name], told[f"_{name}"] = shown, begun | stepped if name in told else begun.copy()
        return told

    def _final(self, over: Bool) -> Infos:
        """What environments that ended last saw and told."""
        last = np.full(self.num_envs, None, object)
        for row in np.flatnonzero(over):
            last[row] = self.robots.observations[row].copy()
        final: Infos = {"final_obs": last, "_final_obs": over.copy()}
        if self.infos:
            columns = {name: _only(values, over) for name, values in self.robots.step_infos().items()}
            final |= {"final_info": _masked(columns, over), "_final_info": over.copy()}
        return final


def real_numbers(given: Any, is_: str, right: str) -> Array:
    """What someone has given, as an array of real numbers; the words say what it is and what it must be."""
    try:
        found = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise RefusedError(f"{is_} not an array of numbers: {error}") from None
    if found.dtype.kind not in "fiub":
        raise RefusedError(f"{is_} {found.dtype}; {right} real numbers")
    return found


def _seed(one: Any) -> int:
    try:
        whole = int(one) if one == int(one) else -1
    except (TypeError, ValueError, OverflowError):
        whole = -1
    if whole < 0:
        raise RefusedError(f"seed: is {one!r}; it must be a whole number of at least 0, or None")
    return whole


def _rows(which: Any, n: int, where: str) -> list[int]:
    """Indices of environments, from indices or a mask."""
    try:
        rows = np.atleast_1d(np.arange(n)[np.asarray(which)])
    except (IndexError, ValueError) as error:
        raise RefusedError(f"{where}: {error}; it must be a mask or indices of {n} environments") from None
    if rows.ndim != 1:
        raise RefusedError(f"{where}: is {which!r}; it must be a mask or indices of {n} environments")
    found: list[int] = rows.tolist()
    return found


def _only(values: Array, which: Bool) -> Array:
    """The values of some rows, and zeros."""
    shown = np.zeros_like(values)
    shown[which] = values[which]
    return shown


def _masked(columns: Columns, which: Bool) -> Infos:
    infos: Infos = dict(columns)
    infos.update((f"_{name}", which.copy()) for name in columns)
    return infos


def _mode(mode: object) -> AutoresetMode:
    if isinstance(mode, AutoresetMode):
        return mode
    known = {known.value: known for known in AutoresetMode}
    if not isinstance(mode, str) or mode not in known:
        raise EvergaitError(f"autoreset_mode: is {mode!r}{nearest(str(mode), known)}")
    return known[mode]
