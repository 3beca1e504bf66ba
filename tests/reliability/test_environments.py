"""What a user's environment may do to a run: it is counted, it stops it in its own words, or it is refused by name.

A return that is no number is no value: not in a measure, not in R*, not in JSON, not in a choice.
"""

import contextlib
import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from careless_environments import LIES, LITTER, REWARDS, WRONG, Liar
from faults import answer, children, write_counts
from small import tiny_config

from evergait import train
from evergait.commands.verify import compare
from evergait.config import Config
from evergait.core.errors import EvergaitError
from evergait.core.files import read_json, sha256, write_json
from evergait.engines.gymnasium.episode import observed, rewarded
from evergait.es import SHAPINGS, Optimizer
from evergait.methods import Collection, Distill, Naive
from evergait.store.ledger import Ledger, Record, header_line, parse_ledger, record_line
from evergait.training.run import Run
from evergait.workers import Local

HERE = Path(__file__).parent.parent / "support"
KEEPING = Distill(collection=Collection(episodes=2))
NUMBERS = ("nan", "inf", "-inf", "overflow", "observation")


@pytest.fixture(autouse=True)
def _careless_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


def strange(fault: str, **changes: Any) -> Config:
    name = f"careless_environments:Strange{fault.title()}-v0"
    return tiny_config(stream=(name,), engine="gymnasium", method=Naive(), **changes)


@pytest.mark.parametrize("fault", ["nan", "overflow"])
def test_candidates_without_a_finite_return_are_counted_and_rank_last(fault: str, tmp_path: Path) -> None:
    run = train(strange(fault), tmp_path / "run", threads=1)
    assert sum(record.diverged for record in run.ledger.records) > 0
    assert np.isfinite(run.theta).all()


@pytest.mark.prove
def test_no_number_spoils_a_run(tmp_path: Path) -> None:
    n_tried, workers = 0, Local().start(1)  # one process for all of them
    for fault in NUMBERS:
        for shaping in SHAPINGS:
            for name, optimizer in Optimizer.members.items():
                config = strange(fault, shaping=shaping, optimizer=optimizer())
                run = train(config, tmp_path / f"{fault}{shaping}{name}", workers=workers)
                assert np.isfinite(run.theta).all()
                assert sum(record.diverged for record in run.ledger.records) > 0
                n_tried += 1
    workers.close()
    write_counts("numbers", n_tried, 0, f"{len(NUMBERS)} kinds, under every shaping and optimizer")


WORDS = {
    "raise": ["ZeroDivisionError: the joint is missing"],
    "die": ["ended its process (exit code 7)"],
    "hang": ["has taken more than 1 s", "workers.episode_seconds must be longer"],
    "making": ["making the environment", "has taken more than 2 s", "workers.making_seconds must be longer"],
    "asking": ["making the environment", "has taken more than 2 s", "workers.making_seconds must be longer"],
    "dying": ["making the environment", "ended its process (exit code 7)"],
    "recording-raise": ["ZeroDivisionError: the joint is missing"],
    "recording-hang": ["the episode with seed", "has taken more than 1 s", "workers.episode_seconds must be longer"],
    "recording-die": ["ended its process (exit code 7)"],
}
LIMITS = {
    "hang": {"episode_seconds": 1.0},
    "making": {"making_seconds": 2.0},
    "asking": {"making_seconds": 2.0},
    "recording-hang": {"episode_seconds": 1.0},
}


def fails(fault: str, out: Path, n_threads: int) -> None:
    """A run on a failing environment stops, says why, and leaves no process behind."""
    before = children()
    config = strange(fault)
    if fault.startswith("recording"):  # what is kept of a task is recorded when the next one begins
        config = replace(config, stream=(*config.stream, *strange("").stream), method=KEEPING)
    workers = Local(**LIMITS.get(fault, {})).start(n_threads)
    with pytest.raises(EvergaitError) as caught:
        train(config, out, workers=workers)
    for word in ["careless_environments:", *WORDS[fault]]:
        assert word in str(caught.value)
    assert "seed" in str(caught.value) or fault not in ("raise", "hang", "die")
    workers.close()
    assert set(children()) <= set(before)


