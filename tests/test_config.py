"""Configs go to TOML and back, and refuse what is wrong by name."""

import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import every_method

from evergait.config import Config, Evaluation, preset, read_config
from evergait.core.data import to_data, to_toml
from evergait.core.errors import EvergaitError
from evergait.es import Adam, Optimizer
from evergait.methods import Collection, Distill, Interval, Method, Multitask, Project, Replay
from evergait.policy import PolicyConfig
from evergait.training.phases import plan_phases


@pytest.mark.parametrize(
    "config",
    [
        Config(),
        Config(stream=("Hopper-v5@gravity=0.5",), healthy_bonus={"Hopper-v5@gravity=0.5": 0.25}, seed=2**63),
        Config(policy=PolicyConfig(hidden=(), heads="separate"), optimizer=Adam(beta1=0.5), method=Interval(7)),
        *(Config(method=method) for method in every_method(budget=4)),
        *(Config(optimizer=member()) for member in Optimizer.members.values()),
        preset("paper"),
        preset("quick"),
        preset("fast"),
    ],
)
def test_toml_and_back(config: Config, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(config.to_toml())
    assert read_config(tmp_path / "config.toml") == config


@pytest.mark.parametrize("text", ["", 'a"b', "tab\tnew\nline", "\x7f\x00", "日本 🦿", "]\n[x]\ny=1", "'''", "\\"])
def test_any_text_survives_toml(text: str) -> None:
    data = {"value": text, "list": [text], "table": {text: 1.5, "nested": {"deep": [1, 2]}}, "empty": {}}
    assert tomllib.loads(to_toml(data)) == data


def test_paper_preset_has_the_papers_numbers() -> None:
    paper = preset("paper")
    assert (2 * paper.pairs, paper.sigma, paper.optimizer.learning_rate, paper.generations) == (768, 0.1, 0.05, 1000)
    assert (paper.evaluation.every, paper.evaluation.episodes, paper.episodes) == (10, 10, 1)
    assert to_data(paper.policy)["hidden"] == [64]
    assert (paper.policy.activation, paper.policy.output_activation, paper.optimizer.weight_decay) == (
        "relu",
        "tanh",
        0,
    )


def test_generations_take_the_place_of_steps_that_a_preset_has(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('preset = "fast"\ngenerations = 7\n')
    config = read_config(tmp_path / "config.toml")
    assert (config.phase_length, config.unit, config.evaluation.every_steps) == (7, "generations", 0)
    (tmp_path / "config.toml").write_text('preset = "fast"\ngenerations = 7\nsteps = 6_144_000\n')
    assert read_config(tmp_path / "config.toml").phase_length == 6_144_000


def test_a_file_may_start_from_a_preset(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('preset = "paper"\nseed = 4\n[method]\nname = "replay"\nbudget = 12\n')
    config = read_config(tmp_path / "c.toml")
    assert (config.seed, config.pairs, config.method) == (4, 384, Replay(budget=12))


def test_methods_are_joined_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        '[method]\nname = "replay+distill"\n[method.replay]\nbudget = 12\n[method.distill.collection]\nepisodes = 3\n'
    )
    parts = {"replay": Replay(budget=12), "distill": Distill(collection=Collection(episodes=3))}
    assert read_config(tmp_path / "c.toml").method == Method.named("replay+distill", "method")(**parts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sigmma = 1", "sigmma: unknown field; did you mean 'sigma'?"),
        ('sigma = "a"', "sigma: is 'a'; it must be a number"),
        ("pairs = 1.5", "pairs: is 1.5; it must be a whole number"),
        ("pairs = true", "pairs: is True; it must be a whole number"),
        ("sigma = nan", "sigma: is nan; it must be finite"),
        ('stream = "Hopper-v5"', "stream: is 'Hopper-v5'; it must be a list"),
        ("stream = [1]", r"stream\[0\]: is 1; it must be a string"),
        ('method = "repaly"', "method: there is no method 'repaly'; did you mean 'replay'?"),
        ('[method]\nname = "replay"\nbugdet = 3', "method.bugdet: unknown field; did you mean 'budget'?"),
        ('[method]\nname = "naive"\nbudget = 3', "method.budget: unknown field"),
        ('[method]\nname = "replay"\nranks = "jiont"', "method.ranks: is 'jiont'; did you mean 'joint'?"),
        ('method = "replay+distil"', "method: there is no method 'distil'; did you mean 'distill'?"),
        ('method = "multitask+replay"', "method: is 'multitask\\+replay'; multitask stands alone"),
        (
            '[method]\nname = "replay+ewc"\newc.stength = 1',
            "method.ewc.stength: unknown field; did you mean 'strength'",
        ),
        ('[method]\nname = "replay+ewc"\nbudget = 2', "method.budget: unknown field"),
        ('optimizer = "adma"', "optimizer: there is no optimizer 'adma'; did you mean 'adam'?"),
        ('shaping = "z-skore"', "shaping: is 'z-skore'; did you mean 'z-score'"),
        ('shaping = "?"', "shaping: is '\\?'; known: centered-ranks, ordered-ranks, z-score, nes, raw"),
        ('engine = "mujocoo"', "engine: is 'mujocoo'; did you mean 'mujoco'?"),
        ("policy = 3", "policy: is 3; it must be a table"),
        ('preset = "papre"', "there is no preset 'papre'; did you mean 'paper'?"),
        ("format = 2", "format is 2; this evergait reads format 1 to 1"),
        ('format = "x"', "format is 'x'"),
        ("a = [", "is not valid TOML"),
        ("a = " + "[" * 3000, "is not valid TOML"),
        ("healthy_bonus = 1", "healthy_bonus: is 1; it must be a table"),
    ],
)
def test_wrong_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(EvergaitError, match=message):
        read_config(tmp_path / "c.toml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sigma": -0.1}, "sigma: is -0.1; it must be above 0"),
        (
            {"method": Multitask(), "adaptive_horizon": True},
            "adaptive_horizon: is True; it must be false where several",
        ),
        (
            {"method": Multitask(), "carry": "best-population"},
            "carry: is 'best-population'; it must be last or best where several",
        ),
        ({"method": Multitask(), "starts": 2}, "starts: is 2; it must be 1 where several tasks are learnt in turn"),
        ({"adaptive_horizon": True, "starts": 2}, "starts: is 2; it must be 1 with adaptive_horizon"),
        ({"generations": 15, "starts": 4}, "starts: is 4; it must be at most 3: each needs a generation"),
        (
            {"steps": 80_000, "pairs": 4, "starts": 3, "evaluation": Evaluation(every_steps=40_000)},
            "starts: is 3; it must be at most 2: each needs a generation",
        ),
        (
            {"perturb": "all", "method": Replay(update="shared")},
            "perturb: is 'all'; it must be active or layers where replay updates shared layers only",
        ),
        ({"adaptive_horizon_over": "all"}, "adaptive_horizon_over: is 'all'; it must be 'learning' unless"),
        ({"evaluation": Evaluation(cut=True)}, "evaluation.cut: is True; it must be false unless training episodes"),
        (
            {"method": Replay(budget=385, budget_is="pairs-per-task")},
            "method.budget: is 385; it must be from 1 to the 384 pairs of the population",
        ),
        ({"steps": -1}, "steps: is -1; it must be at least 0"),
        ({"steps": 10}, r"evaluation.every_steps: is 0; it must be a divisor of steps \(10\)"),
        (
            {"evaluation": Evaluation(every_steps=5)},
            "evaluation.every_steps: is 5; it must be 0 unless steps is set",
        ),
        (
            {"steps": 8000, "pairs": 1, "method": Distill(), "evaluation": Evaluation(every_steps=8000)},
            "evaluation.every_steps: is 8000; it must be at least 8001, what a generation or a collection may take",
        ),
        (
            {"steps": 10**6, "evaluation": Evaluation(every_steps=10**5)},
            "evaluation.every_steps: is 100000; it must be at least 768000, what a generation or a collection may take",
        ),
        ({"pairs": 0}, "pairs: is 0; it must be at least 1"),
        ({"generations": 0}, "generations: is 0; it must be at least 1"),
        ({"seed": -1}, "seed: is -1; it must be from 0"),
        ({"episodes": 0}, "episodes: is 0"),
        ({"horizon": -1}, "horizon: is -1"),
        ({"stream": ()}, "stream: it is empty"),
        ({"stream": ("Hoper-v5",)}, "no environment 'Hoper-v5'; did you mean 'Hopper-v5'?"),
        ({"stream": ("Hopper-v5@gravty=1",)}, "no field 'gravty'; did you mean 'gravity'?"),
        ({"stream": ("Hopper-v5@gravity=-1",)}, "gravity is '-1'; it must be a finite number of at least 0"),
        ({"stream": ("Hopper-v5@mon",)}, "no variant is called 'mon'; did you mean 'moon'?"),
        ({"stream": ("Hopper-v5",), "method": Replay()}, "replay needs an earlier task"),
        ({"method": Project()}, "method: project needs replay before it; write 'replay\\+project'"),
        ({"method": Distill(collection=Collection(episodes=0))}, "method.collection.episodes: is 0"),
        ({"stream": ("Taxi-v4",)}, "its observations are Discrete"),
        (
            {"healthy_bonus": {"Hoper-v5": 1.0}},
            "healthy_bonus: the run has no task 'Hoper-v5'; did you mean 'Hopper-v5'",
        ),
        (
            {"carry": "best", "policy": PolicyConfig(normalise=True)},
            "carry: is 'best'; it must be last with policy.normalise",
        ),
        ({"healthy_bonus": {"Hopper-v5": -1.0}}, "healthy_bonus.Hopper-v5: is -1.0"),
        ({"policy": PolicyConfig(hidden=(99999,))}, r"policy.hidden\[0\]: is 99999"),
        ({"stream": ("CartPole-v1",), "engine": "mujoco"}, "task 'CartPole-v1': no engine can simulate it"),
    ],
)
def test_impossible_settings_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(EvergaitError, match=message):
        Config(**changes).check()


