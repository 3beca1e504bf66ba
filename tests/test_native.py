"""Whatever the native core is given with a wrong name, type, shape or number is refused; nothing is read beyond it.

Sanitizers see small cases of every kernel, and damaged descriptions.
"""

import dataclasses
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles import TASKS
from small import tiny_request

from evergait import _native
from evergait.core.errors import EvergaitError
from evergait.core.random import PERTURBATION, Noise
from evergait.engines.planar import step, step_model
from evergait.engines.planar.engine import Flight, PlanarEngine, supports
from evergait.engines.planar.model import flatten
from evergait.engines.planar.robot import compile_robot
from evergait.policy import ActiveLayer, Candidates, Network
from evergait.tasks import parse_task

HOPPER = compile_robot(parse_task("Hopper-v5"))
NOISE = Noise(1, PERTURBATION)
WRONG = (TypeError, ValueError)


def flight(**changes: Any) -> Flight:
    request = tiny_request("Hopper-v5", n_rows=6, horizon=5, gather_statistics=True)
    return dataclasses.replace(PlanarEngine().flight(request, 2, record=True), **changes)


def network(**changes: Any) -> Network:
    layers = ActiveLayer(0, 6, 2, 3, "relu"), ActiveLayer(9, 12, 3, 1, "tanh")
    return dataclasses.replace(Network(layers, np.zeros(1, np.float32), np.ones(1, np.float32)), **changes)


def layers(index: int, **changes: Any) -> Network:
    rows = list(network().layers)
    rows[index] = dataclasses.replace(rows[index], **changes)
    return network(layers=tuple(rows))


def candidates(**changes: Any) -> Candidates:
    pairs, signs = np.zeros(4, np.uint32), np.ones(4, np.float32)
    return dataclasses.replace(Candidates(network(), np.ones(13, np.float32), 0.1, NOISE, pairs, signs), **changes)


def test_the_right_ones_pass() -> None:
    _native.planar_episodes(flight())
    _native.pack_candidates(candidates(), np.empty((4, network().native.packed_size), np.float32), 2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"position": np.zeros((6, 5))}, r"flight.position: its shape is \(6, 5\); it must be \(6, 6\)"),
        ({"velocity": np.zeros((5, 6))}, r"flight.velocity: its shape is \(5, 6\); it must be \(6, 6\)"),
        ({"position": np.zeros((6, 6), np.float32)}, "flight.position: is ndarray of float32"),
        ({"position": np.zeros((6, 12))[:, ::2]}, "flight.position: .* contiguous array of float64"),
        ({"returns": np.zeros(5)}, r"flight.returns: its shape is \(5,\); it must be \(6,\)"),
        ({"lengths": np.zeros(6)}, "flight.lengths: .* int32 with 1 dimension that can be written to"),
        ({"diverged": np.zeros(7, np.uint8)}, "flight.diverged: its shape"),
        ({"sums": np.zeros((6, 2, 10))}, r"flight.sums: its shape is \(6, 2, 10\); it must be \(6, 2, 11\)"),
        ({"trace": np.zeros((6, 5, 6))}, r"flight.trace: its shape is \(6, 5, 6\); it must be \(6, 6, 6\)"),
        ({"limit": 0, "trace": None}, "flight.limit: is 0; it must be from 1"),
        ({"limit": -4}, "flight.limit: is -4"),
        ({"limit": 5.5}, "flight.limit: is 5.5; it must be a whole number"),
        ({"n_threads": 0}, "flight.n_threads: is 0; it must be from 1"),
        ({"n_lanes": 3}, "n_lanes: is 3; it must be 0, "),
        ({"noise_purpose": -1}, "flight.noise_purpose: is -1"),
        ({"description": HOPPER.model.description[:-1]}, r"description.actuator\[2\].upper: .* ends before it"),
        ({"description": np.append(HOPPER.model.description, 0.0)}, "description.* behind the end"),
        ({"description": np.zeros(0)}, "description.model.n_dof"),
        ({"rules": HOPPER.rules.flat()[:-1]}, "rules.observation_noise"),
        ({"rules": np.append(HOPPER.rules.flat(), 0.0)}, "rules.length"),
        ({"episodes": None}, "flight.episodes.network: is missing"),
    ],
)
def test_a_wrong_flight_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(WRONG, match=words):
        _native.planar_episodes(flight(**changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pair": np.zeros(5, np.uint32)}, "sign: its shape"),
        ({"sign": np.ones(7, np.float32)}, "sign: its shape"),
        ({"seed": np.zeros(5, np.uint32)}, "position: its shape|seed: its shape"),
        ({"theta": np.zeros(40, np.float32)}, r"40 numbers in .*theta\).layers\[0\].weight"),
        ({"theta": np.zeros(400)}, "theta: is ndarray of float64"),
        ({"noise": Noise(-1, PERTURBATION)}, "noise.seed: is -1"),
        ({"noise": Noise(1, 256)}, "noise.purpose: is 256; it must be from 0 to 255"),
        ({"sigma": "large"}, "sigma: is 'large'; it must be a number"),
        (
            {"network": tiny_request("Walker2d-v5").network, "theta": np.zeros(999, np.float32)},
            "n_observations: is 17; it must be 11",
        ),
    ],
)
def test_wrong_episodes_are_refused(changes: dict[str, Any], words: str) -> None:
    right = flight()
    with pytest.raises(WRONG, match=words):
        _native.planar_episodes(dataclasses.replace(right, episodes=dataclasses.replace(right.episodes, **changes)))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (network(layers=()), "network.layers.length: is 0"),
        (layers(0, n_in=0), r"network.layers\[0\].n_in: is 0; it must be from 1 to 65536"),
        (layers(0, n_in=65_537), r"network.layers\[0\].n_in: is 65537"),
        (layers(1, n_in=4), r"network.layers\[1\].n_in: is 4; it must be n_out of the layer before"),
        (layers(1, n_out=2), r"network.action_middle: its shape is \(1,\); it must be \(2,\)"),
        (layers(0, activation="sine"), r"network.layers\[0\].activation: is 'sine'; it must be linear, relu or tanh"),
        (layers(0, weight=-1), r"network.layers\[0\].weight: is -1"),
        (network(mean=np.zeros(2)), "network.scale: is None; it must be as network.mean is"),
        (network(mean=np.zeros(2), scale=np.zeros(3)), "network.scale: its shape"),
        (network(action_half_range=np.zeros(2, np.float32)), "network.action_half_range: its shape"),
        (SimpleNamespace(layers=[1]), r"network.layers\[0\].weight: is missing"),
    ],
)
def test_a_wrong_network_is_refused(wrong: Any, words: str) -> None:
    with pytest.raises(WRONG, match=words):
        _native.Network(wrong)


