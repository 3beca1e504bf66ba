"""Names of phases and bits of θ are promises: the same settings find what was trained, by one digest per part."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import golden
import pytest
from faults import wait_until
from small import tiny_config

from evergait.config import Config, preset
from evergait.core.data import added, from_data, to_data, to_identity
from evergait.core.files import locked
from evergait.es import Adam, Optimizer
from evergait.methods import Distill, Interval, Method, Multitask, Naive, Replay
from evergait.store.archive import archive_path
from evergait.store.pack import pack
from evergait.store.phases import PhaseFolder, PhaseStore
from evergait.training import phases as identities
from evergait.training.phases import PhaseTrainer, plan_phases
from evergait.workers import LocalWorkers

NAMES = [
    (Naive(), ["063fdbe85f9a477e00ce39d2", "a3c1ce579916742228387a7e", "ea1043846a672aa2ad049577"]),
    (Replay(budget=64), ["063fdbe85f9a477e00ce39d2", "60af4ef3348e7870629de478", "4c3ac02cd6e288399fde4e26"]),
    (Interval(), ["063fdbe85f9a477e00ce39d2", "7e10377546ed8dd3fad1c138", "bbfcca67ad6d4b63ef9ccd6d"]),
    (Multitask(), ["ef563cbd35bc2e87b667be4b"]),
]


def names(method: Method, **changes: Any) -> list[str]:
    """The phases of the paper's stream under a method."""
    return [phase.name for phase in plan_phases(replace(preset("paper"), method=method, **changes))]


