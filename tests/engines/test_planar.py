"""The planar engine against MuJoCo, by step and by episode; one set of bits whatever runs it; its refusals.

Slow proofs are at the end; `make prove` and `make agree` run them.
"""

import dataclasses
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
from oracles import (
    TASKS,
    environment,
    episodes,
    mujoco_steps,
    random_states,
    relative_error,
    smallest_separation,
    tighten,
)

from evergait import _native
from evergait.core.errors import EvergaitError
from evergait.engines import engine_name
from evergait.engines.mujoco.engine import MujocoEngine
from evergait.engines.planar import engine as planar
from evergait.engines.planar.engine import PlanarEngine
from evergait.engines.planar.model import compile_model
from evergait.tasks import VARIANTS as NAMED
from evergait.tasks import Task, parse_task
from evergait.tasks.quiet import quiet

VARIANTS = ("Hopper-v5@gravity=0.3,friction=0.4", "Walker2d-v5@mass=1.7,strength=0.6", "HalfCheetah-v5@gravity=2.0")


@pytest.mark.parametrize("name", TASKS + VARIANTS)
def test_one_step_equals_mujoco(name: str) -> None:
    task = parse_task(name)
    env = environment(task)
    model = tighten(env.model)
    states = random_states(model, 300, seed=1)
    *expected, bad = mujoco_steps(model, states, env.frame_skip)
    error = relative_error(planar.step(task, *states), expected)
    for row in np.flatnonzero(~(error <= 1e-9) & ~bad):
        # Two capsules whose axes cross: the nearest points coincide and the contact's normal is a matter of rounding.
        assert smallest_separation(model, [x[row] for x in states], env.frame_skip) < 1e-6, (row, error[row])


@pytest.mark.parametrize("name", ["Hopper-v5", "Walker2d-v5@mass=1.5", "Swimmer-v5", *TASKS[-2:]])
def test_episodes_equal_the_mujoco_engine(name: str) -> None:
    request = dataclasses.replace(episodes(name, horizon=25), gather_statistics=True, healthy_bonus=0.5)
    ours, theirs = planar.PlanarEngine().run(request, 2), MujocoEngine().run(request, 2)
    np.testing.assert_array_equal(ours.lengths, theirs.lengths)
    np.testing.assert_allclose(ours.returns, theirs.returns, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.statistics, theirs.statistics, rtol=1e-5, atol=1e-4)


def test_observation_noise_and_normalisation_as_in_the_mujoco_engine() -> None:
    request = episodes("Walker2d-v5@observation_noise=0.1,reset_noise=2.0", horizon=20)
    n = request.network.n_observations
    network = dataclasses.replace(request.network, mean=np.linspace(-0.1, 0.1, n), scale=np.linspace(0.5, 2, n))
    request = dataclasses.replace(request, network=network)
    ours, theirs = planar.PlanarEngine().run(request, 1), MujocoEngine().run(request, 1)
    np.testing.assert_allclose(ours.returns, theirs.returns, rtol=1e-6, atol=1e-6)


def test_records_positions() -> None:
    request = episodes("Hopper-v5", n=5)
    outcome, traces = planar.PlanarEngine().record(request)
    assert [len(trace) - 1 for trace in traces] == outcome.lengths.tolist()
    env = environment(request.task)
    env.reset(seed=int(request.seed[0]))
    np.testing.assert_array_equal(traces[0][0], env.data.qpos)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_nonsense_diverges_and_harms_no_neighbour(bad: float) -> None:
    task = Task("Hopper-v5")
    model = environment(task).model
    states = random_states(model, 16, seed=2)
    calm = planar.step(task, *states)
    for array in states:
        spoilt = [x.copy() for x in states]
        target = spoilt[[x is array for x in states].index(True)]
        target[5] = bad
        after = planar.step(task, *spoilt)  # type: ignore[arg-type]
        for one, other in zip(calm, after, strict=True):
            np.testing.assert_array_equal(np.delete(one, 5, axis=0), np.delete(other, 5, axis=0))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_a_policy_of_nonsense_is_reported_as_diverged(bad: float) -> None:
    request = episodes("Swimmer-v5", n=9, horizon=10)
    request.theta[:] = bad
    outcome = planar.PlanarEngine().run(request, 2)
    assert (outcome.diverged == np.isnan(outcome.returns)).all()
    assert outcome.diverged.all() or bad == 1e30


def test_supports_and_refuses_by_name() -> None:
    assert all(planar.supports(Task(name)) for name in TASKS)
    assert "Ant-v5" in planar.PlanarEngine().refuses(Task("Ant-v5"))
    assert not planar.supports(Task("CartPole-v1"))


