"""The module that ships has the bits of the native core, in a real Chromium.

What is trained in a tab has the θ of the command line: naive, replay and distill, plain and Adam.
"""

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergait.core.arrays import Array, Float64
from evergait.core.random import INITIAL_WEIGHTS, PERTURBATION, RESET, Noise
from evergait.engines.base import Episodes
from evergait.engines.planar.engine import PlanarEngine
from evergait.engines.planar.robot import compile_robot
from evergait.es import shape
from evergait.live.lab import lab_data
from evergait.live.robots import encoded, live_robot
from evergait.live.shelves import describe_policy
from evergait.policy import Network, Policy, PolicyConfig
from evergait.studies.folder import load_results
from evergait.tasks import parse_task
from evergait.training.run import Run
from live.conftest import GENERATIONS, Call, caller, write_bare

TASKS = ("Hopper-v5", "InvertedPendulum-v5", "Swimmer-v5", "Walker2d-v5")


def received(text: str, kind: type) -> Array:
    return np.frombuffer(base64.b64decode(text), kind)


def same_bits(found: Array, wanted: Array) -> bool:
    return found.tobytes() == np.ascontiguousarray(wanted).tobytes()


def test_numbers_of_the_counters(engine: Call) -> None:
    noise = Noise(2**40 + 7, RESET, generation=3, stage=2)
    words = engine("words", seed=2**40 + 7, generation=3, purpose=2 * 256 + RESET, index=9, n=101)
    assert same_bits(received(words, np.uint32), noise.integers(101, 9))


def test_resets_are_numpys(engine: Call) -> None:
    seeds = np.array([0, 1, 12345, 2**31, 2**32 - 1], np.uint32)
    for name in TASKS:
        robot = live_robot(parse_task(name))
        assert robot["trainable"]
        found = engine("resets", robot=robot, seeds=seeds.tolist())
        for part, wanted in zip(found, compile_robot(parse_task(name)).initial_states(seeds), strict=True):
            assert same_bits(received(part, np.float64), wanted), name


def test_resets_that_only_numpy_can_draw_are_named() -> None:
    assert not live_robot(parse_task("HalfCheetah-v5"))["trainable"]


def episodes(name: str, normalise: bool) -> tuple[Episodes, dict[str, Any]]:
    """64 candidates on a task, and the same request for the page."""
    task = parse_task(name)
    policy = Policy.build(PolicyConfig(activation="tanh", normalise=normalise), map(parse_task, TASKS))
    theta, plain, random = policy.initial(5), policy.network(task), np.random.default_rng(1)
    mean, scale = (random.normal(size=plain.n_observations) if normalise else None for _ in range(2))
    network = Network(plain.layers, plain.action_middle, plain.action_half_range, mean=mean, scale=scale)
    pair, sign = np.repeat(np.arange(32, dtype=np.uint32), 2), np.tile(np.array([1, -1], np.float32), 32)
    seeds = np.arange(64, dtype=np.uint32) + 100
    noise = Noise(11, PERTURBATION, 4, 1)
    request = Episodes(task, network, theta, 0.1, noise, pair, sign, seeds, 200, 0.5, gather_statistics=True)
    surround = {key: None if value is None else encoded(value) for key, value in (("mean", mean), ("scale", scale))}
    argument = {"robot": live_robot(task), "policy": describe_policy(policy), "theta": encoded(theta), **surround}
    return request, argument


@pytest.mark.parametrize("normalise", [False, True])
def test_episodes_of_four_tasks(engine: Call, normalise: bool) -> None:
    for name in TASKS:
        request, argument = episodes(name, normalise)
        wanted, found = PlanarEngine().run(request, 1), engine("episodes", **argument)
        assert same_bits(received(found["returns"], np.float64), wanted.returns), name
        assert same_bits(received(found["lengths"], np.int32), wanted.lengths), name
        assert same_bits(received(found["diverged"], np.uint8), wanted.diverged.astype(np.uint8)), name
        assert same_bits(received(found["sums"], np.float64), wanted.statistics), name
        assert len(set(wanted.returns.tolist())) > 8, name


def test_initial_policies(engine: Call) -> None:
    policy = Policy.build(PolicyConfig(input_width=20, hidden=(9, 31)), map(parse_task, TASKS))
    found = engine("initial", policy=describe_policy(policy), seed=77)
    assert same_bits(received(found, np.float32), policy.initial(77, INITIAL_WEIGHTS))


def test_powers_in_adam_are_those_of_the_c_library(engine: Call) -> None:
    bases = [0.9, 0.999, 0.95]
    for base, mine in zip(bases, engine("unbiased", bases=bases, n=5000), strict=True):
        assert mine == [1 - base ** (n + 1) for n in range(5000)]


@pytest.mark.parametrize(
    "fitness", [[3.0, 1.0, 3.0, -2.0], [0.0, -0.0, 5.0], [np.nan, 1.0, np.nan, 1.0], [np.nan, 0.0], [np.nan] * 3, [7.0]]
)
def test_ranks_with_ties_and_with_what_diverged(engine: Call, fitness: list[float]) -> None:
    found = engine("ranks", fitness=[None if np.isnan(value) else value for value in fitness])
    assert received(found, np.float64).tolist() == shape(np.array(fitness), "centered-ranks").tolist()


