"""Workers on a Ray cluster: the same bits as on one machine, whoever computes which rows, in whatever order.

A request is put into Ray's object store once; Ray copies it to every machine that asks for it, once. Actors pull ranges
of rows, answers are placed by row, and everything that follows runs in the order of rows. A range that is lost with its
actor is done again elsewhere, and one that does not come back in time is given to an idle actor as well, whose answer
counts if it is the first: rows are pure functions of their counters, so it does not matter who does them, or how often.
"""

import dataclasses
import logging
import pickle
import queue
import time
from typing import Any, ClassVar

import ray
import ray.exceptions

from evergait.core.errors import EvergaitError
from evergait.engines import Episodes, Outcome
from evergait.tasks.process import set_limits
from evergait.workers.base import Traffic
from evergait.workers.chunks import Chunk, Chunks
from evergait.workers.ray.connection import Connection
from evergait.workers.ray.crew import Answer, Crew, Member
from evergait.workers.ray.options import RayOptions
from evergait.workers.wire import join_outcomes, pack_request, unpack_outcome

AHEAD = 2
"""Chunks that an actor holds while there is plenty to do, so that it never waits for a message."""
LATE = 3.0
"""An actor is late if a chunk takes it so many times longer than the mean of those that were answered, row for row."""
log = logging.getLogger("evergait")


@dataclasses.dataclass
class _Request:
    """Rows that are being simulated."""

    number: int
    engine: str
    reference: Any
    n_bytes: int
    chunks: Chunks
    n_rows: int
    parts: list[tuple[int, Outcome]] = dataclasses.field(default_factory=list)
    nodes: set[str] = dataclasses.field(default_factory=set)
    n_done: int = 0
    seconds: float = 0.0
    """What actors needed for the rows that are done."""

    @property
    def is_done(self) -> bool:
        """Whether every row has an outcome."""
        return self.n_done == self.n_rows and bool(self.parts)


