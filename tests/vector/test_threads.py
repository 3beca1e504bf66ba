"""Threads of a vector environment change no bit, survive a fork, and end with it; Python's own must take turns."""

import gc
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from small import equal, play

from evergait.core.arrays import Float64
from evergait.core.errors import EvergaitError
from evergait.vector import VectorEnvironment, make, n_parameters, policy, rollout


def test_neither_threads_nor_neighbours_change_a_bit() -> None:
    one = play(make("Walker2d-v5", 200, max_episode_steps=30), 60)
    assert equal(one, play(make("Walker2d-v5", 200, threads=3, max_episode_steps=30), 60))
    few = play(make("Walker2d-v5", 3, max_episode_steps=30), 60)
    assert equal([part[:3] for part in one], few)


def test_a_fork_steps_with_threads_of_its_own() -> None:
    env, right = (make("Hopper-v5", 200, threads=n) for n in (2, 1))
    before = play(env, 3)  # its threads are there now
    assert equal(before, play(right, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, which is what this is about
        forked = os.fork()
    if not forked:
        os._exit(0 if equal(play(env, 5), play(right, 5)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert equal(play(env, 5), play(right, 5))


def test_threads_end_with_their_environment() -> None:
    def n_threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    before, env = n_threads(), make("Hopper-v5", 200, threads=3)
    play(env, 2)
    assert n_threads() == before + 2
    del env
    gc.collect()
    assert n_threads() == before


def test_two_threads_of_python_cannot_step_it_at_once() -> None:
    env, refused = make("Walker2d-v5", 2000), []
    env.reset(seed=1)
    actions = env.action_space.sample()

    def step() -> None:
        for _ in range(30):
            try:
                env.step(actions)
            except EvergaitError as error:
                refused.append(str(error))

    both = [Thread(target=step) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert refused
    assert set(refused) == {"vector: is in use; it must be used by one thread at a time"}


def test_rollouts_in_threads_of_python_are_those_of_one() -> None:
    network = policy("Hopper-v5")
    thetas = np.random.default_rng(0).normal(0, 0.5, (1, n_parameters(network)))

    def returns(first: int) -> Float64:
        seeds = list(range(first, first + 2000))
        return rollout("Hopper-v5", network, thetas, seeds, horizon=1).returns

    firsts = range(0, 24_000, 2000)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(returns, firsts))
    assert all(np.array_equal(many, returns(first)) for many, first in zip(found, firsts, strict=True))


def test_clones_in_threads_of_python_begin_as_one_alone_does() -> None:
    env = make("HalfCheetah-v5", 64, max_episode_steps=1, autoreset_mode="SameStep")  # all begin anew in every step
    env.reset(seed=1)
    actions = np.zeros((64, 6), np.float32)

    def starts(clone: VectorEnvironment) -> list[Float64]:
        return [clone.step(actions)[0] for _ in range(100)]

    right, interval = starts(env.clone()), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(starts, [env.clone() for _ in range(3)]))
    finally:
        sys.setswitchinterval(interval)
    assert all(equal(one, right) for one in found)


@pytest.mark.parametrize("identifier", ["Hopper-v5", "Ant-v5"])  # which have a batch of MuJoCo's and one of ours
def test_a_fork_goes_on_without_mujocos_threads_and_ends(identifier: str) -> None:
    env, right = (make(identifier, 5, threads=n, engine="mujoco", max_episode_steps=4) for n in (2, 1))
    idle = make(identifier, 5, threads=2, engine="mujoco")
    play(env, 3), play(right, 3), play(idle, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        forked = os.fork()
    if not forked:
        same = equal(play(env, 6, seed=None), play(right, 6, seed=None))
        env.close()
        del env, idle
        gc.collect()
        os._exit(0 if same else 1)
    deadline, ended = time.monotonic() + 20, 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(forked, os.WNOHANG)
        time.sleep(0.02)
    if not ended:
        os.kill(forked, signal.SIGKILL)
        os.waitpid(forked, 0)
    assert ended, "the fork hangs"
    assert os.waitstatus_to_exitcode(status) == 0
    assert equal(play(env, 6, seed=None), play(right, 6, seed=None))


@pytest.mark.parametrize("engine", ["planar", "mujoco"])
def test_closing_gives_robots_and_threads_back(engine: str) -> None:
    def n_threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    before, env = n_threads(), make("Hopper-v5", 200, threads=3, engine=engine)
    play(env, 2)
    assert n_threads() == before + 2
    env.close()
    assert n_threads() == before
    calls: list[Callable[[], object]] = [lambda: env.step(np.zeros((200, 3))), lambda: env.reset(seed=1), env.get_state]
    for call in calls:
        with pytest.raises(EvergaitError, match="the environment is closed; make another one"):
            call()
    env.close()