LESSON = np.zeros((3, 2), np.float32), np.zeros((3, 1), np.float32), np.zeros(5, np.uint32)


@pytest.mark.parametrize("wrong", [layers(0, weight=8), layers(1, bias=13), layers(1, weight=2**40)])
def test_layers_beyond_theta_are_refused(wrong: Network) -> None:
    packed, theta = np.empty((4, wrong.native.packed_size), np.float32), np.ones(13)
    calls = [
        lambda: _native.pack_candidates(candidates(network=wrong), packed, 1),
        lambda: wrong.outputs(theta, np.zeros((1, 2))),
        lambda: wrong.pull_back(theta, np.zeros((1, 2)), np.zeros((1, 1))),
        lambda: wrong.approach(theta, *LESSON, theta.copy()),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"network \(with 13 numbers in .*theta\).layers\[\d\].*room for"):
            call()  # type: ignore[no-untyped-call]


def test_wrong_rows_are_refused() -> None:
    native = network().native
    packed, seen, out = np.zeros((4, native.packed_size), np.float32), np.zeros((4, 2)), np.zeros((4, 1), np.float32)
    for wrong in (
        (packed[:, :-1].copy(), seen, out, 1),
        (packed, seen[:, :1].copy(), out, 1),
        (packed, seen[:3], out, 1),
        (packed, seen, out[:3], 1),
        (packed, seen, out, 0),
        (packed, seen.astype(np.float32), out, 1),
    ):
        with pytest.raises(WRONG):
            _native.act(native, *wrong)
    with pytest.raises(ValueError, match="packed: its shape"):
        _native.pack_candidates(candidates(), packed[:3], 1)
    with pytest.raises(ValueError, match="cotangents: its shape"):
        network().pull_back(np.ones(13), np.zeros((3, 2)), np.zeros((2, 1)))
    before, targets, rows = LESSON
    with pytest.raises(ValueError, match="targets: its shape"):
        network().approach(np.ones(13), before, targets[:2], rows, np.ones(13))
    with pytest.raises(ValueError, match="gradient: its shape"):
        network().approach(np.ones(13), before, targets, rows, np.ones(12))
    with pytest.raises(ValueError, match="rows: is 3; it must be from 0 to 2"):
        network().approach(np.ones(13), before, targets, rows + np.uint32(3), np.ones(13))
    fixed = np.zeros((4, 1), np.float32)
    fixed.flags.writeable = False
    with pytest.raises(TypeError):
        _native.act(native, packed, seen, fixed, 1)


