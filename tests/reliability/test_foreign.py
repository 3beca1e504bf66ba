"""What a foreign environment hands over is checked before the native core sees it: shape, kind, finiteness, manners."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from careless_environments import LIES, REWARDS, WRONG, Liar
from faults import answer, children, write_counts
from small import tiny_config

from evergait import EvergaitError, train
from evergait.config import Config
from evergait.engines.gymnasium.episode import observed, rewarded
from evergait.methods import Naive
from evergait.workers import Local

HERE = Path(__file__).parent.parent / "support"
WORDS = {
    **dict.fromkeys((*WRONG, *(f"reset-{name}" for name in WRONG)), "it must be a vector of 2 numbers"),
    **dict.fromkeys(REWARDS, "it must be one number"),
    "unreadable": "UnreadableError",
    "exit": "SystemExit",
    "interrupt": "KeyboardInterrupt",
    "scribble": "wrote into a file descriptor that is not its own",
}


@pytest.fixture(autouse=True)
def _careless_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


def liar(fault: str) -> Config:
    return tiny_config(stream=(f"careless_environments:Liar-{fault}-v0",), engine="gymnasium", method=Naive())


def refuses(fault: str, out: Path, n_threads: int = 2) -> None:
    """Training stops with words about the fault, and no process stays."""
    before = children()
    workers = Local(episode_seconds=20.0).start(n_threads)
    with pytest.raises(EvergaitError) as caught:
        train(liar(fault), out, workers=workers)
    assert f"Liar-{fault}-v0" in str(caught.value)
    assert WORDS[fault] in str(caught.value)
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
        assert WORDS[fault] in output


@pytest.mark.prove
def test_no_lie_gets_through(tmp_path: Path) -> None:
    turns = [(fault, n_threads, turn) for fault in WORDS for n_threads in (1, 2) for turn in range(3)]
    for fault, n_threads, turn in turns:
        refuses(fault, tmp_path / f"{fault}{n_threads}{turn}", n_threads)
    assert set(WORDS) | {"fork"} == set(LIES)
    write_counts(
        "foreign", len(turns), 0, f"{len(WORDS)} kinds of lies, refused by name before the native core saw them"
    )
