"""Tuning: strict spaces, resumable journals, and a config as its result."""

import builtins
import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults import tree

from evergait.commands.tune import tune
from evergait.config import read_config
from evergait.core.errors import EvergaitError
from evergait.core.files import read_json
from evergait.studies.base import read_study
from evergait.studies.space import read_search
from evergait.studies.tune import tune_search
from evergait.training.phases import plan_phases

SEARCH = """
[search]
condition = "replay"
order = "InvertedDoublePendulum-v5 > InvertedPendulum-v5"
trials = 3
[search.space]
sigma = { low = 0.05, high = 0.2, log = true }
pairs = { low = 2, high = 4 }
optimizer.learning_rate = { low = 0.01, high = 0.1 }
shaping = { choices = ["centered-ranks", "z-score"] }
"""


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("condition = ", "kondition = ", "search.kondition: unknown field; did you mean 'condition'?"),
        ('"replay"', '"repla"', "search.condition: there is no condition 'repla'; did you mean 'replay'?"),
        ("trials = 3", "trials = 0", "search.trials: is 0"),
        ("trials = 3", "seed = 0", "search.seed: is 0; it must be no seed of the study's own, 0 to"),
        ("trials = 3", "seed = -1", "seed: is -1"),
        ("low = 0.05", "lo = 0.05", "search.space.sigma.lo: unknown field; did you mean 'low'?"),
        ("high = 0.2", "high = 0.01", "search.space.sigma.high: is 0.01; it must be a number above low"),
        ("low = 0.05", "low = -1.0", "search.space.sigma.low: is -1.0"),
        ("pairs = {", "pears = {", "pears: unknown field; did you mean 'pairs'?"),
        ("low = 2,", "low = 0,", "pairs: is 0"),
        ('"z-score"', '"zscore"', "shaping: is 'zscore'; did you mean 'z-score'?"),
        ('{ choices = ["centered-ranks", "z-score"] }', "3", "search.space.shaping: is 3"),
        (
            "high = 4 }",
            "high = 4, step = 0.5 }",
            "search.space.pairs.step: is 0.5; it must be a whole number, as pairs",
        ),
        ("high = 4 }", "high = 4, step = 3 }", "search.space.pairs.step: is 3; it must be at most 2, from low to high"),
        ("high = 0.1 }", "high = 0.1, step = 1 }", "learning_rate.step: is 1; it must be at most 0.09, from low to"),
    ],
)
def test_bad_spaces_are_refused_by_name(tiny: Path, before: str, after: str, words: str) -> None:
    assert before in SEARCH
    tiny.write_text(tiny.read_text() + SEARCH.replace(before, after))
    with pytest.raises(EvergaitError) as refusal:
        read_search(read_study(tiny))
    assert words in str(refusal.value)