HEAD, TAIL = '<mujoco><worldbody><geom type="plane" size="9 9 9"/><body pos="0 0 1">', "</body></worldbody></mujoco>"
SLIDES = '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint name="turn" axis="0 1 0"/>'


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        ('<freejoint/><geom size=".1"/>', "free joints are not supported"),
        (SLIDES + '<geom name="crate" type="box" size=".1 .1 .1"/>', "geom 'crate': box is not supported"),
        (SLIDES + '<geom size=".1" condim="6"/>', "condim 6 is not supported"),
        ('<joint name="tilt" axis="0 1 1"/><geom size=".1"/>', "joint 'tilt': its axis is not x, y or z"),
        ('<joint axis="0 1 0" frictionloss="1"/><geom size=".1"/>', "dry joint friction is not supported"),
        ('<joint axis="0 1 0"/><joint name="s" type="slide" axis="1 0 0"/><geom size=".1"/>', "a slide below a hinge"),
    ],
)
def test_refuses_models_outside_the_subset(inside: str, reason: str) -> None:
    with pytest.raises(EvergaitError) as caught:
        compile_model(mujoco.MjModel.from_xml_string(HEAD + inside + TAIL))
    assert reason in str(caught.value)


def test_joints_that_only_rounding_tells_apart_are_refused() -> None:
    text = HEAD + '<joint name="one" axis="0 1 0"/><joint axis="0 1 0"/><geom type="capsule" size=".1 .3"/>' + TAIL
    with quiet(), pytest.raises(EvergaitError, match="joint 'one': the mass matrix is singular"):
        compile_model(mujoco.MjModel.from_xml_string(text))


def test_refuses_groups_of_actuators_that_are_disabled() -> None:
    off = '<mujoco><option actuatorgroupdisable="2"/>'
    motor = '<actuator><motor joint="turn" group="2"/></actuator></mujoco>'
    text = HEAD.replace("<mujoco>", off) + SLIDES + '<geom size=".1"/>' + TAIL.replace("</mujoco>", motor)
    with pytest.raises(EvergaitError, match=r"disabled groups of actuators \(actuatorgroupdisable, 0x4\) are not"):
        compile_model(mujoco.MjModel.from_xml_string(text))


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ('iterations="1" ls_iterations="4"', "iterations 1 is not supported: the solver stops before it converges"),
        ('ls_iterations="4"', "ls_iterations 4 is not supported: the solver stops before it converges (at least 50)"),
        ('tolerance="1e-3"', "tolerance 0.001 is not supported: the solver stops before it converges (at most 1e-08)"),
        ('solver="CG"', "solver CG is not supported"),
        ('solver="PGS"', "solver PGS is not supported"),
        ('impratio="1000"', "geom 'floor' and geom 1: friction 1 with impratio 1000 and impedance 0.95 is too stiff"),
    ],
)
def test_refuses_options_of_the_solver_that_give_other_physics(option: str, reason: str) -> None:
    head = HEAD.replace("<mujoco>", f"<mujoco><option {option}/>").replace("<geom", '<geom name="floor"')
    with pytest.raises(EvergaitError) as caught:
        compile_model(mujoco.MjModel.from_xml_string(head + SLIDES + '<geom size=".1"/>' + TAIL))
    assert reason in str(caught.value)


@pytest.mark.parametrize(("friction", "condim"), [(0.0, 3), (1e-3, 3), (0.04, 3), (0.05, 3), (0.0, 1)])
def test_friction_is_exact_or_refused(friction: float, condim: int) -> None:
    touch = f'<default><geom friction="{friction}" condim="{condim}"/></default>'
    text = HEAD.replace("<mujoco>", f"<mujoco>{touch}") + SLIDES + '<geom type="capsule" size=".1 .3"/>'
    text += '<body pos="0 0 -.3"><joint axis="0 1 0"/><geom type="capsule" size=".1 .3" pos=".1 0 -.2"/></body>'
    model = tighten(mujoco.MjModel.from_xml_string(text + TAIL))
    if condim == 3 and friction < 0.043:
        with pytest.raises(EvergaitError, match=r"is too stiff: impratio / friction².* it must be at most 10000"):
            compile_model(model)
        return
    random, n = np.random.default_rng(0), 300
    states = random.uniform(-1, 1, (n, 4)), random.uniform(-3, 3, (n, 4)), np.zeros((n, 0))
    *expected, bad = mujoco_steps(model, states, 2)
    assert relative_error(planar.step_model(compile_model(model), *states, n_frames=2), expected)[~bad].max() < 1e-9


