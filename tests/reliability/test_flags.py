"""Every flag of every command, with values that no flag expects: an answer or a refusal, and never a traceback."""

import contextlib
import gc
import io
import os
import random
import re
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest
from faults import write_counts
from hub_server import hub

import evergait
from evergait.cli import COMMANDS, main
from evergait.studies.results import Results
from evergait.training.run import Run
from evergait.zoo.card import share

PACKAGE = Path(evergait.__file__).parent
SECONDS = 1.0
"""After which a command that was accepted has proven that it works."""
VALUES = (
    *("", "0", "-1", "1", "2", "3.5", "1e999", "-0.0", "nan", "inf", "-inf", "1_000", "0x10", "٣", "½"),
    *("99999999999999999999", "9223372036854775807", "-9223372036854775808", "4294967296", "2147483648", "1e308"),
    *("True", "None", "null", "[1, 2]", "{}", "()", "'", '"', "\\", "%s", "{0}", "$HOME", "`id`", "; id", "*"),
    *("..", ".", "/", "/dev/null", "/dev/full", "/nonexistent/a/b", "~", "a/../../b", "x" * 5000, "x" * 300),
    *("H>S", ">", "H>", "Hopper-v5", "Hopper-v5@", "@ice", "Hopper-v5@gravity=nan", "os:x", ":", "InvertedPendulum-v5"),
    *("naive", "replay+", "+", "replay+distill", "adam", "ray", "mujoco", "single", "fast", "demo", "paper"),
    *("🦾", "\x1b[31m", "\u202e", "\udcff", "\n", "--", "-", "=", "-h", "--no", "a=b"),
)
CHEAP = (
    *("--preset", "quick", "--stream", "InvertedPendulum-v5", "--generations", "1", "--starts", "1", "--pairs", "1"),
    *("--horizon", "2"),
    *("--evaluation.episodes", "1", "--evaluation.random-policies", "1", "--threads", "1"),
)
STUDY = ("run", "plan", "status", "pack", "unpack")


class Enough(BaseException):
    """The command was accepted and works."""


def _ring(number: int, frame: FrameType | None) -> None:
    """Raise where the command itself works or waits; elsewhere, as in Python's own parser, nothing may be raised."""
    place = Path(frame.f_code.co_filename) if frame else Path()
    if place.is_relative_to(PACKAGE) or place.name in ("threading.py", "subprocess.py", "selectors.py", "socket.py"):
        raise Enough
    signal.setitimer(signal.ITIMER_REAL, 0.01)


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def flags_of(words: tuple[str, ...]) -> list[str]:
    """The flags that a command's help names."""
    said = io.StringIO()
    for ask in ("--help", "--help-all"):
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
            main([*words, ask])
    return sorted(set(re.findall(r"(?<![\w-])--[a-z][\w.-]*\w", re.sub(r"\x1b\[[0-9;]*m", "", said.getvalue()))))


def words_of(chance: random.Random, commands: dict[tuple[str, ...], list[str]], run: Path, out: Path) -> list[str]:
    """A command with up to three flags, on a run that is there, or not."""
    words = chance.choice(list(commands))
    arguments = [*words, *subject(words, chance, run, out)]
    for _ in range(chance.randint(0, 3)):
        flag, value = chance.choice([*commands[words], "--nonsense"]), chance.choice((*VALUES, str(run)))
        arguments += chance.choice(([flag, value], [f"{flag}={value}"], [flag]))
    return [argument for argument in arguments if argument != "--help-all"]


