"""Studies are read strictly: what cannot work is named before any work starts. Phases get new names untrained."""

import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from small import tiny_study

from evergait.commands.study import run_study
from evergait.core.errors import EvergaitError
from evergait.methods import Method, Replay, Stage
from evergait.store.phases import PhaseStore
from evergait.studies.base import parse_study, read_study, shipped_studies
from evergait.studies.cells import Tree, select_cells, study_cells
from evergait.studies.plan import Cost, phase_cost
from evergait.studies.progress import study_status
from evergait.studies.rename import rename_study
from evergait.studies.results import Results
from evergait.training import phases as identities
from evergait.training.state import State
from evergait.training.train import Trainer

HEAD = 'title = "T"\ntasks = ["Reacher-v5", "InvertedPendulum-v5"]\n'
FIRST_SEEDS = (("single", 0), ("naive", 0), ("own", 50))
NAIVE = '[conditions.naive]\nmethod = "naive"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = ", "not valid TOML"),
        (NAIVE, "title"),
        (HEAD, "conditions: there is none"),
        ("titel = 'x'\n" + HEAD + NAIVE, "titel: unknown field; did you mean 'title'?"),
        ("conditons = {}\n" + HEAD + NAIVE, "did you mean 'conditions'?"),
        (HEAD + "seeds = 0\n" + NAIVE, "seeds: is 0"),
        (HEAD + "seeds = 'two'\n" + NAIVE, "seeds: is 'two'; it must be a whole number"),
        (HEAD + "orders = 3\n" + NAIVE, "orders: is 3"),
        (HEAD + "orders = []\n" + NAIVE, "orders: is []"),
        (HEAD + "orders = ['H>S']\n" + NAIVE, "'Hopper-v5' is not one of the study's tasks"),
        ('title = "T"\n' + NAIVE, "tasks: is missing"),
        ('title = "T"\ntasks = ["Reachr-v5"]\n' + NAIVE, "Reacher-v5"),
        (HEAD + "[base]\npears = 3\n" + NAIVE, "pears: unknown field; did you mean 'pairs'?"),
        (HEAD + "[base]\nstream = ['Reacher-v5']\n" + NAIVE, "base.stream: does not belong there"),
        (HEAD + NAIVE + "stream = ['Reacher-v5']\n", "conditions.naive.stream: does not belong there"),
        (HEAD + NAIVE + "[scales.mini]\ntasks = ['Reacher-v5']\n", "scales.mini.tasks: does not belong there"),
        (HEAD + NAIVE + "[scales.a.conditions.naive]\nstream = []\n", "scales.a.conditions.naive.stream: does not"),
        (HEAD + "[conditions.a]\nmethod = 'repaly'\n", "conditions.a: method: there is no method 'repaly'; did you"),
        (HEAD + "[conditions.a]\nmethod = {name = 'replay', budget = 3}\n", "conditions.a: method.budget: is 3"),
        (HEAD + "[conditions.a]\npairs = 0\n", "conditions.a: pairs: is 0"),
        (HEAD + "[conditions]\na = 3\n", "conditions.a: is 3; it must be a table"),
        (HEAD + "[conditions.single]\n", "conditions.single: is the name of the single-task baselines"),
        (HEAD + "[conditions.'a b']\n[conditions.a-b]\n", "conditions.a-b: its files would overwrite those of"),
        (HEAD + NAIVE + "[scales.mini]\npairs = 0\n", "scales.mini: conditions.naive: pairs: is 0"),
        (HEAD + NAIVE + "[scales.mini]\nconditions.naiv.pairs = 1\n", "did you mean 'naive'?"),
        (
            HEAD + NAIVE + "[scales.mini]\npairs = {low = 1}\n",
            "scales.mini: base: pairs: is {'low': 1}; it must be a whole number",
        ),
        (
            HEAD + "[base]\npairs = 3\n" + NAIVE + "[scales.mini]\npairs = {low = 1}\n",
            "pairs: is {'low': 1}; it must be a whole number",
        ),
        (
            HEAD + "[base]\npolicy.hidden = [8]\n" + NAIVE + "[scales.mini]\npolicy.hidden.a = 1\n",
            "policy.hidden: is {'a': 1}; it must be a list",
        ),
        (HEAD + NAIVE + "[scales]\nmini = 1\n", "scales.mini: is 1; it must be a table"),
    ],
)
def test_bad_studies_are_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(EvergaitError) as refusal:
        parse_study(text.encode(), "my.toml")
    assert words in str(refusal.value)
    assert str(refusal.value).startswith("my.toml: ")
    assert str(refusal.value).count("my.toml") == 1


