"""The first sentence of a report ranks only what its numbers tell apart."""

import re
from pathlib import Path

import pytest
from synthetic import make_config, write_run

from evergait.analysis.ranking import headline, standings
from evergait.paper.study import analyse
from evergait.studies.results import Entry, Results

POLE = "InvertedPendulum-v5"


@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        ({"a": 805, "b": 405}, "a ended highest, with a score of 0.80 .InvertedPendulum 80..; b lowest, with 0.40 .*"),
        (
            {"a": 805, "b": 405, "c": 805},
            "(a and c|c and a) ended highest, with a score of 0.80 .InvertedPendulum 80. and 80..; b lowest, with .*",
        ),
        ({"a": 805, "b": 405, "c": 405}, "a ended highest, .*; (b and c|c and b) lowest, with 0.40 .*"),
        ({"a": 805, "b": 805, "c": 805}, "[abc], [abc] and [abc] ended alike, with a score of 0.80 .*"),
        ({"a": 805}, "a ended with a score of 0.80 .* on InvertedPendulum"),
    ],
)
def test_who_ended_on_one_level_is_named_together(tmp_path: Path, ends: dict[str, int], sentence: str) -> None:
    entries = [
        Entry(name, POLE, 0, write_run(tmp_path / name, make_config([POLE]), lambda *at, end=end: end * at[2]))  # type: ignore[misc]
        for name, end in ends.items()
    ]
    told = headline(standings(analyse(Results("Level", tmp_path, tuple(entries)), {POLE: 1005.0})), "score")
    assert re.fullmatch(sentence, told), told
