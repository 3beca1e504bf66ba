"""What tests of live pages share: a real Chromium, and a bare page that has the engine and nothing else."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import evergait
from evergait.commands.study import run_study
from evergait.live.lab import SAMPLE
from evergait.live.page import ENGINE, WORKER, assets, packed_module
from evergait.report.html import ASSETS
from evergait.store.pack import unpack

SCRIPTS = (*ENGINE, "trainer.js", "unpack.js")
START = """
globalThis.opened = unpackModule(packed).then(async (module) => [module, await Engine.open(module)]);
globalThis.call = async (name, argument) => {
  const [module, engine] = await opened;
  return calls[name](engine, argument, module);
};
"""


def write_bare(path: Path, packed: str) -> Path:
    """A page around a packed module, whose scripts a test can call."""
    calls = (Path(__file__).parent / "calls.js").read_text()
    script = "\n".join(
        ((ASSETS / "core.js").read_text(), assets(*SCRIPTS), calls, f"const packed = '{packed}';", START)
    )
    worker = f'<script type="text/plain" id="worker">{assets(*WORKER)}</script>'
    path.write_text(f"<!doctype html><meta charset=utf-8><title>bare</title>{worker}<script>{script}</script>")
    return path


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page with the module that ships."""
    return write_bare(tmp_path_factory.mktemp("bare") / "bare.html", packed_module())


Call = Callable[..., Any]


def caller(page: Any, path: Path) -> Call:
    """Calls a function of calls.js in a page."""
    page.goto(path.as_uri())
    return lambda name, **argument: page.evaluate("([name, argument]) => call(name, argument)", [name, argument])


@pytest.fixture
def engine(browser: Any, bare: Path) -> Iterator[Call]:
    """Calls a function of calls.js with the module that ships."""
    context = browser.new_context()
    page = context.new_page()
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    yield caller(page, bare)
    context.close()
    assert failures == []


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study."""
    path = tmp_path_factory.mktemp("watched") / "study"
    shutil.copytree(SAMPLE, path)
    unpack(path / "phases")
    return path


@pytest.fixture
def watching(folder: Path) -> Iterator[Any]:
    """The page that follows it."""
    page = evergait.watch(folder)
    yield page
    page.close()


GENERATIONS = 20
STUDY = """
title = "Small"
tasks = ["Swimmer-v5", "InvertedPendulum-v5"]
orders = ["Swimmer-v5 > InvertedPendulum-v5"]
baselines = false
[base]
pairs = 6
generations = 20
sigma = 0.1
horizon = 100
policy = { input_width = 12, hidden = [10], activation = "tanh", normalise = true, heads = "separate" }
optimizer = { name = "adam", learning_rate = 0.03, weight_decay = 0.003 }
evaluation = { every = 10, episodes = 2, random_policies = 2, snapshots = 1 }
[conditions.naive]
method = "naive"
[conditions.replay]
method = { name = "replay", budget = 4 }
[conditions.distill]
method = { name = "distill", steps = 3, batch = 16, collection = { observations = 20, episodes = 2 } }
[conditions.plain]
method = { name = "replay", budget = 6 }
policy = { input_width = 7, hidden = [5, 5], normalise = false, heads = "shared" }
optimizer = { name = "plain", learning_rate = 0.05 }
"""


@pytest.fixture(scope="session")
def conditions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study, trained by what the command line calls."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "study.toml").write_text(STUDY)
    return run_study(folder / "study.toml", folder / "out", threads=1, artifacts=False).path
