"""A real cluster of three nodes with one processor each, all on this machine, shared by every test that needs Ray.

And commands in processes of their own, with clusters of their own.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import processes_with
from small import tiny_config

from evergait.config import Config, Evaluation
from evergait.methods import Naive
from evergait.workers import Ray, Workers

# Ray reads these when it is imported, and every node must have the same.
os.environ["RAY_AUTH_MODE"] = "token"
os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(16)

SMALL = ("--num-cpus", 1, "--object-store-memory", 80 * 2**20)
"""What `ray start` is told, so that several machines fit into one."""
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_log_monitor": False}


def long_config(generations: int) -> Config:
    """Many generations that cost next to nothing, evaluated in the middle and at the end."""
    evaluation = Evaluation(every=generations // 2, episodes=2, random_policies=2)
    changes = {"engine": "planar", "generations": generations, "horizon": 20, "evaluation": evaluation}
    return tiny_config(stream=("InvertedPendulum-v5",), method=Naive(), **changes)


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
    Path(tempfile.gettempdir(), "ray").mkdir(
        exist_ok=True
    )  # Ray notes a cluster's address there, and takes it for given
    small = SmallCluster(folder)
    small.add_node()
    small.add_node()
    ray.init(address=small.address, log_to_driver=False, logging_level="ERROR")
    yield small
    small.free()
    ray.shutdown()
    small.cluster.shutdown()  # type: ignore[no-untyped-call]
    shutil.rmtree(folder, ignore_errors=True)


class Commands:
    """Commands whose processes all carry a mark in their environment, and so are found, whatever becomes of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mark = str(uuid.uuid4())
        self._before = self._shared_memory()
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self.environment |= {"HOME": str(folder), "RAY_TMPDIR": str(folder), "EVERGAIT_MARK": self._mark}

    def start(
        self, *words: object, program: str = "evergait", namespace: str = "", **environment: str
    ) -> "subprocess.Popen[bytes]":
        """A program of this virtual environment, in a session of its own; what it says goes to a file."""
        within = ["ip", "netns", "exec", namespace] if namespace else []
        with self._said.open("ab") as file:
            return subprocess.Popen(
                [*within, Path(sys.executable).parent / program, *map(str, words)],
                env={**self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def _said(self) -> Path:
        return self.folder / "said"

    def said(self) -> str:
        """All that commands have printed."""
        return self._said.read_text()

    def until(self, what: Callable[[], object], seconds: float = 120) -> None:
        """Wait for something that must come."""
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.05)

    def processes(self) -> list[int]:
        """All that commands have started and that lives."""
        return processes_with(self._mark)

    def until_nothing_is_left(self, but_agents: bool = False) -> None:
        """Neither processes nor shared memory stay behind; or none but agents of Ray's own, which try for a minute to
        tell a dead cluster of its death.
        """

        def is_agent(process: int) -> bool:
            try:
                return b"Agent" in Path(f"/proc/{process}/cmdline").read_bytes()
            except OSError:
                return True  # it is gone

        self.until(lambda: not [p for p in self.processes() if not (but_agents and is_agent(p))])
        assert self._shared_memory() <= self._before

    @staticmethod
    def _shared_memory() -> set[str]:
        return {path.name for path in Path("/dev/shm").glob("plasma*")}  # noqa: S108

    def close(self) -> None:
        """Whatever is still there."""
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def commands() -> Iterator[Commands]:
    pytest.importorskip("ray")
    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")  # names of sockets must be short
    found = Commands(Path(folder))
    yield found
    found.close()
    shutil.rmtree(folder, ignore_errors=True)