def subject(words: tuple[str, ...], chance: random.Random, run: Path, out: Path) -> list[str]:
    """What a command is about, mostly something that it takes."""
    odd, there = chance.choice(VALUES), chance.choice((str(run), str(run), chance.choice(VALUES)))
    match words:
        case ("train",):
            return [*CHEAP, "--out", str(out / "run")]
        case ("study", "status" | "pack" | "unpack"):
            return [chance.choice((str(run.parent / "study"), str(run), odd))]
        case ("study", _) | ("tune",):
            return [chance.choice(("demo", "paper", str(out), "x.toml")), "--out", str(out / "st")]
        case ("tasks" | "methods" | "bench" | "doctor",):
            return []
        case ("zoo",):
            return chance.choice(([], ["hsw-naive"], ["someone/run"], ["someone/nobody"], [odd]))
        case ("lab",):
            return [chance.choice((str(out / "lab.html"), odd))]
        case ("completion",):
            return [chance.choice(("bash", "zsh", "fish", *VALUES))]
        case ("reproduce",):
            return [chance.choice(("abcd", next((run / "phases").iterdir()).name, odd))]
        case ("watch",):
            return [there, "--no-open"]
        case _:
            return [there]


def tried(arguments: list[str]) -> str:
    """What is wrong with the answer to a command line, or nothing."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), alarm(SECONDS):
            code = main(arguments)
    except (Enough, SystemExit):
        return ""
    except BaseException:
        return f"{arguments}\n{traceback.format_exc()}"
    finally:
        os.environ.pop("EVERGAIT_TRUSTED_MODULES", None)
    if code not in (0, 1, 2) or "Traceback" in said.getvalue():
        return f"{arguments}\n{code}: {said.getvalue()}"
    return ""


def fuzz(n: int, seed: int, run: Path, folder: Path, seconds: float = 1e9) -> tuple[int, list[str]]:
    """How many were tried, and what was wrong with some."""
    names: list[tuple[str, ...]] = [(name,) for name in COMMANDS if name != "study"]
    names += [("study", action) for action in STUDY]
    commands = {words: flags_of(words) for words in names}
    assert all(commands.values())
    chance, begun, i = random.Random(seed), time.monotonic(), 0
    wrong: list[str] = []
    os.chdir(folder)
    while i < n and time.monotonic() - begun < seconds:
        i += 1
        out = folder / f"{i}"
        out.mkdir()
        if problem := tried(words_of(chance, commands, run, out)):
            wrong.append(problem)
        shutil.rmtree(out, ignore_errors=True)
    gc.collect()  # what was open when it was enough
    return i, wrong


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trained: Path, trained_study: Results) -> Iterator[Path]:
    """A run beside a study, in a folder that is the home too; and a hub of its own that has the run."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("HF_TOKEN", "hf_stand_in")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)  # where there is no screen, no page is opened
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    shutil.copytree(trained, tmp_path / "run")
    shutil.copytree(trained_study.path, tmp_path / "study")
    share(Run.load(trained), tmp_path / "hub" / "someone" / "run", "someone/run")
    with hub(tmp_path / "hub") as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        yield tmp_path / "run"


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_flag_traces_back(run: Path, tmp_path: Path) -> None:
    _, wrong = fuzz(150, 0, run, tmp_path, seconds=30)
    assert not wrong, "\n".join(wrong[:3])


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_flag_of_any_command_traces_back(seed: int, run: Path, tmp_path: Path) -> None:
    n, wrong = fuzz(500, seed, run, tmp_path)
    assert not wrong, "\n".join(wrong[:3])
    assert n == 500
    n_flags = sum(len(flags_of((name,))) for name in COMMANDS if name != "study")
    n_flags += sum(len(flags_of(("study", action))) for action in STUDY)
    write_counts("flags", n, 0, f"{n_flags} flags of all {len(COMMANDS)} commands, {len(VALUES)} values", part=True)


@pytest.mark.parametrize(
    "text",
    [
        "raise SystemExit(0)",
        "class Odd(BaseException): pass\nraise Odd",
        "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd",
        "raise GeneratorExit",
    ],
)
def test_a_module_that_ends_the_program_is_refused(
    ask: Callable[..., tuple[int, str]], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("EVERGAIT_TRUSTED_MODULES", "")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "quitter.py").write_text(text)
    code, output = ask("methods", "--import", "quitter")
    assert code == 2
    assert "the module 'quitter' cannot be imported" in output