@pytest.mark.parametrize(("method", "expected"), NAMES, ids=[method.name for method, _ in NAMES])
def test_phases_keep_their_names(method: Method, expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With every part at version 1, they are those from before there were versions."""
    monkeypatch.setattr(identities, "VERSIONS", {})
    monkeypatch.setattr(identities, "version_of", lambda _: "4.0.0")
    monkeypatch.setattr(Interval, "version", 1)
    assert names(method) == expected


@pytest.mark.parametrize("name", ["distill", "ewc", "anchor", "freeze", "replay+distill", "replay+adaptive+project"])
def test_first_phases_are_shared_by_all_methods(name: str) -> None:
    naive, other = names(Naive()), names(Method.named(name, "method")())
    assert other[0] == naive[0]
    assert other[1] != naive[1]


def test_a_fix_of_one_method_renames_its_phases_only(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = [Naive(), Replay(), Distill(), Method.named("replay+distill", "method")()]
    before = [names(method) for method in methods]
    monkeypatch.setattr(Replay, "version", 2)
    naive, replay, distill, both = (names(method) for method in methods)
    assert [naive, distill] == [before[0], before[2]]
    for old, new in ((before[1], replay), (before[3], both)):
        assert new[0] == old[0]  # nothing is replayed in a first phase
        assert not set(new[1:]) & set(old)


def test_a_phase_that_was_packed_while_others_wait_for_it_is_found(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config, (here, there) = tiny_config(method=Naive()), (tmp_path / name / "phases" for name in ("here", "there"))
    first, workers, found = plan_phases(config)[0], LocalWorkers(1), list[PhaseFolder]()
    PhaseTrainer(config, PhaseStore(there), workers).ensure(first)
    pack(there)
    (here / first.name).mkdir(parents=True)
    with locked(here / first.name / "lock"):
        trainer = PhaseTrainer(config, PhaseStore(here), workers)
        waiter = threading.Thread(target=lambda: found.append(trainer.ensure(first)), daemon=True)
        waiter.start()
        wait_until(lambda: "waiting for another process" in caplog.text)
        archive_path(there).rename(archive_path(here))
    waiter.join(30)
    assert [folder.name for folder in found] == [first.name]


@pytest.mark.parametrize(
    ("part", "affected", "untouched"),
    [
        ("shaping.nes", {"shaping": "nes"}, {"shaping": "raw"}),
        ("engine.mujoco", {"engine": "mujoco"}, {"engine": "planar"}),
        ("policy", {}, None),
    ],
)
def test_a_fix_of_a_part_renames_what_uses_it(
    part: str, affected: dict[str, Any], untouched: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names(Naive(), **affected), names(Naive(), **(untouched or {}))
    monkeypatch.setitem(identities.VERSIONS, part, 7)
    after = names(Naive(), **affected), names(Naive(), **(untouched or {}))
    assert not set(before[0]) & set(after[0])
    assert (before[1] == after[1]) == (untouched is not None)


def test_a_fix_of_an_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    before = names(Naive()), names(Naive(), optimizer=Adam())
    monkeypatch.setattr(Adam, "version", 2)
    after = names(Naive()), names(Naive(), optimizer=Adam())
    assert before[0] == after[0]
    assert not set(before[1]) & set(after[1])


def test_what_is_outdated_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "VERSIONS", {})
    identity = plan_phases(Config())[0].identity
    assert identities.outdated(identity) == []
    monkeypatch.setattr(identities, "VERSIONS", {"policy": 2, "engine.gymnasium": 5})
    assert identities.outdated(identity) == ["policy 1, now 2"]
    assert identities.outdated({**identity, "mujoco": "3.9", "method": {"name": "of a plug-in"}})[0].startswith(
        "mujoco 3.9,"
    )
    assert identities.outdated(plan_phases(Config())[0].identity) == []


def test_options_that_came_later_are_no_part_of_the_name_unless_used() -> None:
    @dataclass(frozen=True)
    class Grown(Replay):
        newer: int = added(3)

    assert to_identity(Grown()) == to_identity(Replay())
    assert to_identity(Grown(newer=4)) == {**to_identity(Replay()), "newer": 4}


def test_the_machine_is_named_only_where_its_elementary_functions_decide_bits() -> None:
    method = from_data(Method, {"name": "ewc+distill", "ewc": {"importance": "search"}}, "method")
    first, second, _ = plan_phases(replace(preset("paper"), method=method, engine="planar"))
    assert "libm" not in first.identity  # distill records nothing before there is a task to leave
    assert "libm" in second.identity
    assert all("libm" not in phase.identity for phase in plan_phases(replace(preset("paper"), engine="planar")))
    assert all("libm" in phase.identity for phase in plan_phases(replace(preset("paper"), engine="mujoco")))


STORED = json.loads(golden.STORED.read_text())


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, str]]:
    """What the cases end with today."""
    return golden.bits(golden.CASES)


@pytest.mark.parametrize("name", golden.CASES)
def test_the_bits_are_those_that_were_stored(name: str, found: dict[str, dict[str, str]]) -> None:
    before, now = STORED.get(name), found[name]
    assert before, f"{name} has no stored bits; store them: python tests/support/golden.py"
    if before.get("libm") != now.get("libm"):
        pytest.skip("MuJoCo has other bits here: this machine's elementary functions are not those of the stored bits")
    if before["phase"] == now["phase"]:
        assert before["theta"] == now["theta"], "other bits under the same name: raise the version of what changed"
    assert before == now, "the phase has another name; if that is meant, store it: python tests/support/golden.py"


def test_every_case_has_bits_of_its_own(found: dict[str, dict[str, str]]) -> None:
    """A case that ends like another would not notice that its part has changed."""
    alike = {theta for theta, n in Counter(bits["theta"] for bits in found.values()).items() if n > 1}
    assert {name for name, bits in found.items() if bits["theta"] in alike} == {"optimizer plain", "shaping z-score"}


def test_every_part_has_a_case() -> None:
    parts = {part.name for config in golden.CASES.values() for part in config.method.parts}
    assert parts == set(Method.members)
    assert {config.optimizer.name for config in golden.CASES.values()} == set(Optimizer.members)
    members = {**Method.members, **Optimizer.members}
    options = {f"{name}.{option}" for name, member in members.items() for option in flat(to_data(member()))}
    assert {name for name in options if not name.endswith(".name")} == set(golden.OPTIONS)
    assert set(STORED) == set(golden.CASES)


def flat(data: Mapping[str, Any], prefix: str = "") -> list[str]:
    inner = (flat(v, f"{prefix}{k}.") if isinstance(v, Mapping) else [f"{prefix}{k}"] for k, v in data.items())
    return [name for names in inner for name in names]


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_planar_bits_on_other_instruction_sets(isa: str) -> None:
    run = subprocess.run(
        [sys.executable, golden.__file__, "--planar"],
        env={**os.environ, "EVERGAIT_ISA": isa, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "this machine does not have" in run.stderr:
        pytest.skip(f"this machine does not have {isa}")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {name: bits for name, bits in STORED.items() if golden.is_planar(name)}


ENVIRONMENT = """
import gymnasium, numpy

class Mine(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))
    def reset(self, *, seed=None, options=None):
        return numpy.zeros(2, numpy.float32), {}
    def step(self, action):
        return numpy.zeros(2, numpy.float32), 1.0, True, False, {}