def test_named_variants_are_simulated_and_ice_without_friction_is_left_to_mujoco() -> None:
    for name in TASKS:
        for variant in NAMED.values():
            assert planar.supports(Task(name, variant)), (name, variant)
    assert engine_name("auto", parse_task("HalfCheetah-v5@friction=0.001")) == "mujoco"


TILTED = """<mujoco><compiler angle="radian"/><worldbody>
<geom type="plane" size="9 9 9" euler="{floor} 0 0"/>
<body pos="0 0 1" euler="0 {slide} 0"><joint type="slide" axis="0 0 1"/>
<joint type="slide" axis="1 0 0"/><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/>
<body euler="{right} 0 0"><joint name="turn" axis="0 {hinge} 1"/>
<geom name="leg" type="capsule" size=".1 .3" euler="{leg} 0 0" pos="1 0 0"/></body></body></worldbody></mujoco>"""
RIGHT, NEARLY = np.pi / 2, 1.5708
STRAIGHT = {"floor": 2 * np.pi, "slide": RIGHT, "right": RIGHT, "hinge": 0.0, "leg": RIGHT}
TILTS = {
    "floor": (4e-6, "geom 0: its normal is not the upward axis of the plane of motion (4e-06 rad off)"),
    "slide": (NEARLY, "joint 0: it slides along neither axis of the plane of motion (3.7e-06 rad off)"),
    "hinge": (4e-6, "joint 'turn': its axis is not normal to the plane of motion (4e-06 rad off)"),
    "leg": (NEARLY, "geom 'leg': its axis is neither in the plane of motion nor normal to it (3.7e-06 rad off)"),
}


@pytest.mark.parametrize("leg", [RIGHT, -RIGHT, 0.0, np.pi])
def test_right_angles_are_taken_with_their_rounding(leg: float) -> None:
    compile_model(mujoco.MjModel.from_xml_string(TILTED.format(**{**STRAIGHT, "leg": leg})))


@pytest.mark.parametrize("part", TILTS)
def test_a_tilt_that_a_cosine_does_not_show_is_refused(part: str) -> None:
    angle, reason = TILTS[part]
    with pytest.raises(EvergaitError) as caught:
        compile_model(mujoco.MjModel.from_xml_string(TILTED.format(**{**STRAIGHT, part: angle})))
    assert str(caught.value) == reason


def test_an_inertia_that_is_tilted_in_a_fluid_is_refused() -> None:
    text = """<mujoco><compiler angle="radian"/><option density="10"/><worldbody><body name="fin"><joint axis="0 1 0"/>
    <inertial pos="0 0 0" mass="1" diaginertia="1 1.5 2" euler="{} 0 0"/></body></worldbody></mujoco>"""
    compile_model(mujoco.MjModel.from_xml_string(text.format(RIGHT)))
    with pytest.raises(EvergaitError, match=r"body 'fin': no axis of its inertia is normal .* \(3.7e-06 rad off\)"):
        compile_model(mujoco.MjModel.from_xml_string(text.format(NEARLY)))


USERS_ROBOT = """<mujoco><option timestep="0.003" integrator="{integrator}" impratio="2"/>
<default><geom type="capsule" friction="0.8" condim="3" margin="0.002" solref="0.03 0.8"/>
<joint axis="0 1 0" damping="0.3" armature="0.02" limited="true" range="-100 100" stiffness="2" springref="10"/>
</default>
<worldbody><geom type="plane" size="9 9 9"/><geom fromto="1 0 0.3 2 0 0.6" size="0.05"/>
<body pos="0 0 0.9"><joint type="slide" axis="-1 0 0" limited="false" stiffness="0"/>
<joint type="slide" axis="0 0 1" limited="false" stiffness="0"/><joint limited="false" stiffness="0" axis="0 -1 0"/>
<geom fromto="-.2 0 0 .3 0 0.1" size="0.06"/><body pos="0.1 0 0.1"><geom type="sphere" size="0.1" pos="0 0 0.1"/></body>
<body pos="-.2 0 0" euler="0 -30 0"><joint name="a"/><geom fromto="0 0 0 0 0 -.4" size="0.04"/>
<body pos="0 0 -.4"><joint name="b" axis="0 -1 0"/><geom fromto="0 0 0 .1 0 -.3" size="0.03"/></body></body>
<body pos=".3 0 0.1"><joint name="c"/><geom fromto="0 0 0 0 0 -.5" size="0.04"/>
<body pos="0 0 -.5"><joint name="d"/><geom type="sphere" size="0.08" pos="0 0 -.1"/></body></body></body></worldbody>
<actuator><motor joint="a" gear="30" ctrllimited="true" ctrlrange="-1 1"/><motor joint="d" gear="-10"/></actuator>
</mujoco>"""