def test_wrong_sums_of_noise_are_refused() -> None:
    pairs, weights, gradient = np.zeros(3, np.uint32), np.ones(3), np.zeros(10)
    for wrong in ((-1, 5), (0, 11), (6, 5)):
        with pytest.raises(ValueError, match=r"begin: is|end: is"):
            _native.accumulate_noise(NOISE, pairs, weights, *wrong, gradient, 1)
    with pytest.raises(ValueError, match="weights: its shape"):
        _native.accumulate_noise(NOISE, pairs, weights[:2], 0, 10, gradient, 1)
    with pytest.raises(TypeError):  # a copy would be written to, and lost
        _native.accumulate_noise(NOISE, pairs, weights, 0, 10, gradient.astype(np.float32), 1)
    with pytest.raises(ValueError, match="n: is -1"):
        _native.words(NOISE, 0, -1)
    with pytest.raises(ValueError, match="end: is 3"):
        _native.normals(NOISE, 0, 4, 3)


def find(part: str, name: str, row: int = 0) -> int:
    """Where a number of Hopper lies in its description."""
    n_dofs, n_points, n_pairs, n_actuators = HOPPER.model.description[:4].astype(int)
    counts = {"model": 1, "dof": n_dofs, "point": n_points, "pair": n_pairs, "actuator": n_actuators}
    place = 0
    for other, count in counts.items():
        width = len(_native.PLANAR_FIELDS[other])
        if other == part:
            return int(place + row * width + _native.PLANAR_FIELDS[part].index(name))
        place += count * width
    raise KeyError(part)


@pytest.mark.parametrize(
    ("part", "name", "row", "value"),
    [
        ("model", "n_dof", 0, 17),
        ("model", "n_dof", 0, 0),
        ("model", "n_dof", 0, np.nan),
        ("model", "n_dof", 0, 1e300),
        ("model", "n_dof", 0, 5.5),
        ("model", "n_points", 0, 49),
        ("model", "n_pairs", 0, -1),
        ("model", "n_actuators", 0, 17),
        ("dof", "parent", 3, 3),
        ("dof", "parent", 3, -2),
        ("dof", "kind", 3, 3),
        ("dof", "first_point", 5, 1),
        ("dof", "first_point", 5, -1),
        ("dof", "n_points", 5, 48),
        ("dof", "n_points", 5, 0),
        ("dof", "limit.margin", 2, np.nan),
        ("point", "dof", 0, 6),
        ("pair", "a.dof", 0, 6),
        ("pair", "b.dof", 0, -2),
        ("actuator", "dof", 1, 6),
        ("actuator", "dof", 1, -1),
    ],
)
def test_a_wrong_robot_is_refused(part: str, name: str, row: int, value: float) -> None:
    description = HOPPER.model.description.copy()
    place = find(part, name, row)
    description[place] = value
    with pytest.raises(ValueError, match=r"description\.\w+(\[\d+\])?\.[\w.]+: is "):
        step_model(dataclasses.replace(HOPPER.model, description=description), *(np.zeros((1, n)) for n in (6, 6, 3)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", 4),
        ("kind", -1),
        ("n_frames", 0),
        ("n_hidden", 7),
        ("n_hidden", -1),
        ("clips_velocity", 2),
        ("dt", np.nan),
    ],
)
def test_wrong_rules_are_refused(name: str, value: float) -> None:
    rules = HOPPER.rules.flat()
    rules[_native.PLANAR_FIELDS["rules"].index(name)] = value
    with pytest.raises(ValueError, match=f"rules.{name}: is "):
        _native.planar_episodes(flight(rules=rules))


def test_numbers_by_name_leave_nothing_out() -> None:
    right = {"gain": 2, "dof": 3, "limited": True, "lower": -1, "upper": 1}
    with pytest.raises(ValueError, match="actuator: gears: missing, or not a field"):
        flatten("actuator", {**right, "gears": 1})
    with pytest.raises(ValueError, match="actuator: gain: missing, or not a field"):
        flatten("actuator", {name: value for name, value in right.items() if name != "gain"})


