"""Every row is handed out once, in shrinking ranges, and again when it is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergait.core.errors import EvergaitError
from evergait.core.versions import difference, own_versions
from evergait.workers import Local, Ray, WorkersChoice
from evergait.workers.chunks import Chunk, Chunks


def drain(chunks: Chunks, n_threads: int, n_all: int) -> list[Chunk]:
    return list(iter(lambda: chunks.take(n_threads, n_all), None))


@given(st.integers(1, 3000), st.integers(1, 64), st.integers(1, 8), st.integers(1, 200))
def test_ranges_cover_all_rows_in_order_and_shrink(n_rows: int, smallest: int, n_threads: int, n_workers: int) -> None:
    taken = drain(Chunks(n_rows, smallest, 3), n_threads, n_threads * n_workers)
    edges = [taken[0].begin, *(chunk.end for chunk in taken)]
    assert [chunk.begin for chunk in taken] == edges[:-1]
    assert (edges[0], edges[-1]) == (0, n_rows)
    sizes = [chunk.n_rows for chunk in taken]
    assert sizes == sorted(sizes, reverse=True)
    assert all(size >= smallest * n_threads for size in sizes[:-1])


def test_no_rows_are_one_empty_range() -> None:
    (chunk,) = drain(Chunks(0, 8, 3), 1, 2)
    assert (chunk.begin, chunk.end) == (0, 0)


def test_a_lost_range_comes_next_and_not_for_ever() -> None:
    chunks = Chunks(100, 10, retries=2)
    first, second = chunks.take(1, 2), chunks.take(1, 2)
    assert first
    assert second
    for _ in range(2):
        chunks.give_back(first, "the node left")
        assert chunks.n_left == 100 - second.end + first.end
        assert chunks.take(1, 2) is first
    chunks.give_back(second, "the node left", is_at_fault=False)
    assert (chunks.take(1, 2), second.n_losses) == (second, 0)
    with pytest.raises(EvergaitError, match=r"rows 0 to 33 were lost 3 times .* workers.retries is 2.*the node left"):
        chunks.give_back(first, "the node left")


def test_versions_that_differ_are_both_named() -> None:
    here = own_versions()
    assert set(here) == {"Python", "evergait", "mujoco", "numpy", "gymnasium"}
    assert difference(here, here, "there") == ""
    other = {**here, "mujoco": "9.9.9"}
    assert difference(here, other, "node7") == f"mujoco is {here['mujoco']} here and 9.9.9 on node7"
    assert "numpy" in difference(here, {}, "node7")


def test_kinds_are_found_by_name() -> None:
    assert WorkersChoice.members == {"local": Local, "ray": Ray}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"actor_threads": 0}, "workers.actor_threads: is 0; it must be at least 1"),
        ({"retries": -1}, "workers.retries: is -1"),
        ({"poll_seconds": 0.0}, "workers.poll_seconds: is 0.0; it must be above 0"),
        ({"address": "ray://host:10001"}, "it must be empty, auto or HOST:PORT"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(EvergaitError, match=message):
        Ray(**options).start(1)  # type: ignore[arg-type]


def test_missing_ray_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EvergaitError, match=r"pip install 'evergait\[ray\]'"):
        Ray().start(1)