@pytest.mark.parametrize("integrator", ["RK4", "Euler"])
def test_a_users_robot_whose_branches_touch(integrator: str) -> None:
    model = tighten(mujoco.MjModel.from_xml_string(USERS_ROBOT.format(integrator=integrator)))
    random = np.random.default_rng(0)
    n = 400
    position = np.hstack([random.uniform([-1, -1.0, -3], [2, 0.5, 3], (n, 3)), random.uniform(-2, 2, (n, 4))])
    states = position, random.uniform(-5, 5, (n, 7)), random.uniform(-1.5, 1.5, (n, 2))
    *expected, bad = mujoco_steps(model, states, 2)
    ours = planar.step_model(compile_model(model), *states, n_frames=2)
    error = relative_error(ours, expected)
    for row in np.flatnonzero(~(error <= 1e-9) & ~bad):
        assert smallest_separation(model, [x[row] for x in states], 2) < 1e-6, (row, error[row])
    assert (error <= 1e-9).mean() > 0.8


VARIED = ("Hopper-v5", "Walker2d-v5", "Swimmer-v5@observation_noise=0.1", "HalfCheetah-v5", "InvertedDoublePendulum-v5")


def digest(name: str, n_threads: int = 1, n_lanes: int = 0, any_tree: bool = False) -> str:
    request = dataclasses.replace(episodes(name, n=21, horizon=60, sigma=0.2), gather_statistics=True)
    outcome = PlanarEngine(n_lanes, any_tree).run(request, n_threads)
    return hashlib.sha256(
        outcome.returns.tobytes() + outcome.lengths.tobytes() + outcome.statistics.tobytes()
    ).hexdigest()


PARALLEL = """<mujoco><option timestep="0.005"/><worldbody><geom type="capsule" fromto="-.3 0 0 .3 0 0" size=".05"/>
<body pos="0 0 .09"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
<geom type="capsule" fromto="-.2 0 0 .2 0 0" size=".05"/></body></worldbody></mujoco>"""


def parallel_capsules(n_lanes: int = 0, any_tree: bool = False) -> str:
    """Velocity after a step of one that lies on another."""
    still = np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 0))
    model = compile_model(mujoco.MjModel.from_xml_string(PARALLEL))
    return planar.step_model(model, *still, n_lanes=n_lanes, any_tree=any_tree)[1].tobytes().hex()


def digests() -> set[str]:
    """Of all tasks, by specialised and general code, with as many lanes as a register holds and with the fewest."""
    ways = [(0, False), *((lanes, True) for lanes in _native.PLANAR_LANES)]
    return {" ".join((*(digest(name, 1, *way) for name in VARIED), parallel_capsules(*way))) for way in ways}


@pytest.mark.parametrize("name", VARIED)
def test_threads(name: str) -> None:
    assert len({digest(name, n_threads=n) for n in (1, 2, 7)}) == 1


def test_links_that_are_exactly_parallel_are_no_matter_of_neighbours() -> None:
    task = Task("Hopper-v5")
    qpos, qvel, control = random_states(environment(task).model, 400, seed=3)
    qpos[::8, 3:], qpos[::8, 1] = 0.0, 1.25  # straight and standing, beside folded ones whose links touch
    together = planar.step(task, qpos, qvel, control)
    assert np.isfinite(together[0]).all()
    for row in range(0, 400, 8):
        alone = planar.step(task, qpos[row : row + 1], qvel[row : row + 1], control[row : row + 1])
        assert all((one[0] == many[row]).all() for one, many in zip(alone, together, strict=True))


AT_ITS_LIMIT = """<mujoco><option timestep="0.005" gravity="0 0 0"/><worldbody><body>
<joint name="x" type="slide" axis="1 0 0" range="-1 1" solimplimit=".9999 .9999 .001"/><geom size=".1" mass="1"/></body>
</worldbody><actuator><motor joint="x" gear="1"/></actuator></mujoco>"""


