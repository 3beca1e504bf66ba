"""Ranges of rows to hand out: large ones first, small ones at the end, lost ones again.

Whoever is ready pulls the next range, so a slow worker gets less. Ranges come in rounds of as many as there are
workers; each round hands out a fixed part of what is left in equal ranges (factoring: Hummel, Schonberg and Flynn,
1992), so that all workers finish at nearly the same time. A range that is lost goes to the front of the queue.
"""

from collections import deque
from dataclasses import dataclass

from evergait.core.errors import EvergaitError

GREED = 1.5
"""A round hands out what is left divided by this: a worker up to so many times slower than the others delays nobody."""


@dataclass(eq=False)
class Chunk:
    """Rows `begin` to `end`."""

    begin: int
    end: int
    n_losses: int = 0
    is_needed: bool = True
    """Not when its rows are known, or nobody asks for them any more."""

    @property
    def n_rows(self) -> int:
        """How many rows these are."""
        return self.end - self.begin


class Chunks:
    """The rows of one request."""

    def __init__(self, n_rows: int, smallest: int, retries: int) -> None:
        self._n_rows, self._smallest, self._retries = n_rows, smallest, retries
        self._next = 0
        self._size, self._n_in_round = 0, 0
        self._again: deque[Chunk] = deque()
        self._is_empty = n_rows == 0
        """No rows are still one chunk, for only the engine knows the shape of an outcome of nothing."""

    @property
    def n_left(self) -> int:
        """Rows that have not been handed out."""
        return self._n_rows - self._next + sum(chunk.n_rows for chunk in self._again)

    def take(self, n_threads: int, n_all: int) -> Chunk | None:
        """The next range for a worker with some of all threads; None if nothing is left.

        >>> chunks = Chunks(100, smallest=8, retries=3)
        >>> [chunk.n_rows for chunk in iter(lambda: chunks.take(1, 2), None)]
        [33, 33, 11, 11, 8, 4]
        """
        if self._again:
            return self._again.popleft()
        if self._next == self._n_rows and not self._is_empty:
            return None
        self._is_empty = False
        if self._n_in_round == 0:
            self._n_in_round = max(1, n_all // n_threads)
            share = (self._n_rows - self._next) / self._n_in_round
            self._size = max(self._smallest * n_threads, int(share / GREED))
        self._n_in_round -= 1
        end = min(self._n_rows, self._next + self._size)
        chunk, self._next = Chunk(self._next, end), end
        return chunk

    def give_back(self, chunk: Chunk, reason: str, is_at_fault: bool = True) -> None:
        """A range was lost; `is_at_fault` says whether its worker was at it, and not merely about to be."""
        chunk.n_losses += is_at_fault
        if chunk.n_losses > self._retries:
            raise EvergaitError(
                f"workers: rows {chunk.begin} to {chunk.end} were lost {chunk.n_losses} times with the worker that "
                f"simulated them, and workers.retries is {self._retries}; the last time: {reason}"
            )
        self._again.appendleft(chunk)