def walker() -> tuple[Policy, dict[str, Any]]:
    task = parse_task("Walker2d-v5")
    policy = Policy.build(PolicyConfig(activation="tanh"), [task])
    theta = encoded(policy.initial(2))
    return policy, {"robot": live_robot(task), "policy": describe_policy(policy), "theta": theta, "seed": 1000}


def recorded(policy: Policy, name: str) -> tuple[float, int, Float64]:
    """Return, length and path of the engine's own episode, if wanted in a variant of the task."""
    one, network = np.zeros(1, np.uint32), policy.network(policy.tasks[0])
    seeds = np.array([1000], np.uint32)
    request = Episodes(
        parse_task(name), network, policy.initial(2), 0.0, Noise(0, 3), one, one.astype(np.float32), seeds
    )
    outcome, traces = PlanarEngine().record(request)
    return float(outcome.returns[0]), int(outcome.lengths[0]), traces[0]


def test_live_steps_are_those_of_an_episode(engine: Call) -> None:
    """Step by step in the page, with nobody touching it, a robot goes where the engine's own episode goes."""
    policy, argument = walker()
    total, length, path = recorded(policy, "Walker2d-v5")
    found = engine("live", **argument)
    assert (found["total"], found["steps"]) == (total, length)
    assert same_bits(received(found["path"], np.float64), path)


@pytest.mark.parametrize(
    ("factor", "tolerance"), [("gravity", 0.0), ("strength", 0.0), ("friction", 1e-9), ("mass", 0.08)]
)
def test_a_changed_world_is_the_variant(engine: Call, factor: str, tolerance: float) -> None:
    """The page's sliders do what a task's variant does; mass to the softness of contacts."""
    policy, argument = walker()
    _, length, path = recorded(policy, f"Walker2d-v5@{factor}=0.6")
    found = received(engine("live", **argument, world={factor: 0.6})["path"], np.float64).reshape(-1, 9)
    assert abs(len(found) - length - 1) <= (tolerance > 1e-3) * 3
    n = min(len(found), len(path), 40)
    assert np.abs(found[:n] - path[:n]).max() <= tolerance
    plain = recorded(policy, "Walker2d-v5")[2]
    m = min(n, len(plain))
    assert np.abs(path[:m] - plain[:m]).max() > 1e-3


def test_a_push_changes_the_path(engine: Call) -> None:
    _, argument = walker()
    pull = {"dof": 2, "x": 0, "z": 0, "targetX": 3, "targetZ": 1.25, "stiffness": 100, "damping": 10}
    left = received(engine("live", **argument, limit=10)["path"], np.float64).reshape(-1, 9)
    pulled = received(engine("live", **argument, limit=10, pull=pull)["path"], np.float64).reshape(-1, 9)
    assert pulled[-1, 0] > left[-1, 0] + 0.02


SCRIPT = Path(__file__).parents[2] / "scripts" / "wasm.py"


@pytest.mark.prove
def test_a_module_built_now_has_the_bits_of_the_native_core(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="the compiler for browsers is not installed")
    built = tmp_path / "evergait.wasm.gz"
    subprocess.run([sys.executable, str(SCRIPT), "--force", "--output", str(built)], check=True)
    page = browser.new_context().new_page()
    call = caller(page, write_bare(tmp_path / "bare.html", base64.b64encode(built.read_bytes()).decode()))
    for name in TASKS:
        request, argument = episodes(name, normalise=True)
        found = call("episodes", **argument)
        assert same_bits(received(found["returns"], np.float64), PlanarEngine().run(request, 1).returns), name
    page.context.close()


@pytest.mark.parametrize(
    ("condition", "stage"), [("naive", 0), ("naive", 1), ("replay", 1), ("distill", 1), ("plain", 0), ("plain", 1)]
)
def test_tab_and_command_line_have_one_theta(conditions: Path, engine: Call, condition: str, stage: int) -> None:
    results = load_results(conditions)
    data = lab_data(results)
    number = next(i for i, run in enumerate(data["runs"]) if run["condition"] == condition)
    run = data["runs"][number]
    assert run["cannotTrain"] == ""
    wanted = {m["generation"]: m for m in run["moments"] if m["stage"] == stage and m["generation"]}
    argument = {
        "data": {**data, "module": ""},
        "number": number,
        "stage": stage,
        "learning": run["stream"][stage],
        "method": run["config"]["method"],
        "generations": GENERATIONS,
    }
    found = engine("train", **argument)
    assert sorted(wanted) == [10, 20]
    for generation, moment in wanted.items():
        assert found["hashes"][generation - 1] == moment["sha256"], generation
    assert len(set(found["hashes"])) == GENERATIONS
    assert found["means"] == pytest.approx(wanted[GENERATIONS]["returns"], rel=1e-15)
    entry = next(entry for entry in results.entries if entry.condition == condition)
    last: Run = entry.run
    assert stage == 0 or last.theta_sha256 == found["hashes"][-1]  # what `evergait show` prints