@pytest.mark.parametrize("fault", WORDS)
def test_an_environment_that_fails_stops_the_run_with_its_own_words(fault: str, tmp_path: Path) -> None:
    fails(fault, tmp_path / "run", n_threads=2)


@pytest.mark.prove
def test_no_environment_holds_a_run(tmp_path: Path) -> None:
    turns = [(fault, n_threads, turn) for fault in WORDS for n_threads in (1, 2, 7) for turn in range(3)]
    for fault, n_threads, turn in turns:
        fails(fault, tmp_path / f"{fault}{n_threads}{turn}", n_threads)
    write_counts("environments", len(turns), 0, "stopped with the environment's own words, no process left")


def test_what_an_environment_has_started_ends_with_it(tmp_path: Path) -> None:
    workers = Local().start(2)
    train(strange("litter"), tmp_path / "run", workers=workers)
    workers.close()
    deadline = time.monotonic() + 10
    while litter():
        assert time.monotonic() < deadline, "a process of the environment has outlived it"
        time.sleep(0.05)  # what is killed is gone a moment later


def litter() -> list[Path]:
    """Processes that the environment has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            found += [path] if LITTER.encode() in path.read_bytes().split(b"\0") else []
    return found


def test_an_environment_that_cannot_be_made_is_refused_with_its_own_words(
    ask: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    (tmp_path / "c.toml").write_text(strange("unmakable").to_toml())
    code, output = ask("train", "--config", tmp_path / "c.toml", "--out", tmp_path / "run")
    assert code == 2
    assert "it cannot be made: ZeroDivisionError: no such motor" in output
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("fault", "setting", "seconds"),
    [
        ("hang", "episode-seconds", 1),
        ("making", "making-seconds", 3),  # in which its spaces must have been asked for
        ("asking", "making-seconds", 1),
    ],
)
def test_the_time_that_an_environment_may_take_is_a_setting(
    ask: Callable[..., tuple[int, str]], tmp_path: Path, fault: str, setting: str, seconds: int
) -> None:
    (tmp_path / "c.toml").write_text(strange(fault).to_toml())
    arguments = ("train", "--config", tmp_path / "c.toml", "--out", tmp_path / "run", f"--workers.{setting}")
    code, output = ask(*arguments, seconds)
    assert code == 2
    assert f"has taken more than {seconds} s" in output
    assert (tmp_path / "run").exists() == (fault != "asking")
    assert f"workers.{setting.replace('-', '_')}" in output
    code, output = ask(*arguments, "0")
    assert code == 2
    assert f"workers.{setting.replace('-', '_')}: is 0.0; it must be above 0" in output


def test_a_theta_that_leaves_the_numbers_is_an_error(tmp_path: Path) -> None:
    config = strange("", shaping="raw", optimizer=Optimizer.named("plain", "optimizer")(learning_rate=1e40))
    with pytest.raises(EvergaitError, match="θ left the finite numbers in generation"):
        train(config, tmp_path / "run", threads=1)


@pytest.mark.parametrize("carry", ["last", "best"])
def test_an_evaluation_that_is_no_number_is_recorded_as_what_it_is(carry: str, tmp_path: Path) -> None:
    """Every evaluation of the first task is undefined for some episodes; 0 would be the optimum where rewards cost."""
    config = replace(strange("-inf"), carry=carry, generations=6)  # type: ignore[arg-type]
    config = replace(config, stream=(*config.stream, *strange("").stream))
    run = train(config, tmp_path / "run", threads=1)
    task = config.stream[0]
    undefined = [record for record in run.ledgers[0].records if record.n_undefined]
    assert undefined
    for record in undefined:
        assert np.isnan(record.returns[task]).any()
        assert np.isnan(record.mean(task))
    text = (run.phases[0].path / "ledger.jsonl").read_text()
    assert text.count('"undefined":') == len(undefined)
    assert "NaN" not in text
    best = run.ledgers[0].best(task)
    defined = [record.mean(task) for record in run.ledgers[0].records if not record.n_undefined]
    assert best == max(defined) if defined else np.isnan(best)
    assert run.is_done


LIE_WORDS = {
    **dict.fromkeys((*WRONG, *(f"reset-{name}" for name in WRONG)), "it must be a vector of 2 numbers"),
    **dict.fromkeys(REWARDS, "it must be one number"),
    "unreadable": "UnreadableError",
    "exit": "SystemExit",
    "interrupt": "KeyboardInterrupt",
    "scribble": "wrote into a file descriptor that is not its own",
}


def liar(fault: str) -> Config:
    return tiny_config(stream=(f"careless_environments:Liar-{fault}-v0",), engine="gymnasium", method=Naive())


def refuses(fault: str, out: Path, n_threads: int = 2) -> None:
    """Training stops with words about the fault, and no process stays."""
    before = children()
    workers = Local(episode_seconds=20.0).start(n_threads)
    with pytest.raises(EvergaitError) as caught:
        train(liar(fault), out, workers=workers)
    assert f"Liar-{fault}-v0" in str(caught.value)
    assert LIE_WORDS[fault] in str(caught.value)
    workers.close()
    assert set(children()) <= set(before)


@pytest.mark.parametrize("fault", WRONG)
def test_an_observation_that_is_not_as_promised_is_refused(fault: str) -> None:
    with pytest.raises(EvergaitError, match="it must be a vector of 2 numbers"):
        observed(Liar(f"reset-{fault}").reset(seed=0)[0], 2)


@pytest.mark.parametrize("reward", ["1.0", None, [1.0, 2.0], [[1.0], []], 1j, object()])
def test_a_reward_that_is_no_number_is_refused(reward: object) -> None:
    with pytest.raises(EvergaitError, match="it must be one number"):
        rewarded(reward)
    assert rewarded(np.float32(0.5)) == rewarded([0.5]) == 0.5


@pytest.mark.parametrize("fault", ["short", "reset-empty", "reward-text", "unreadable", "scribble"])
def test_what_is_not_as_promised_is_refused_with_words(fault: str, tmp_path: Path) -> None:
    refuses(fault, tmp_path / "run")


def test_a_fork_of_an_environment_answers_nothing(tmp_path: Path) -> None:
    once, twice = (train(liar("fork"), tmp_path / name, threads=n) for name, n in (("one", 1), ("two", 2)))
    assert once.theta_sha256 == twice.theta_sha256


@pytest.mark.parametrize(("fault", "words"), [("blind", "observations"), ("lame", "actions")])
def test_spaces_without_a_number_are_refused(
    fault: str, words: str, ask: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    task = f"careless_environments:Void-{fault}-v0"
    code, output = ask("train", "--stream", task, "--engine", "gymnasium", "--out", tmp_path / "run")
    assert code == 2
    assert f"its {words} have no number" in output
    assert not (tmp_path / "run").exists()


def test_no_traceback_reaches_the_user(tmp_path: Path) -> None:
    for fault in ("unreadable", "interrupt"):
        path = tmp_path / f"{fault}.toml"
        path.write_text(liar(fault).to_toml())
        code, output = answer("train", "--config", path, "--out", tmp_path / fault, env={"PYTHONPATH": str(HERE)})
        assert code == 2
        assert LIE_WORDS[fault] in output


@pytest.mark.prove
def test_no_lie_gets_through(tmp_path: Path) -> None:
    turns = [(fault, n_threads, turn) for fault in LIE_WORDS for n_threads in (1, 2) for turn in range(3)]
    for fault, n_threads, turn in turns:
        refuses(fault, tmp_path / f"{fault}{n_threads}{turn}", n_threads)
    assert set(LIE_WORDS) | {"fork"} == set(LIES)
    write_counts(
        "foreign", len(turns), 0, f"{len(LIE_WORDS)} kinds of lies, refused by name before the native core saw them"
    )


NAN = math.nan


def undefine(run: Path, out: Path, stage: int, which: slice) -> Path:
    """A copy of a run in which some evaluations of a stage's own task have no value."""
    shutil.copytree(run, out)
    phase = Run.load(out).phases[stage]
    ledger = phase.ledger()
    task, chosen = ledger.learning[0], ledger.records[which]
    records = [
        replace(r, returns={**r.returns, task: [NAN, *r.returns[task][1:]]}) if r in chosen else r
        for r in ledger.records
    ]
    (phase.path / "ledger.jsonl").write_bytes(b"".join([header_line(ledger), *map(record_line, records)]))
    progress = read_json(phase.path / "progress.json")
    progress["sha256"]["ledger.jsonl"] = sha256((phase.path / "ledger.jsonl").read_bytes())
    write_json(phase.path / "progress.json", progress)
    return out