class RayWorkers:
    """Runs engines in actors of a Ray cluster."""

    name: ClassVar[str] = "ray"

    def __init__(self, options: RayOptions, n_threads: int) -> None:
        self.n_threads = n_threads
        self.options = options
        set_limits(options.limits)
        self._traffic = Traffic()
        self._number = 0
        self._connection = Connection(options.address, n_threads)
        try:
            self.crew = Crew(options)
            self._gather()
        except BaseException:
            self.close()
            raise

    def _gather(self) -> None:
        """Wait for every actor there is room for, so that all versions are compared before any work is done."""
        deadline = time.monotonic() + self.options.start_seconds
        self.crew.poll()
        while self.crew.is_starting and (left := deadline - time.monotonic()) > 0:
            try:
                answer = self.crew.inbox.get(timeout=min(left, self.crew.seconds_to_poll() + 0.01))
            except queue.Empty:
                pass
            else:
                self.crew.hear_first_word(answer, is_strict=True)
            if not self.crew.seconds_to_poll():
                self.crew.poll()
        if not self.crew.ready:
            raise EvergaitError(_nobody(self.options))

    def run(self, engine: str, episodes: Episodes) -> Outcome:
        """Simulate every row."""
        data = pack_request(engine, episodes)
        self._number += 1
        self._traffic.n_requests += 1
        chunks = Chunks(len(episodes), self.options.smallest_chunk, self.options.retries)
        request = _Request(self._number, engine, ray.put(data), len(data), chunks, len(episodes))
        for member in self.crew.members:
            for chunk in member.chunks:
                chunk.is_needed = False  # of an earlier request that was given up
        last_news = time.monotonic()
        while not request.is_done:
            if not self.crew.seconds_to_poll():
                self.crew.poll()
            self._feed(request)
            try:
                answer = self.crew.inbox.get(timeout=self.crew.seconds_to_poll() + 0.01)
            except queue.Empty:
                self._tell_of_late(request)
                if not self.crew.ready and time.monotonic() - last_news > self.options.start_seconds:
                    raise EvergaitError(_nobody(self.options)) from None
                continue
            last_news = time.monotonic()
            if answer.chunk is None:
                self.crew.hear_first_word(answer, is_strict=False)
            else:
                self._hear(answer, request)
        return join_outcomes(request.parts)

    def _feed(self, request: _Request) -> None:
        """Hand out chunks, to the idle first; work ahead only while there is plenty left for everyone."""
        threads = self.options.actor_threads
        ready = [member for member in self.crew.fit_for(request.engine) if not member.is_behind]
        n_all = threads * len(ready)
        for depth in range(AHEAD):
            if depth and request.chunks.n_left < 2 * n_all * self.options.smallest_chunk:
                return
            for member in ready:
                if len(member.chunks) <= depth:
                    chunk = request.chunks.take(threads, n_all)
                    if chunk is None and depth == 0:
                        chunk = self._late_chunk(request)
                    if chunk is None:
                        return
                    self._count_sent(request, member, (request.number, chunk.begin, chunk.end))
                    self.crew.assign(member, request.number, request.reference, chunk)

    def _late(self, request: _Request) -> list[Member]:
        """Actors that should have answered by now, the one that is late for longest first: slow, hung or cut off."""
        now, pace = time.monotonic(), LATE * request.seconds / max(1, request.n_done)
        late = [
            member
            for member in self.crew.ready
            if member.chunks and now - member.since > max(self.options.patience_seconds, pace * member.chunks[0].n_rows)
        ]
        return sorted(late, key=lambda member: member.since)

    def _late_chunk(self, request: _Request) -> Chunk | None:
        """A chunk that only actors are at that are late; this does not kill them, for they may be merely slow."""
        late = self._late(request)
        if not late:
            return None
        others = [member for member in self.crew.ready if member not in late]
        for member in late:
            for chunk in member.chunks:
                if chunk.is_needed and not any(chunk in other.chunks for other in others):
                    self._traffic.n_redone += 1
                    return chunk
        return None

    def _tell_of_late(self, request: _Request) -> None:
        late = [member for member in self._late(request) if not member.is_reported]
        for member in late:
            member.is_reported = True
        if late:
            places = ", ".join(f"process {member.process} on {member.host}" for member in late[:5])
            log.warning(
                "%d of %d workers have not answered for some time (%s%s); the idle do their rows as well",
                len(late),
                len(self.crew.ready),
                places,
                ", ..." if len(late) > 5 else "",
            )

    def _count_sent(self, request: _Request, member: Member, rows: tuple[int, int, int]) -> None:
        self._traffic.n_chunks += 1
        self._traffic.n_bytes_sent += len(pickle.dumps(rows, protocol=5))
        if member.node not in request.nodes:
            request.nodes.add(member.node)
            self._traffic.n_bytes_sent += request.n_bytes

    def _hear(self, answer: Answer, request: _Request) -> None:
        member, chunk = answer.member, answer.chunk
        if chunk is None or member not in self.crew.members:
            return  # of an actor that was given up
        error = answer.future.exception()
        if isinstance(error, ray.exceptions.RayError) and not isinstance(error, ray.exceptions.RayTaskError):
            self._lose(member, request, error)
            return
        seconds = self.crew.answered(member, chunk)
        if not chunk.is_needed:
            return  # another was faster, or its request was given up
        result = answer.future.result()  # an exception here is a fault of ours, and would come again
        if isinstance(result, str):
            raise EvergaitError(result)
        chunk.is_needed = False
        self._traffic.n_bytes_received += len(result)
        request.parts.append((chunk.begin, unpack_outcome(result)))
        request.n_done += chunk.n_rows
        request.seconds += seconds

    def _lose(self, member: Member, request: _Request, error: Exception) -> None:
        """An actor, its machine or the network is gone: others do what it was given, and another takes its place."""
        self._traffic.n_lost += 1
        self.crew.dismiss(member)
        # Actors work in order, so only the first of its chunks can have to do with its death.
        for position, chunk in reversed(list(enumerate(member.chunks))):
            if chunk.is_needed and not any(chunk in other.chunks for other in self.crew.members):
                self._traffic.n_redone += 1
                reason = " ".join(str(error).split()) or type(error).__name__
                request.chunks.give_back(chunk, reason, is_at_fault=position == 0)
        self.crew.poll()

    def traffic(self) -> Traffic:
        """What has travelled since the start."""
        ready = self.crew.ready
        return dataclasses.replace(self._traffic, n_workers=len(ready), n_nodes=len({m.node for m in ready}))

    def close(self) -> None:
        """End the actors, and the cluster if it was started here."""
        if hasattr(self, "crew"):
            self.crew.close()
        self._connection.close()


def _nobody(options: RayOptions) -> str:
    return (
        f"workers: no actor with {options.actor_threads} CPU has started within {options.start_seconds:g} s; "
        "does the cluster have machines that are alive and not taken by others?"
    )