def test_a_limit_that_rounding_decides_is_no_matter_of_neighbours() -> None:
    model = mujoco.MjModel.from_xml_string(AT_ITS_LIMIT)
    compiled, data = compile_model(model), mujoco.MjData(model)
    data.qpos[0] = -1.01
    mujoco.mj_forward(model, data)
    nearly = np.concatenate([np.linspace(1e-15, 1e-13, 200), np.linspace(1e-13, 3e-12, 200)])
    control = (data.efc_aref[0] * (1 - nearly))[:, None]
    qpos, qvel = np.full((400, 1), -1.01), np.zeros((400, 1))
    alone = np.concatenate([planar.step_model(compiled, qpos[:1], qvel[:1], one[None])[1] for one in control])
    for order in (np.arange(400), np.random.default_rng(0).permutation(400)):
        together = planar.step_model(compiled, qpos, qvel, control[order])[1]
        np.testing.assert_array_equal(together, alone[order])


@pytest.mark.parametrize("name", VARIED)
def test_order_of_candidates(name: str) -> None:
    request = episodes(name, n=21, horizon=60, sigma=0.2)
    order = np.random.default_rng(0).permutation(21)
    mixed = dataclasses.replace(request, pair=request.pair[order], sign=request.sign[order], seed=request.seed[order])
    ours, theirs = PlanarEngine().run(request, 2), PlanarEngine().run(mixed, 2)
    np.testing.assert_array_equal(ours.returns[order], theirs.returns)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_instruction_sets_lanes_and_code_paths(isa: str) -> None:
    path = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})"
    what = "print(_native.ISA, *_native.PLANAR_LANES, *digests(), sep='|')"
    script = f"{path}; from evergait import _native; from test_planar import digests; {what}"
    run = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "EVERGAIT_ISA": isa, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "this machine does not have" in run.stderr:
        pytest.skip(f"no {isa} here")
    assert run.returncode == 0, run.stderr
    lanes = {"baseline": ("1", "2"), "avx2": ("4", "4"), "avx512": ("8", "8")}[isa]
    assert run.stdout.strip().split("|") == [isa, *lanes, " ".join((*map(digest, VARIED), parallel_capsules()))]


ROOT = Path(__file__).parents[2]
FLAGS = ["-std=c++17", "-ffp-contract=off", "-fno-math-errno", "-Wno-psabi", "-I", str(ROOT / "native")]
NAMES = ("tests/native/fuzz_planar.cpp", "native/planar.cpp", "native/planar/description.cpp")
SOURCES = [str(ROOT / name) for name in NAMES]


@pytest.mark.agree
def test_agreement_with_mujoco_and_speed() -> None:
    """100,000 states and 200 episodes per task against MuJoCo, and the engines' speed; rewrites docs/physics.md."""
    subprocess.run([sys.executable, str(ROOT / "benchmarks" / "physics.py")], check=True)


@pytest.mark.agree
def test_where_the_time_goes() -> None:
    """Shares of time by part, operations per step and their share of the machine's peak; rewrites docs/physics.md."""
    missing = [name for name in ("perf", "valgrind", "addr2line", "objdump") if not shutil.which(name)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    subprocess.run([sys.executable, str(ROOT / "benchmarks" / "training_profile.py")], check=True)


def describe(folder: Path, name: str) -> list[str]:
    model = compile_model(environment(Task(name)).model)
    model.description.tofile(folder / name)
    return [str(folder / name), str(model.n_dofs), str(model.n_actuators)]


@pytest.mark.prove
def test_fuzz_under_sanitizers(tmp_path: Path) -> None:
    """Ten million MuJoCo steps from wild states: no report by the address and undefined-behaviour sanitizers."""
    program = str(tmp_path / "fuzz")
    checks = ["-O1", "-g1", "-fno-var-tracking", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["g++", *FLAGS, *checks, *SOURCES, "-o", program], check=True)
    for name in TASKS:
        subprocess.run([program, *describe(tmp_path, name), "1000", "45", "2"], check=True)


@pytest.mark.prove
def test_same_bits_on_aarch64(tmp_path: Path) -> None:
    """The core cross-compiled and run under qemu-user gives the hash of this machine."""
    native, foreign = str(tmp_path / "native"), str(tmp_path / "foreign")
    try:
        subprocess.run(["qemu-aarch64", "--version"], check=True, capture_output=True)
        subprocess.run(["aarch64-linux-gnu-g++", *FLAGS, "-O3", "-static", *SOURCES, "-o", foreign], check=True)
    except FileNotFoundError:
        pytest.skip("needs Debian's g++-aarch64-linux-gnu and qemu-user")
    subprocess.run(["g++", *FLAGS, "-O3", *SOURCES, "-o", native], check=True)
    for name in TASKS:
        arguments = [*describe(tmp_path, name), "64", "4", "2"]
        here = subprocess.run([native, *arguments], check=True, capture_output=True).stdout
        assert subprocess.run(["qemu-aarch64", foreign, *arguments], check=True, capture_output=True).stdout == here
