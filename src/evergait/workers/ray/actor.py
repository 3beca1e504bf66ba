"""What runs on the cluster's machines."""

import os
import platform

from evergait.core.errors import EvergaitError
from evergait.core.fingerprint import libm_fingerprint
from evergait.core.versions import own_versions
from evergait.engines import Episodes, Limits, limited_engine
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
