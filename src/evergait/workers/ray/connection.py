"""One connection to a Ray cluster: joined, or started here for this machine alone."""

import contextlib
import logging
import os
import secrets
import signal
import threading
from collections.abc import Iterator
from typing import Any

import ray
import ray.exceptions
from ray._private import ray_constants

from evergait.core.errors import EvergaitError

OBJECT_STORE_BYTES = 128 * 2**20
"""Shared memory of a cluster of our own: a request is θ and a few counters, far less than Ray's default."""
LOOPBACK = "EVERGAIT_RAY_LOOPBACK"
"""Address of a cluster of our own, for processes that we start: to reach it they must take its address as it is."""
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}


class Connection:
    """This process's connection; one that the program made before is used and left alone."""

    def __init__(self, address: str, n_cpus: int) -> None:
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            with _same_signal_handlers():
                try:
                    _join(address) if address else _start(n_cpus)
                except BaseException:
                    ray.shutdown()  # also what was half started
                    raise
        self.address: str = ray.get_runtime_context().gcs_address

    def close(self) -> None:
        """Leave the cluster, or end it if it was started here."""
        if self._is_ours:
            self._is_ours = False
            os.environ.pop(LOOPBACK, None)
            ray.shutdown()


def _join(address: str) -> None:
    try:
        with _loopback() if address == os.environ.get(LOOPBACK) else contextlib.nullcontext():
            ray.init(address=address, **QUIET)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        reason = str(error).strip().splitlines()[0]
        raise EvergaitError(f"workers.address: cannot join a Ray cluster at {address!r}: {reason}") from error


def _start(n_cpus: int) -> None:
    """A cluster that only this machine can reach, and only with a token that only its processes know."""
    # Ray asks for a token by itself, unless RAY_AUTH_MODE says otherwise; setting that here would come too late.
    if not os.environ.get("RAY_AUTH_TOKEN_PATH"):
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # else Ray would leave one in ~/.ray
    with _loopback():
        try:
            ray.init(
                address="local",
                num_cpus=n_cpus,
                include_dashboard=False,
                object_store_memory=OBJECT_STORE_BYTES,
                **QUIET,
            )
        except Exception as error:  # Ray raises just that when its processes do not answer in time
            raise EvergaitError(f"workers: Ray could not start on this machine: {error}") from error
    address = ray.get_runtime_context().gcs_address
    if not address.startswith("127."):
        raise EvergaitError(
            f"workers: Ray listens on {address} and not on loopback; join a cluster of your own instead"
        )
    os.environ[LOOPBACK] = address


@contextlib.contextmanager
def _loopback() -> Iterator[None]:
    """Let Ray take 127.0.0.1 for this machine's address, as it does on macOS; then all its ports are bound to that.

    `_node_ip_address="127.0.0.1"` does not help: Ray replaces it by an address that others can reach.
    """
    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


@contextlib.contextmanager
def _same_signal_handlers() -> Iterator[None]:
    """Ray sets a handler of its own for SIGTERM; training needs the one that stops at safe points."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
