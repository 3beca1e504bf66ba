"""A real cluster of three nodes with one processor each, all on this machine, shared by every test that needs Ray."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from evergait.workers import Ray, Workers

# Ray reads these when it is imported, and every node must have the same.
os.environ["RAY_AUTH_MODE"] = "token"
os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(16)

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_log_monitor": False}


class SmallCluster:
    """Nodes, and at most one set of workers on them at a time: a second one would find no free processor."""

    def __init__(self, folder: str) -> None:
        from ray.cluster_utils import Cluster

        head = {**NODE, "include_dashboard": False, "no_monitor": True, "temp_dir": folder}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes: list[Any] = []
        self._workers: Workers | None = None
        self._options = Ray()

    @property
    def address(self) -> str:
        """Where it can be joined."""
        address: str = self.cluster.address
        return address

    def add_node(self) -> None:
        """One more processor."""
        self.nodes.append(self.cluster.add_node(**NODE))

    def remove_node(self) -> None:
        """Kill a node with all that runs there."""
        self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)

    def workers(self, **changes: Any) -> Any:
        """Workers with these options; the ones from before, if they are the same."""
        options = Ray(**{"address": self.address, "poll_seconds": 0.5, "smallest_chunk": 4, **changes})
        if self._workers is None or self._options != options:
            self.free()
            self._workers, self._options = options.start(1), options
        return self._workers

    def free(self) -> None:
        """Let others have the processors."""
        if self._workers:
            self._workers.close()
            self._workers = None


@pytest.fixture(scope="session")
def cluster() -> Iterator[SmallCluster]:
    ray = pytest.importorskip("ray")
    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")  # names of sockets must be short
    small = SmallCluster(folder)
    small.add_node()
    small.add_node()
    ray.init(address=small.address, log_to_driver=False, logging_level="ERROR")
    yield small
    small.free()
    ray.shutdown()
    small.cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)