BASE = preset("quick")
BOTH: Any = Method.named("replay+distill", "method")
PARTS: list[tuple[str, Any]] = [
    *(("policy", BASE.policy), ("evaluation", BASE.evaluation), ("method", BOTH(Replay(), Distill()))),
    *(("optimizer", member()) for member in Optimizer.members.values()),
    *(("method", method) for method in every_method(budget=4)),
]
FIELDS: list[tuple[str, Any, str]] = [
    *(("", BASE, field.name) for field in fields(BASE)),
    *((part, inner, field.name) for part, inner in PARTS for field in fields(inner)),
    *(("collection", Collection(), field.name) for field in fields(Collection)),
]
"""Every field of a config and of its parts."""
WRONG = (None, object(), b"x", np.zeros((2, 2)), [None], {"x": None}, 10**400, int, ("a", 1), [[1]], "no such word")


def _with(part: str, changed: Any) -> Config:
    if part == "collection":
        return replace(BASE, method=Distill(collection=changed))
    return replace(BASE, **({part: changed} if part else changed))


@pytest.mark.parametrize(("part", "inner", "name"), FIELDS)
def test_what_is_of_another_kind_is_refused_by_its_field(part: str, inner: Any, name: str) -> None:
    for value in WRONG:
        with pytest.raises(EvergaitError, match=name):
            _with(part, replace(inner, **{name: value}) if part else {name: value}).check()