def test_tuning_goes_on_where_it_stopped_and_writes_a_config(tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    tiny.write_text(tiny.read_text() + SEARCH)
    out, whole = tmp_path / "out", tmp_path / "whole"
    tune(tiny, out, trials=2, threads=1)
    before = read_json(out / "trials.json")["trials"]
    best = tune(tiny, out, threads=1)
    after = read_json(out / "trials.json")["trials"]
    assert (len(before), len(after), after[:2]) == (2, 3, before)
    config = read_config(best)
    config.check()
    assert config.stream == ("InvertedDoublePendulum-v5", "InvertedPendulum-v5")
    assert 0.05 <= config.sigma <= 0.2
    tune(tiny, whole, threads=1)
    assert tree(whole) == tree(out), "stopping has changed the search"
    tiny.write_text(tiny.read_text().replace("high = 0.2", "high = 0.3"))
    with pytest.raises(EvergaitError, match="holds another search"):
        tune(tiny, out, threads=1)


def test_a_step_of_the_whole_range_fits_however_its_ends_are_rounded(tiny: Path) -> None:
    assert 0.3 - 0.1 < 0.2
    tiny.write_text(tiny.read_text() + "[search.space]\nsigma = { low = 0.1, high = 0.3, step = 0.2 }\n")
    assert read_search(read_study(tiny)).dimensions[0].step == 0.2


@pytest.mark.parametrize("step", ["", ", step = 0.5"])
def test_whole_ends_do_not_make_whole_numbers_of_a_field_that_has_fractions(
    tiny: Path, tmp_path: Path, step: str
) -> None:
    pytest.importorskip("optuna")
    searched = f"[search]\nseed = 3\ntrials = 4\n[search.space]\nsigma = {{ low = 1, high = 3{step} }}\n"
    tiny.write_text(tiny.read_text() + searched)
    tune(tiny, tmp_path / "out", threads=1)
    found = [trial["params"]["sigma"] for trial in read_json(tmp_path / "out" / "trials.json")["trials"]]
    assert all(1 <= sigma <= 3 for sigma in found)
    assert any(sigma % 1 for sigma in found)
    assert not step or all(sigma % 0.5 == 0 for sigma in found)


def test_all_trials_that_are_there_are_told(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("optuna")
    tiny.write_text(tiny.read_text() + SEARCH)
    for trials, told in ((2, "best of 2 trials"), (1, "best of 2 trials")):
        tune(tiny, tmp_path / "out", trials=trials, threads=1)
        assert told in capsys.readouterr().out


HOPELESS, USUAL = 1e-9, (0.03, 0.04, 0.05, 0.06)

RATES = """
[search]
condition = "naive"
order = "InvertedPendulum-v5 > InvertedDoublePendulum-v5"
trials = 5
[search.space]
optimizer.learning_rate = { low = 1e-9, high = 0.1 }
"""


def test_a_hopeless_trial_is_pruned_and_trains_less(tiny: Path, tmp_path: Path) -> None:
    """Four trials that learn, and then one that cannot: it ends after its first evaluations."""
    pytest.importorskip("optuna")
    learns = 'pairs = 16\noptimizer = "adam"'
    text = tiny.read_text().replace("pairs = 3", learns).replace("generations = 4", "generations = 12")
    tiny.write_text(text.replace("horizon = 20", "horizon = 200") + RATES)
    search, out = read_search(read_study(tiny)), tmp_path / "out"
    first = [{"optimizer.learning_rate": rate} for rate in (*USUAL, HOPELESS)]
    best, _, _ = tune_search(search, out, 1, first)
    trials = read_json(out / "trials.json")["trials"]
    assert [trial["state"] for trial in trials] == ["complete"] * 4 + ["pruned"]
    assert best.optimizer.learning_rate in USUAL
    assert tune_search(search, out, 1, first)[0] == best, "found again"

    def n_trained(rate: float) -> int:
        config = search.config_with({"optimizer.learning_rate": rate})
        ledgers = [out / "phases" / phase.name / "ledger.jsonl" for phase in plan_phases(config)]
        return sum(json.loads(path.read_text().splitlines()[-1])["generation"] for path in ledgers if path.exists())

    assert [n_trained(rate) for rate in USUAL] == [24] * 4
    assert n_trained(HOPELESS) < 12


BUDGETS = """
[search]
condition = "replay"
order = "InvertedDoublePendulum-v5 > InvertedPendulum-v5"
seed = 9
trials = 6
[search.space]
method.budget = { low = 2, high = 6 }
"""


def test_points_that_are_refused_are_kept_with_their_reason_and_the_search_goes_on(tiny: Path, tmp_path: Path) -> None:
    """Both ends are even, as a budget must be; what is between them need not be."""
    pytest.importorskip("optuna")
    tiny.write_text(tiny.read_text() + BUDGETS)
    out, whole = tmp_path / "out", tmp_path / "whole"
    tune(tiny, whole, threads=1)
    trials = read_json(whole / "trials.json")["trials"]
    odd = [trial for trial in trials if trial["params"]["method.budget"] % 2]
    assert 0 < len(odd) < len(trials) == 6
    for trial in odd:
        assert (trial["state"], trial["score"], trial["values"]) == ("undefined", None, {})
        assert f"method.budget: is {trial['params']['method.budget']}; it must be an even number" in trial["reason"]
    assert all(trial["state"] == "complete" and "reason" not in trial for trial in trials if trial not in odd)
    for n_trials in range(1, 7):
        with contextlib.suppress(EvergaitError):  # the first ones may all have been odd
            tune(tiny, out, trials=n_trials, threads=1)
    assert tree(out) == tree(whole), "stopping has changed the search"


WILD = """
[search]
condition = "naive"
trials = 2
[search.space]
optimizer.learning_rate = { choices = [1e38, 0.05] }
"""


def test_a_training_that_leaves_the_numbers_ends_its_trial_alone(tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    tiny.write_text(tiny.read_text().replace("pairs = 3", 'pairs = 3\nshaping = "z-score"') + WILD)
    search, out = read_search(read_study(tiny)), tmp_path / "out"
    first = [{"optimizer.learning_rate": rate} for rate in (1e38, 0.05)]
    with pytest.raises(EvergaitError, match=r"no trial had a finite score.*1 of 1 failed; the first: .*θ left the fin"):
        tune_search(replace(search, n_trials=1), out, 1, first)
    best, _, _ = tune_search(search, out, 1, first)
    assert best.optimizer.learning_rate == 0.05
    wild, usual = read_json(out / "trials.json")["trials"]
    assert (wild["state"], usual["state"]) == ("undefined", "complete")
    assert "θ left the finite numbers" in wild["reason"]
    assert tune_search(search, out, 1, first)[0] == best, "found again"


def test_a_damaged_phase_of_a_trial_is_no_failed_trial(tiny: Path, tmp_path: Path) -> None:
    """It can be mended: the search ends with its name and keeps what it had."""
    pytest.importorskip("optuna")
    tiny.write_text(tiny.read_text() + RATES)
    out = tmp_path / "out"
    tune(tiny, out, trials=1, threads=1)
    before = (out / "trials.json").read_bytes()
    for ledger in out.glob("phases/*/ledger.jsonl"):
        ledger.write_bytes(ledger.read_bytes() + b"{}\n")
    with pytest.raises(EvergaitError, match=r"ledger.jsonl: does not match its digest"):
        tune(tiny, out, trials=2, threads=1)
    assert (out / "trials.json").read_bytes() == before


def test_without_optuna_the_error_says_what_to_install(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def fake(name: str, *rest: Any, **more: Any) -> Any:
        if name == "optuna":
            raise ImportError(name)
        return real(name, *rest, **more)

    tiny.write_text(tiny.read_text() + SEARCH)
    monkeypatch.setattr(builtins, "__import__", fake)
    with pytest.raises(EvergaitError, match=r"pip install 'evergait\[tune\]'"):
        tune(tiny, tmp_path / "out", threads=1)
