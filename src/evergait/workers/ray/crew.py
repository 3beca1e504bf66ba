"""The actors of a cluster: starting them wherever there is room, and noticing when they are gone.

Nothing here blocks inside Ray: answers arrive in a queue, because Ray's own waits swallow the exception by which a
signal stops training (`evergait.signals`), and because one queue serves a thousand actors as well as two.
"""

import contextlib
import logging
import os
import platform
import queue
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

import ray

from evergait.core.errors import EvergaitError
from evergait.core.versions import MACHINE_ENGINES, difference, libm_fingerprint, own_versions
from evergait.engines import Episodes, Limits, limited_engine
from evergait.workers.chunks import Chunk
from evergait.workers.ray.options import RayOptions
from evergait.workers.wire import pack_outcome, unpack_request


class Actor:
    """Simulates ranges of rows of the latest request."""

    def __init__(self, n_threads: int, limits: Limits) -> None:
        self._n_threads, self._limits = n_threads, limits
        self._number = -1
        self._engine = ""
        self._episodes: Episodes | None = None

    def hello(self) -> dict[str, object]:
        """Who this is: Ray's name of the node, the machine's name, the process, versions, elementary functions."""
        import ray

        node = ray.get_runtime_context().get_node_id()
        known = {"node": node, "host": platform.node(), "process": os.getpid()}
        return {**known, "versions": own_versions(), "libm": libm_fingerprint()}

    def run(self, number: int, request: bytes | None, begin: int, end: int) -> bytes | str:
        """The outcome of some rows, or what their engine complains of.

        The request comes with the first range of its number only: Ray copies it to each machine once, and every actor
        there reads it from shared memory once.
        """
        try:
            if request is not None:
                self._engine, self._episodes = unpack_request(request)
                self._number = number
            if number != self._number or self._episodes is None:
                raise RuntimeError("a range of rows came before its request")
            rows = self._episodes.rows(slice(begin, end))
            engine = limited_engine(self._engine, self._limits)
            return pack_outcome(engine.run(rows, self._n_threads))
        except EvergaitError as error:
            return str(error)


ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""An actor's threads are the engine's; libraries must not add more."""
MAX_FAILED_STARTS = 5
log = logging.getLogger("evergait")


def _nodes() -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return nodes


@dataclass(eq=False)
class Member:
    """One actor, and the chunks that it has been given and not answered, in its order of work."""

    handle: Any
    state: Literal["starting", "ready", "refused"] = "starting"
    node: str = ""
    host: str = ""
    process: int = 0
    libm: str = ""
    """Fingerprint of its machine's elementary functions."""
    chunks: deque[Chunk] = field(default_factory=deque)
    since: float = 0.0
    """When it began with the first of them."""
    request: int = -1
    """Number of the latest request that it has."""
    is_reported: bool = False
    """Whether people have been told that it is late."""

    @property
    def is_behind(self) -> bool:
        """Whether it is still at something that nobody needs any more, or hangs there."""
        return any(not chunk.is_needed for chunk in self.chunks)


@dataclass(frozen=True)
class Answer:
    """What an actor, or Ray in its stead, says; `chunk` is None for its first word."""

    member: Member
    chunk: Chunk | None
    future: "Future[Any]"