def test_a_condition_with_seeds_of_its_own_is_trained_as_often_as_others(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(tiny_study(replay=False) + "[conditions.own]\nseed = 50\n")
    for n_seeds, last in ((None, 0), (2, 1), (2, 1), (1, 1)):
        results = run_study(tmp_path / "own.toml", tmp_path / "out", seeds=n_seeds, threads=1, artifacts=False)
        found = {(entry.condition, entry.seed) for entry in results.entries if entry.run.is_done}
        seeds = range(last + 1)
        assert found == {(name, first + i) for name, first in FIRST_SEEDS for i in seeds}
        assert {status.state for status in study_status(tmp_path / "out")} == {"done"}


def test_a_scale_in_generations_takes_the_place_of_a_base_in_steps() -> None:
    text = """\
[base]
pairs = 3
steps = 64_000
evaluation = { every_steps = 16_000, episodes = 3 }
[conditions.own]
steps = 96_000
[conditions.naive]
[scales.mini]
generations = 7
conditions.own.generations = 5
[scales.more]
generations = 7
steps = 128_000
"""
    study = parse_study((HEAD + "orders = ['Reacher-v5']\nbaselines = false\n" + text).encode(), "my.toml")

    def lengths(scale: str) -> list[tuple[int, str]]:
        return [(cell.config.phase_length, cell.config.unit) for cell in study_cells(study.at_scale(scale))]

    assert lengths("") == [(96_000, "steps"), (64_000, "steps")]
    assert lengths("mini") == [(5, "generations"), (7, "generations")]
    assert lengths("more") == [(96_000, "steps"), (128_000, "steps")]
    assert study.at_scale("mini").base_config().evaluation.episodes == 3


@pytest.mark.parametrize("table", ["[base]\n" + NAIVE, NAIVE])
def test_seeds_beyond_the_last_one_are_refused_at_load(table: str) -> None:
    text = table.replace("]\n", f"]\nseed = {2**64 - 2}\n", 1)
    words = f"my.toml: seeds: is 3; it must be at most 2, as the first one is {2**64 - 2}"
    with pytest.raises(EvergaitError, match=words):
        parse_study((HEAD + "seeds = 3\n" + text).encode(), "my.toml")
    study = parse_study((HEAD + "seeds = 2\n" + text).encode(), "my.toml")
    for cell in study_cells(study):
        cell.config.check()
    with pytest.raises(EvergaitError, match=words):
        study.with_seeds(3)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(EvergaitError, match="did you mean 'paper'"):
        read_study("papr")
    with pytest.raises(EvergaitError, match="did you mean 'mini'"):
        read_study("paper").at_scale("minni")
    with pytest.raises(EvergaitError, match="it has no scales"):
        read_study("demo").at_scale("mini")
    with pytest.raises(EvergaitError, match="only: the study has no order 'S>H'"):
        select_cells(study_cells(read_study("demo")), ("S>H",))
    with pytest.raises(EvergaitError, match="conditions: the study has no condition 'distil'; did you mean"):
        select_cells(study_cells(read_study("demo")), conditions=("distil",))


@pytest.mark.parametrize("name", shipped_studies())
def test_shipped_studies_read_back_as_they_are(name: str) -> None:
    study = read_study(name)
    for scale in ("", *study.scales):
        scaled = study.at_scale(scale)
        again = parse_study(scaled.to_toml().encode(), name)
        assert [(c.condition, c.config) for c in study_cells(again)] == [
            (c.condition, c.config) for c in study_cells(scaled)
        ]


def test_the_paper_is_a_tree_of_48_phases() -> None:
    cells = study_cells(read_study("paper").at_scale("full"))
    assert len(cells) == 3 + 3 * 6 + 2 + 2
    # shared 3+6+6 (its first three are the baselines), replay 6+6, distinct 3+6+6, budgets 2+2, multi-task 2
    assert len(Tree.build(cells).nodes) == 15 + 12 + 15 + 4 + 2
    assert {(cell.config.pairs, cell.config.generations) for cell in cells} == {(384, 1000)}


@pytest.mark.parametrize("scale", ["full", "half", "mini"])
def test_replay_budgets_keep_their_share_of_the_population(scale: str) -> None:
    for cell in study_cells(read_study("paper").at_scale(scale)):
        if isinstance(cell.config.method, Replay):
            share = int(cell.condition.removeprefix("replay-")) / 768
            assert cell.config.method.budget / (2 * cell.config.pairs) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("name", ["methods", "return"])
@pytest.mark.parametrize("scale", ["", "mini"])
def test_methods_have_equal_budgets(name: str, scale: str) -> None:
    cells = select_cells(study_cells(read_study(name).at_scale(scale)), n_seeds=1)
    streams = [cell for cell in cells if cell.condition != "single"]
    assert len({cell.config.steps * len(cell.phases) for cell in streams}) == 1
    for cell in streams:
        cost = Cost.total(phase_cost(cell.config, phase.stage) for phase in cell.phases)
        assert sum(cost.given.values()) == pytest.approx(cell.config.steps * len(cell.phases), abs=1000)


def test_the_study_of_methods_has_them_all() -> None:
    methods = {cell.config.method.name for cell in study_cells(read_study("methods"))}
    assert {part for method in methods for part in method.split("+")} == set(Method.members) - {"interval"}


def test_the_long_stream_comes_back() -> None:
    (stream,) = {cell.config.stream for cell in study_cells(read_study("return")) if cell.condition != "single"}
    assert len(stream) == 8
    assert stream[-1] == stream[0]


def test_selecting_one_order_keeps_the_baselines_of_its_tasks() -> None:
    cells = select_cells(study_cells(read_study("paper").with_seeds(2)), ("H>S>W",), 1)
    assert {cell.seed for cell in cells} == {0}
    assert [cell.order for cell in cells if cell.condition == "single"] == ["Hopper", "Swimmer", "Walker2d"]
    assert {cell.order for cell in cells if cell.condition != "single"} == {"Hopper > Swimmer > Walker2d"}
    chosen = select_cells(cells, conditions=("shared", "single"))
    assert [cell.condition for cell in chosen] == ["single", "single", "single", "shared"]


def test_a_study_of_twenty_lines_needs_no_tasks(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('title = "Own"\norders = ["Reacher-v5 > InvertedPendulum-v5"]\n[conditions.plain]\n')
    study = read_study(path)
    assert [task.id for task in study.tasks()] == ["Reacher-v5", "InvertedPendulum-v5"]
    assert tomllib.loads(study.to_toml())["conditions"] == {"plain": {}}


def test_phases_are_renamed_and_found_again(
    trained_study: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = PhaseStore(trained_study.path / "phases")
    monkeypatch.setitem(identities.VERSIONS, "policy", 7)
    names = rename_study(trained_study.path, tmp_path / "new")
    after = PhaseStore(tmp_path / "new" / "phases")
    assert set(names) == set(before.names())
    assert set(names.values()) == set(after.names())
    assert not set(names) & set(names.values())
    for old, new in names.items():
        after.folder(new).verify()
        assert after.folder(new).read("theta.safetensors") == before.folder(old).read("theta.safetensors")
        assert after.folder(new).ledger() == before.folder(old).ledger()
    (tmp_path / "tiny.toml").write_text(tiny_study())
    files = {path: path.read_bytes() for path in after.root.rglob("*.*")}
    run_study(tmp_path / "tiny.toml", tmp_path / "new", seeds=2, threads=1, artifacts=False)
    assert {path: path.read_bytes() for path in after.root.rglob("*.*")} == files
    assert {status.state for status in study_status(tmp_path / "new")} == {"done"}
    with pytest.raises(EvergaitError, match="is there already"):
        rename_study(trained_study.path, tmp_path / "new")


def test_a_phase_in_training_goes_on_under_its_new_name(
    trained_study: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiny.toml").write_text(tiny_study())
    advance = Trainer.advance

    def interrupted(trainer: Trainer, stage: Stage, state: State) -> object:
        if state.generation == 3:
            raise KeyboardInterrupt
        return advance(trainer, stage, state)

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(Trainer, "advance", interrupted)
        run_study(tmp_path / "tiny.toml", tmp_path / "old", threads=1, checkpoint_seconds=0, artifacts=False)
    monkeypatch.setitem(identities.VERSIONS, "policy", 7)
    names = rename_study(tmp_path / "old", tmp_path / "new")
    (phase,) = PhaseStore(tmp_path / "new" / "phases").names()
    assert PhaseStore(tmp_path / "new" / "phases").folder(phase).progress()["generation"] == 3
    run_study(tmp_path / "tiny.toml", tmp_path / "new", threads=1, artifacts=False)
    for old, new in names.items():
        whole = PhaseStore(trained_study.path / "phases").folder(old)
        assert PhaseStore(tmp_path / "new" / "phases").folder(new).read("ledger.jsonl") == whole.read("ledger.jsonl")
