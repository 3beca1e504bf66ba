"""`import evergait as eg`: names, and what they cost."""

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import evergait as eg
from evergait.cli import COMMANDS, find
from evergait.training.evaluate import evaluation_seeds


def test_every_public_name_is_there() -> None:
    for name in eg.__all__:
        assert getattr(eg, name) is not None


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(eg.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    declared = {alias.asname: node.module for node in block.body for alias in node.names}  # type: ignore[attr-defined]
    assert declared == eg._WHERE


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'evergait' has no attribute 'Repaly'"):
        eg.Repaly  # noqa: B018


HEAVY = ("mujoco", "gymnasium", "numpy", "rich", "tyro", "matplotlib", "ray", "pyarrow")


def imported(code: str) -> set[str]:
    """Which heavy modules some code imports."""
    code = f"import sys\n{code}\nsys.stderr.write(' '.join(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_importing_costs_nothing() -> None:
    assert imported("import evergait") == set()


def test_help_imports_no_command() -> None:
    assert imported("from evergait.cli import main; main(['--help'])") == set()


def test_showing_a_run_simulates_nothing(trained: Path) -> None:
    assert "mujoco" not in imported(f"from evergait.cli import main; main(['show', {str(trained)!r}])")


def test_mujoco_is_not_imported_for_what_it_does_not_simulate(tmp_path: Path) -> None:
    small = "--generations 1 --pairs 2 --evaluation.episodes 1 --evaluation.random-policies 1"
    words = ["train", "--stream", "CartPole-v1", *small.split(), "--out", str(tmp_path / "run")]
    assert "mujoco" not in imported(f"from evergait.cli import main; main({words!r})")
    assert (tmp_path / "run" / "config.toml").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_are_where_the_table_says(name: str) -> None:
    assert find(name).__doc__
    assert callable(find(name).run)


def test_load_reads_a_run(trained: Path) -> None:
    run = eg.load(trained)
    assert isinstance(run, eg.Run)
    assert run.theta.dtype == np.float32


def test_a_run_acts_as_its_policy_did_in_evaluation(trained: Path) -> None:
    run = eg.Run.load(trained)
    env = gymnasium.make("InvertedPendulum-v5")
    seed = int(evaluation_seeds(run.config.seed, eg.Task("InvertedPendulum-v5"), 1)[0])
    total, over, (observation, _) = 0.0, False, env.reset(seed=seed)
    while not over:
        observation, reward, terminated, truncated, _ = env.step(run.act("InvertedPendulum-v5", observation))
        total, over = total + float(reward), terminated or truncated
    assert total == run.ledger.records[-1].returns["InvertedPendulum-v5"][0]
    for wrong in ([1.0], [0.0, 0.0, np.nan, 0.0]):
        with pytest.raises(eg.EvergaitError, match=r"observation: is .*; it must be a vector of 4 numbers, all"):
            run.act("InvertedPendulum-v5", wrong)
    with pytest.raises(eg.EvergaitError, match="the policy has no input layer for it; it knows"):
        run.act("Hopper-v5", observation)


def test_notebooks_show_a_run_as_a_table(trained: Path) -> None:
    html = eg.Run.load(trained)._repr_html_()
    assert "<td>after Reacher-v5</td>" in html
    assert html.count("<tr>") == 3


@pytest.mark.parametrize(
    ("argument", "wrong"),
    [
        ("config", (None, {}, "quick", eg.Config, 3)),
        ("out", (None, 3, b"x", [], "", "\0", "\ud800")),
        ("store", (3, b"x", [1], "", "\0")),
        ("threads", ("x", 1.5, True, [], 0, 2**80)),
        ("checkpoint_seconds", ("x", None, [], np.nan, -1, object())),
        ("workers", (3, "x", [], object, eg.Local())),
        ("observers", (3, "x", [1], None)),
    ],
)
def test_train_names_a_wrong_argument_and_writes_nothing(
    argument: str, wrong: tuple[object, ...], tmp_path: Path
) -> None:
    for value in wrong:
        given: dict[str, Any] = {"config": eg.preset("quick"), "out": tmp_path / "out", argument: value}
        with pytest.raises(eg.EvergaitError, match=f"^{argument}: "):
            eg.train(**given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [None, 3, [], b"x", "no such thing", "\0"])
@pytest.mark.parametrize("call", [eg.preset, eg.pretrained, eg.load, eg.Run.load, eg.read_config, eg.watch])
def test_what_is_looked_up_by_a_wrong_name_is_refused_in_words(call: Callable[[Any], object], value: object) -> None:
    with pytest.raises(eg.EvergaitError):
        call(value)


def test_a_run_names_wrong_stages_and_tasks(trained: Path) -> None:
    run = eg.Run.load(trained)
    for stage in (None, "x", 99, -99, 1.5):
        with pytest.raises(eg.EvergaitError, match=r"^stage: "):
            run.state(stage)  # type: ignore[arg-type]
    for task in (None, 3, "Ant-v5"):
        with pytest.raises(eg.EvergaitError, match=r"^task "):
            run.act(task, np.zeros(4))  # type: ignore[arg-type]
    for value in ("a", np.nan, None):
        with pytest.raises(eg.EvergaitError, match=r"score.reference: .* it must be a finite number"):
            run.scored(dict.fromkeys(run.config.stream, value))  # type: ignore[arg-type]
