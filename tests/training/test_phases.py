"""Names of phases are promises: what was trained before must be found again by the same settings."""

from dataclasses import replace

import mujoco
import pytest

from evergait.config import preset
from evergait.methods import Interval, Method, Multitask, Naive, Replay
from evergait.training.phases import plan_phases

NAMES = [
    (Naive(), ["063fdbe85f9a477e00ce39d2", "a3c1ce579916742228387a7e", "ea1043846a672aa2ad049577"]),
    (Replay(budget=64), ["063fdbe85f9a477e00ce39d2", "60af4ef3348e7870629de478", "4c3ac02cd6e288399fde4e26"]),
    (Interval(), ["063fdbe85f9a477e00ce39d2", "7e10377546ed8dd3fad1c138", "bbfcca67ad6d4b63ef9ccd6d"]),
    (Multitask(), ["ef563cbd35bc2e87b667be4b"]),
]


@pytest.mark.parametrize(("method", "names"), NAMES, ids=[method.name for method, _ in NAMES])
def test_phases_keep_their_names(method: Method, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mujoco, "__version__", "4.0.0")
    assert [phase.name for phase in plan_phases(replace(preset("paper"), method=method))] == names


@pytest.mark.parametrize("name", ["distill", "ewc", "anchor", "freeze", "replay+distill", "replay+adaptive+project"])
def test_first_phases_are_shared_by_all_methods(name: str) -> None:
    naive, other = (plan_phases(replace(preset("paper"), method=m)) for m in (Naive(), Method.named(name, "method")()))
    assert other[0].name == naive[0].name
    assert other[1].name != naive[1].name
