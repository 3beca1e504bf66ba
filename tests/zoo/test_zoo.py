"""Policies are listed, copied, shared and fetched, and what arrives is the run that was sent."""

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from faults import tree
from hub_server import hub
from small import tiny_config
from synthetic import make_config, write_run

import evergait
from evergait.cli import main
from evergait.core.errors import EvergaitError
from evergait.core.files import write_json
from evergait.store.archive import archive_path
from evergait.tasks import parse_task
from evergait.training.evaluate import Evaluator
from evergait.training.run import Run
from evergait.workers import LocalWorkers
from evergait.zoo import card, catalogue, get
from evergait.zoo.card import final_returns, share
from evergait.zoo.catalogue import SHIPPED


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("zoo")
    return evergait.train(tiny_config(), folder / "run", threads=1, store=folder / "store")


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The command, with a hub of our own; what it complains of, or nothing."""
    monkeypatch.setenv("HF_TOKEN", "hf_stand_in")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)  # LFS, which the stand-in speaks

    def run(address: str, *arguments: object) -> str:
        monkeypatch.setenv("HF_ENDPOINT", address)
        capsys.readouterr()
        code = main(["zoo", *map(str, arguments)])
        words = "".join(re.findall(r"^evergait: .*", capsys.readouterr().err, re.MULTILINE | re.DOTALL))
        assert code == (2 if words else 0)
        return words

    return run


def test_what_ships_is_trained_and_small() -> None:
    assert {"hsw-naive", "hsw-distill", "hopper", "swimmer", "walker", "cheetah"} == catalogue().keys()
    for name, run in catalogue().items():
        assert run.is_done
        assert final_returns(run).keys() == set(run.config.stream)
        assert all(map(math.isfinite, final_returns(run).values()))
        assert name in card(run, name)
    assert archive_path(SHIPPED).stat().st_size < 1_500_000


def test_a_card_takes_no_undefined_return_for_a_number(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    record = run.ledger.records[-1]
    task = next(iter(record.returns))
    monkeypatch.setitem(record.returns, task, [math.nan] * len(record.returns[task]))
    words = card(run, "someone/it")
    assert "NaN" not in words
    assert "nan" not in words
    assert "| undefined |" in words
    head = yaml.safe_load(words.split("---")[1])
    assert head["model-index"][0]["results"][0]["metrics"][0]["value"] is None


def test_a_policy_that_ships_becomes_a_run(tmp_path: Path) -> None:
    name, shipped = next(iter(catalogue().items()))
    run = get(name, tmp_path / "run")
    assert run.theta_sha256 == shipped.theta_sha256
    assert run.config == shipped.config
    assert {path.name for path in run.path.iterdir()} == {
        *("README.md", "config.toml", "phases", "policy.safetensors", "run.json")
    }
    assert (run.path / "README.md").read_text() == card(shipped, name)
    with pytest.raises(EvergaitError, match="is there already"):
        get(name, tmp_path / "run")
    with pytest.raises(EvergaitError, match=f"did you mean '{name}'"):
        get(name[:-1], tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_one_policy_is_described_as_in_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for words in ([], ["hsw-distill"]):
        assert main(["zoo", *words, "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[1] in told[0]


def test_what_ships_still_returns_what_its_card_says(tmp_path: Path) -> None:
    """Played by plain Gymnasium; a walker that falls now and then needs some episodes until the mean agrees."""
    name = next(iter(catalogue()))
    get(name, tmp_path / "run")
    assert main(["verify", str(tmp_path / "run"), "--episodes", "10"]) == 0


def test_the_card_has_a_head_that_the_hub_can_read(run: Run) -> None:
    text = card(run, "someone/tiny")
    head = yaml.safe_load(text.split("---")[1])
    results = head["model-index"][0]["results"]
    assert head["library_name"] == "evergait"
    assert {r["dataset"]["name"]: r["metrics"][0]["value"] for r in results} == pytest.approx(
        final_returns(run), abs=0.06
    )
    assert "evergait zoo someone/tiny --out runs/tiny" in text


def test_a_packed_run_needs_nothing_outside(run: Run, tmp_path: Path) -> None:
    share(run, tmp_path / "packed", "someone/tiny")
    (tmp_path / "packed").rename(tmp_path / "moved")
    assert Run.load(tmp_path / "moved").theta_sha256 == run.theta_sha256
    assert json.loads((tmp_path / "moved/run.json").read_text())["store"] == "phases"


def test_a_robot_of_ones_own_is_not_shared_without_its_file(tmp_path: Path) -> None:
    for file in (Path(__file__).parents[2] / "examples" / "robot").iterdir():
        shutil.copy(file, tmp_path)
    run = write_run(tmp_path / "run", make_config([str(tmp_path / "crawler.toml")]))
    with pytest.raises(EvergaitError, match=r"crawler.toml is a robot's file, which others do not have; only runs on"):
        share(run, tmp_path / "shared", "someone/crawler")
    assert not (tmp_path / "shared").exists()


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # the hub's own library, of its own library
def test_up_to_a_hub_and_back(run: Run, tmp_path: Path, zoo: Callable[..., str]) -> None:
    with hub(tmp_path / "hub") as server:
        assert zoo(server.address, "someone/tiny", "--upload", run.path, "--store", run.phases[0].path.parent) == ""
        there = tmp_path / "hub/someone/tiny"
        assert {path.name for path in there.iterdir()} == {
            *("README.md", "config.toml", "phases", "policy.safetensors", "run.json")
        }
        by_lfs = {line for line in server.asked if line.startswith("PUT /lfs/")}
        assert len(by_lfs) == len({path.read_bytes() for path in there.rglob("*.safetensors")}) > 0
        (there / "evil.py").write_text("raise SystemExit('executed')")
        (there / "phases" / "evil").mkdir()
        (there / "phases" / "evil" / "large.bin").write_bytes(b"more than anybody asked for")
        (there / "policy.safetensors").write_bytes(b"another policy altogether")
        assert zoo(server.address, "someone/tiny", "--out", tmp_path / "back") == ""
        assert not any("evil" in line for line in server.asked if line.startswith("GET /someone"))
        asked = len(server.asked)
        assert "is there already" in zoo(server.address, "someone/tiny", "--out", tmp_path / "back")
        assert len(server.asked) == asked
    share(run, tmp_path / "same", "someone/tiny")
    assert tree(tmp_path / "back") == tree(tmp_path / "same")
    assert Run.load(tmp_path / "back").theta_sha256 == run.theta_sha256
    assert not [path for path in (tmp_path / "back").rglob("*") if path.is_symlink() or path.name.startswith(".")]


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
def test_an_upload_that_breaks_is_a_sentence(run: Run, tmp_path: Path, zoo: Callable[..., str]) -> None:
    with hub(tmp_path / "hub") as server:
        server.refuses = "PUT"
        words = zoo(server.address, "someone/tiny", "--upload", run.path, "--store", run.phases[0].path.parent)
    assert words.startswith("evergait: zoo: the hub and someone/tiny:")
    assert "Error while uploading" in words


@pytest.mark.parametrize("damage", ["missing", "no-run", "store", "theta"])
def test_what_is_no_policy_is_not_written(damage: str, run: Run, tmp_path: Path, zoo: Callable[..., str]) -> None:
    folder = tmp_path / "hub/someone/tiny"
    if damage != "missing":
        share(run, folder, "someone/tiny")
    if damage == "no-run":
        (folder / "run.json").unlink()
    elif damage == "store":
        described = json.loads((folder / "run.json").read_text())
        write_json(folder / "run.json", {**described, "store": "../../outside"})
    elif damage == "theta":
        next(folder.glob("phases/*/theta.safetensors")).write_bytes(b"damaged")
    with hub(tmp_path / "hub") as server:
        assert zoo(server.address, "someone/tiny", "--out", tmp_path / "back")
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["hoper"], "there is no policy 'hoper'; did you mean 'hopper'"),
        (["someone/tiny"], "--out runs/tiny"),
        (["tiny", "--upload", "x"], "owner/name"),
        (["--out", "x"], "name: is ''"),
        (["someone/no/tiny", "--out", "x"], "must look like owner/name"),
    ],
)
def test_mistakes_are_sentences(arguments: list[str], words: str, zoo: Callable[..., str]) -> None:
    assert words in zoo("http://127.0.0.1:9", *arguments)


@pytest.mark.parametrize("name", catalogue())
def test_a_policy_that_ships_does_what_its_ledger_says(name: str, tmp_path: Path) -> None:
    run = evergait.pretrained(name)
    task = parse_task(run.config.stream[-1])
    record, state, workers = run.ledger.records[-1], run.state(), LocalWorkers(1)
    evaluator = Evaluator(run.policy, {task: "planar"}, workers, run.config.evaluation, run.config.seed)
    outcome = workers.run("planar", evaluator.episodes(state.theta, task, state.statistics, 2))
    assert outcome.returns.tolist() == record.returns[task.name][:2]
    assert main(["play", "--pretrained", name, "--output", str(tmp_path / "gait.html")]) == 0
    assert (tmp_path / "gait.html").stat().st_size > 10_000
    assert not run.path.exists()  # what ships stays as it is


def test_a_card_says_how_a_policy_was_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    for name, words in (("walker", "It is the best of 20 seeds"), ("hsw-distill", "another seed may end elsewhere")):
        assert main(["zoo", name]) == 0
        told = capsys.readouterr().out
        assert words in told
        assert ("one after the other" in told) == (name != "walker")
        assert ("Its layers for HalfCheetah, Hopper, Swimmer are as they were drawn" in told) == (name == "walker")


def test_pretrained_names_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EvergaitError, match="did you mean 'walker'"):
        evergait.pretrained("waker")
    for arguments in ([], [str(tmp_path), "--pretrained", "walker"], ["--pretrained", "walker", "--seed", "3"]):
        assert main(["play", *arguments, "--output", str(tmp_path / "gait.html")]) == 2
        assert "pretrained" in capsys.readouterr().err