WHICH = {"first": slice(0, 1), "last": slice(-1, None), "all": slice(None)}


def strict(text: str) -> object:
    """JSON as everyone else reads it."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


Ask = Callable[..., tuple[int, str]]


def survives(which: str, stage: int, trained: Path, folder: Path, ask: Ask) -> int:
    """No command takes it for a value; how many were asked."""
    out = undefine(trained, folder / "run", stage, WHICH[which])
    run = Run.load(out)
    task = run.ledgers[stage].learning[0]
    code, text = ask("show", out, "--json")
    assert code == 0
    shown = strict(text)
    assert isinstance(shown, dict)
    best = shown["stages"][stage]["best_return"]
    values = run.ledgers[stage].curve(task)
    assert best is None if which == "all" else best == np.nanmax(values)
    if which != "first":
        assert shown["stages"][stage]["returns"][task] is None
    assert ask("show", out)[0] == 0
    code, text = ask("verify", out, "--episodes", 1, "--json")
    strict(text[text.index("{") : text.rindex("}") + 1])
    assert ask("report", out, "--output", folder / "page.html")[0] == 0
    return 4


@pytest.mark.parametrize(("which", "stage"), [("first", 0), ("last", 1), ("all", 0)])
def test_no_command_takes_it_for_a_value(which: str, stage: int, trained: Path, tmp_path: Path, ask: Ask) -> None:
    survives(which, stage, trained, tmp_path, ask)


def test_a_ledger_keeps_what_is_undefined_and_counts_it() -> None:
    ledger = Ledger(0, ("a",), ("a",), {"a": [1.0, NAN]})
    record = Record(0, {"a": [1.0, NAN, math.inf]}, {"a": [1, 1, 1]}, {})
    content = header_line(ledger) + record_line(record)
    assert b'"returns":[1.0,null,null]' in content
    assert b'"undefined":2' in content
    read = parse_ledger(content, Path("l"))
    assert np.isnan(read.records[0].returns["a"]).tolist() == [False, True, True]
    assert np.isnan(read.random_returns["a"]).tolist() == [False, True]
    for wrong in (content.replace(b'"undefined":2', b'"undefined":1'), content.replace(b',"undefined":2', b"")):
        with pytest.raises(EvergaitError, match="the count of undefined returns"):
            parse_ledger(wrong, Path("l"))


def test_an_undefined_episode_verifies_nothing() -> None:
    row = compare(np.array([1.0, NAN]), np.array([1.0, 7.0]), False, 0.01)
    assert (row["agrees"], row["equal episodes"], row["undefined episodes"]) == (True, "1/1", 1)
    assert not compare(np.array([1.0, 2.0]), np.array([1.0, NAN]), False, 0.01)["agrees"]
    assert not compare(np.array([1.0, 2.0]), np.array([1.0, NAN]), True, 0.01)["agrees"]


def test_one_episode_is_judged_by_the_spread_of_all_recorded_ones() -> None:
    """Its own difference has none, and the last bits of a long episode grow."""
    recorded, played = np.array([233.0]), np.array([218.0])
    assert compare(recorded, played, True, 0.01, spread=10.0)["agrees"]
    assert not compare(recorded, played, True, 0.01, spread=5.0)["agrees"]
    assert not compare(recorded, played, False, 0.01, spread=10.0)["agrees"]


@pytest.mark.prove
def test_no_undefined_evaluation_counts(trained: Path, tmp_path: Path, ask: Ask) -> None:
    cases = [(which, stage) for which in WHICH for stage in (0, 1)]
    n_asked = sum(survives(*case, trained, tmp_path / f"{i}", ask) for i, case in enumerate(cases))
    write_counts("undefined", n_asked, 0, f"{len(cases)} runs with null in a ledger, under show, verify and report")