def test_numbers_of_numpy_and_lists_are_what_a_file_would_say() -> None:
    changes: dict[str, Any] = {"stream": ["Hopper-v5"], "pairs": np.int64(8), "sigma": 1}
    hidden: Any = np.array([8])
    given = replace(BASE, policy=PolicyConfig(hidden=hidden), **changes)
    assert given == replace(BASE, stream=("Hopper-v5",), pairs=8, sigma=1.0, policy=PolicyConfig(hidden=(8,)))
    assert (type(given.pairs), type(given.sigma), type(given.policy.hidden[0])) == (int, float, int)


@pytest.mark.parametrize("spelling", ["Hopper-v5@moon", "Hopper-v5@gravity=.1654", "Hopper-v5@gravity=0.1654"])
def test_a_healthy_bonus_counts_however_its_task_is_spelt(spelling: str) -> None:
    config = Config(stream=("Hopper-v5@moon",), healthy_bonus={spelling: 0.0})
    config.check()
    assert plan_phases(config)[0].identity["healthy_bonus"] == {"Hopper-v5@gravity=0.1654": 0.0}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"starts": 9, "starting": 0.95}, "starting: is 0.95; it must be at most 0.9, so that the best start"),
        ({"starts": 5, "starting": 0.5, "method": Interval(interval=2)}, "starts: is 5; it must be at most 2"),
    ],
)
def test_the_start_that_goes_on_has_a_generation_of_its_own(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(EvergaitError, match=re.escape(words)):
        Config(stream=("InvertedPendulum-v5", "Reacher-v5"), generations=10, pairs=2, **changes).check()