class Crew:
    """All actors of one driver."""

    def __init__(self, options: RayOptions) -> None:
        self.options = options
        self.members: list[Member] = []
        self.inbox: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._own_versions = own_versions()
        self._told: set[str] = set()
        self._n_failed_starts = 0
        self._last_poll = float("-inf")
        self._class = ray.remote(
            num_cpus=options.actor_threads,
            max_restarts=0,  # we start anew by ourselves, and know what was lost
            max_task_retries=0,
            runtime_env={"env_vars": ENVIRONMENT},
            scheduling_strategy="SPREAD",
        )(Actor)

    @property
    def ready(self) -> list[Member]:
        """Actors that have answered."""
        return [member for member in self.members if member.state == "ready"]

    @property
    def is_starting(self) -> bool:
        """Whether some actors have not answered yet."""
        return any(member.state == "starting" for member in self.members)

    def fit_for(self, engine: str) -> list[Member]:
        """Those that give an engine's bits: for some, elementary functions must be the same as here to the last bit."""
        if engine not in MACHINE_ENGINES:
            return self.ready
        here = libm_fingerprint()
        others = {member.host for member in self.ready if member.libm != here}
        fit = [member for member in self.ready if member.libm == here]
        words = f"sin, cos, pow … or BLAS differ in their last bits, and with them the {engine} engine; planar's do not"
        if others and not fit:
            raise EvergaitError(
                f"workers: no machine can be used: between here and {', '.join(sorted(others))}, {words}"
            )
        if others - self._told:
            self._told |= others
            log.warning("not used: %s, where %s", ", ".join(sorted(others)), words)
        return fit

    def seconds_to_poll(self) -> float:
        """Time until the next look at the cluster is due."""
        return max(0.0, self._last_poll + self.options.poll_seconds - time.monotonic())

    def poll(self) -> None:
        """Have as many actors as the machines that are alive have room for."""
        self._last_poll = time.monotonic()
        threads = self.options.actor_threads
        rooms = (int(node["Resources"].get("CPU", 0)) // threads for node in _nodes() if node["Alive"])
        n_wanted = max(1, sum(rooms) // self.options.share)
        while len(self.members) < n_wanted:
            self._hire()
        for member in [member for member in self.members if member.state == "starting"]:
            if len(self.members) > n_wanted:  # there is no longer room for it
                self.dismiss(member)

    def _hire(self) -> None:
        member = Member(self._class.remote(self.options.actor_threads, self.options.limits))
        self.members.append(member)
        self._listen(member, None, member.handle.hello.remote())

    def assign(self, member: Member, number: int, request: Any, chunk: Chunk) -> None:
        """Give a chunk of a request to an actor, with the request if it is new to it."""
        reference = None if member.request == number else request
        member.request = number
        if not member.chunks:
            member.since = time.monotonic()
        member.chunks.append(chunk)
        self._listen(member, chunk, member.handle.run.remote(number, reference, chunk.begin, chunk.end))

    def answered(self, member: Member, chunk: Chunk) -> float:
        """An actor is done with a chunk; how many seconds that took."""
        member.chunks.remove(chunk)
        before, member.since = member.since, time.monotonic()
        return member.since - before

    def _listen(self, member: Member, chunk: Chunk | None, reference: Any) -> None:
        put = self.inbox.put
        reference.future().add_done_callback(lambda future: put(Answer(member, chunk, future)))

    def hear_first_word(self, answer: Answer, is_strict: bool) -> None:
        """An actor has started, or cannot. Another version is an error at connect; later its machine is left alone."""
        member, error = answer.member, answer.future.exception()
        if member not in self.members:
            return
        if error is not None:
            self.dismiss(member)
            self._n_failed_starts += 1
            if self._n_failed_starts >= MAX_FAILED_STARTS:
                raise EvergaitError(f"workers: {MAX_FAILED_STARTS} actors in a row could not start; the last: {error}")
            return
        self._n_failed_starts = 0
        hello = answer.future.result()
        other = difference(self._own_versions, hello["versions"], hello["host"])
        if other and is_strict:
            raise EvergaitError(f"workers: {other}; install the same versions everywhere, or bits would differ")
        member.node, member.host, member.process = hello["node"], hello["host"], hello["process"]
        member.libm = hello["libm"]
        member.state = "refused" if other else "ready"
        if other:  # it keeps its place, so that Ray starts no other actor there
            log.warning("a worker that joined is not used: %s", other)

    def dismiss(self, member: Member) -> None:
        """End an actor, whatever it is at."""
        if member in self.members:
            self.members.remove(member)
        with contextlib.suppress(Exception):  # it may be gone already, and so may be the cluster
            ray.kill(member.handle)

    def close(self) -> None:
        """End every actor."""
        for member in list(self.members):
            self.dismiss(member)