gymnasium.register("Mine-v0", Mine)
"""
METHOD = """
import sys
from dataclasses import dataclass
import evergait

@dataclass(frozen=True)
class Drag(evergait.Method, name="drag"):
    def after_step(self, context, step, theta, memory):
        return theta * 1, memory
    def settings(self, stage):
        return {"name": self.name}

config = evergait.Config(stream=("InvertedPendulum-v5",), generations=1, pairs=1, horizon=5, method=Drag())
evergait.train(config, "out", threads=1)
"""
REGISTRATION = """
import gymnasium, evergait
place = "gymnasium.envs.mujoco.inverted_pendulum_v5:InvertedPendulumEnv"
gymnasium.register("Mine-v0", place, kwargs={"reset_noise_scale": 0.01}, max_episode_steps=5)
config = evergait.Config(stream=("Mine-v0",), generations=1, pairs=1, method=evergait.Naive())
evergait.train(config, "out", threads=1)
"""
TRAIN = ("-m", "evergait", "train", "--stream", "mine:Mine-v0", "--generations", "1", "--pairs", "1", "--out", "out")

PROGRAM = """
import mine, evergait
config = evergait.Config(stream=("Mine-v0",), generations=1, pairs=1, method=evergait.Naive())
evergait.train(config, "out", threads=1)
"""


@pytest.mark.parametrize(
    ("file", "text", "old", "new", "command"),
    [
        ("mine.py", ENVIRONMENT, "1.0", "-50.0", TRAIN),
        ("mine.py", ENVIRONMENT, "1.0", "-50.0", ("-c", PROGRAM)),
        ("script.py", METHOD, "theta * 1", "theta * 0", ("script.py",)),
        ("script.py", REGISTRATION, "0.01", "0.02", ("script.py",)),
        ("script.py", REGISTRATION, "steps=5", "steps=6", ("script.py",)),
    ],
    ids=["environment", "environment of a program", "method of a script", "options", "time limit"],
)
def test_code_of_ones_own_that_was_edited_is_not_taken_for_what_was_trained(
    file: str, text: str, old: str, new: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    def run(content: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / file).write_text(content)
        return subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
        )

    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    first, again, edited = run(text), run(text), run(text.replace(old, new))
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert edited.returncode != 0
    assert "holds this run trained with" in edited.stderr
    assert ", now " in edited.stderr


NOTEBOOK = """
import importlib, pathlib, evergait, mine
config = evergait.Config(stream=("Mine-v0",), generations=1, pairs=1, method=evergait.Naive())
evergait.train(config, "out", threads=1)
file = pathlib.Path("mine.py")
file.write_text(file.read_text().replace("1.0", "-50.0").replace("(1,)", "(3,)"))
importlib.reload(mine)
try:
    evergait.train(config, "out", threads=1)
except evergait.EvergaitError as error:
    print(error)
run = evergait.train(config, "other", threads=1)
print(run.ledger.records[-1].mean("Mine-v0"), len(run.act("Mine-v0", [0, 0])))
"""


def test_an_environment_that_was_edited_in_a_notebook_is_another_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ENVIRONMENT.replace("Mine)", '"mine:Mine")'))
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", NOTEBOOK]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert run.returncode == 0, run.stderr
    refused, result = run.stdout.splitlines()
    assert "out holds this run trained with mine" in refused
    assert result == "-50.0 3"