def test_tasks_may_be_given_by_name() -> None:
    states = np.full((2, 6), 0.1), np.zeros((2, 6)), np.full((2, 3), 0.5)
    by_name, by_task = step("Hopper-v5", *states), step(parse_task("Hopper-v5"), *states)
    assert all((one == other).all() for one, other in zip(by_name, by_task, strict=True))
    assert supports("Hopper-v5")
    assert not supports("Humanoid-v5")
    for wrong in ("Hoper-v5", ""):
        with pytest.raises(EvergaitError):
            step(wrong, *states)
    for name, changes in (("qpos", (np.zeros(6), *states[1:])), ("action", (*states[:2], np.zeros((2, 2))))):
        with pytest.raises(EvergaitError, match=f"{name}: its shape"):
            step("Hopper-v5", *changes)
    for name in ("n_steps", "n_threads"):
        with pytest.raises(EvergaitError, match=f"{name}: is -1; it must be at least"):
            step("Hopper-v5", *states, **{name: -1})  # type: ignore[arg-type]


SCARCE = """
import resource
from pathlib import Path
import numpy as np
from evergait import _native
from evergait.core.errors import EvergaitError
from evergait.core.random import Noise
from evergait.engines.planar.engine import PlanarEngine
from evergait.workers.bench import generation
from evergait.policy import Policy, PolicyConfig
from evergait.tasks import parse_task
import dataclasses
task = parse_task("Hopper-v5")
policy = Policy.build(PolicyConfig(hidden=(2000, 2000)), [task])
rows = generation(task, Policy.build(PolicyConfig(), [task]).initial(0), 8, 0)
wide = dataclasses.replace(rows, network=policy.network(task), theta=policy.initial(0), horizon=2)
wide.network.native
PlanarEngine().run(rows, 2)  # all that is loaded late is there now
def limit(n_bytes):
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + n_bytes, resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("limit(20 << 20)\nPlanarEngine().run(wide, 1)", "MemoryError: there is not enough memory"),
        (
            "pairs, gradient = np.zeros(1, np.uint32), np.zeros(1 << 20)\nlimit(100 << 20)\n"
            "_native.accumulate_noise(Noise(0, 0), pairs, np.ones(1), 0, len(gradient), gradient, 5000)",
            "EvergaitError: threads: there is no thread .* of 5000 .*; use fewer",
        ),
        ("limit(20 << 20)\nNoise(0, 0).normals(0, 0, 1 << 30)", "MemoryError"),
    ],
)
def test_too_little_memory_and_too_many_threads_are_errors(code: str, words: str) -> None:
    command = [sys.executable, "-c", SCARCE + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr  # an exception, and not a signal
    assert re.search(words, done.stderr.strip().splitlines()[-1]), done.stderr


ROOT = Path(__file__).parents[1]
SOURCES = ("native/planar.cpp", "native/kernels.cpp", "native/planar/description.cpp")
FLAGS = "-std=c++17 -O0 -g1 -ffp-contract=off -fno-math-errno -Wno-psabi -DEVERGAIT_RUNTIME_TREES"
CHECKS = "-fno-var-tracking -fsanitize=address,undefined -fno-sanitize-recover=all"


def test_a_crew_does_every_piece_once(tmp_path: Path) -> None:
    if not shutil.which("g++"):
        pytest.skip("there is no C++ compiler")
    program = str(tmp_path / "crew")
    command = ["g++", "-std=c++17", "-O1", "-g1", "-fsanitize=thread", "-I", str(ROOT / "native"), "-o", program]
    subprocess.run([*command, str(ROOT / "tests/native/crew.cpp")], check=True)
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []  # the sanitizer dislikes randomised addresses
    subprocess.run([*fixed, program], check=True)


def test_no_kernel_leaves_its_arrays(tmp_path: Path) -> None:
    if not shutil.which("g++"):
        pytest.skip("there is no C++ compiler")
    parts = [(ROOT / name, tmp_path / f"{i}.o") for i, name in enumerate((*SOURCES, "tests/native/sanitized.cpp"))]
    command = ["g++", *FLAGS.split(), *CHECKS.split(), "-I", str(ROOT / "native")]
    compilers = [subprocess.Popen([*command, "-c", str(source), "-o", str(target)]) for source, target in parts]
    codes = [compiler.wait() for compiler in compilers]
    assert not any(codes)
    program = str(tmp_path / "sanitized")
    subprocess.run([*command, *(str(target) for _, target in parts), "-o", program], check=True)
    files = []
    for name in TASKS:
        robot = compile_robot(parse_task(f"{name}@observation_noise=0.1"))
        for part, numbers in (("robot", robot.model.description), ("rules", robot.rules.flat())):
            files.append(str(tmp_path / f"{name}.{part}"))
            numbers.tofile(files[-1])
    done = subprocess.run([program, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000  # damaged descriptions that were refused
