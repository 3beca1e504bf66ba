"""Names of phases are promises: what was trained before must be found again by the same settings."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from evergait.config import Config, preset
from evergait.core.data import added, from_data, to_identity
from evergait.es import Adam
from evergait.methods import Distill, Interval, Method, Multitask, Naive, Replay
from evergait.training import phases as identities
from evergait.training.phases import plan_phases

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
