"""Any number of threads, other elementary functions, another BLAS: the same bits, or another name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults import tree, write_counts
from small import tiny_config

from evergait.core.versions import libm_fingerprint
from evergait.training.run import Run, train

SCRIPT = """
import sys, threading
from pathlib import Path
from evergait.config import read_config
from evergait.training.run import train


def ticks():
    found = {}
    for entry in Path("/proc/self/task").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if not int(fields[6]) & 4:  # PF_EXITING: it computes no more
            found[entry.name] = int(fields[11]) + int(fields[12])
    return found


def children():
    return {name for thread in ticks() for name in Path(f"/proc/self/task/{thread}/children").read_text().split()}


def watch():
    start.wait()
    seen = [set(), set()]
    while not done.wait(0.001):
        last, seen = seen, [set(ticks()) - set(before), children()]
        for i in (0, 1):
            most[i] = max(most[i], len(last[i] & seen[i]))  # in two looks one after the other: all there in between


most, start, done, watcher = [0, 0], threading.Event(), threading.Event(), threading.Thread(target=watch)
watcher.start()
before = ticks()
start.set()
train(read_config(Path(sys.argv[1])), sys.argv[2], threads=int(sys.argv[3]))
done.set()
watcher.join()
after, own = ticks(), {str(threading.main_thread().native_id), str(watcher.native_id)}
print(*most, sum(after.get(name, 0) > before[name] + 1 for name in set(before) - own))
"""
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def train_on(folder: Path, config: Path, n_threads: int, omp: str) -> Path:
    """Train in a process of its own, which tells how many threads and processes it started and had at once."""
    inherited = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environment = {**inherited, **(dict.fromkeys(VARIABLES, omp) if omp else {})}
    out = folder / f"{n_threads}-{omp}"
    command = [sys.executable, "-c", SCRIPT, str(config), str(out), str(n_threads)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    n_started, n_children, n_woken = map(int, done.stdout.split())
    assert n_started <= n_threads  # besides the first one, which works or waits: one may just be about to end
    assert n_children <= n_threads  # which wait while threads sum up the gradient
    assert n_woken == 0, "a library used threads of its own"
    return out


@pytest.mark.parametrize("engine", ["mujoco", "planar"])
def test_the_same_bits(engine: str, tmp_path: Path) -> None:
    stream = ("InvertedPendulum-v5", "Reacher-v5") if engine == "mujoco" else ("Hopper-v5", "Swimmer-v5")
    config = tiny_config(stream=stream, engine=engine, horizon=40)
    (tmp_path / "c.toml").write_text(config.to_toml())
    train(config, tmp_path / "one", threads=1)
    assert tree(train_on(tmp_path, tmp_path / "c.toml", 7, "5")) == tree(tmp_path / "one")


@pytest.mark.prove
def test_the_same_bits_on_many_threads_and_a_crowded_machine(tmp_path: Path) -> None:
    n_tried = 0
    spin = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        for engine, stream in {
            "mujoco": ("InvertedPendulum-v5", "Reacher-v5"),
            "planar": ("Hopper-v5", "Swimmer-v5"),
            "gymnasium": ("CartPole-v1", "InvertedPendulum-v5"),
        }.items():
            folder = tmp_path / engine
            folder.mkdir()
            config = tiny_config(stream=stream, engine=engine, horizon=40, pairs=40)
            (folder / "c.toml").write_text(config.to_toml())
            trees = []
            for n_threads in (1, 2, 7, 64) if engine != "gymnasium" else (1, 2, 7):
                for omp in ("", "1", "16"):
                    trees.append(tree(train_on(folder, folder / "c.toml", n_threads, omp)))
                    n_tried += 1
            assert all(found == trees[0] for found in trees)
            assert Run.load(folder / "1-").is_done
    finally:
        for process in spin:
            process.kill()
            process.wait()
    words = "1, 2, 7, 64 threads; OMP and BLAS variables unset, 1 and 16; two busy processes per processor"
    write_counts("threads", n_tried, 0, words)


VARIANTS = {
    "the C library without FMA": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA"},
    "the C library without AVX2": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA"},
    "BLAS for an old processor": {"OPENBLAS_CORETYPE": "Prescott"},
    "NumPy without AVX2 and AVX-512": {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"},
    "baseline instructions": {"EVERGAIT_ISA": "baseline"},
}
SHORT_RUNS = """
import sys, tempfile
from evergait.config import Config, Evaluation
from evergait.es import Adam
from evergait.methods import Naive
from evergait.training.run import train

for task in sys.argv[3:]:
    evaluation = Evaluation(every=3, episodes=2, random_policies=1, cut=sys.argv[2] == "cut")
    config = Config(
        stream=(task,), generations=3, pairs=4, engine=sys.argv[1], horizon=200, evaluation=evaluation,
        optimizer=Adam(), method=Naive(),
    )
    with tempfile.TemporaryDirectory() as folder:
        run = train(config, folder + "/run", threads=1)
        ledger = (run.phases[0].path / "ledger.jsonl").read_bytes()
        print(task, run.phases[0].name, run.theta_sha256, hash(ledger))
"""


def trained_with(environment: dict[str, str], engine: str, length: str, *tasks: str) -> list[tuple[str, ...]]:
    """(task, name, θ, ledger) of short runs in a process with these variables."""
    command = [sys.executable, "-W", "ignore", "-c", SHORT_RUNS, engine, length, *tasks]
    variables = {**os.environ, "PYTHONHASHSEED": "0", **environment}
    said = subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout
    return [tuple(line.split()) for line in said.splitlines()]


def holds(
    variants: dict[str, dict[str, str]], planar: tuple[str, ...], mujoco: tuple[str, ...], length: str = "whole"
) -> int:
    """The planar engine has the same bits everywhere; the mujoco engine has them wherever it has the same name.

    Evaluations are whole episodes, or cut where those of training are.
    """
    n = 0
    for engine, tasks in (("planar", planar), ("mujoco", mujoco)):
        here = trained_with({}, engine, length, *tasks)
        for environment in variants.values():
            for one, other in zip(here, trained_with(environment, engine, length, *tasks), strict=True):
                assert one == other or (engine == "mujoco" and one[1] != other[1])
                n += 1
    return n


def test_planar_has_the_same_bits_and_mujoco_another_name(tmp_path: Path) -> None:
    some = ("the C library without FMA", "BLAS for an old processor")
    holds({name: VARIANTS[name] for name in some}, ("HalfCheetah-v5",), ("HalfCheetah-v5", "Ant-v5"), "cut")


@pytest.mark.prove
def test_no_processor_mixes_bits(tmp_path: Path) -> None:
    planar = ("Hopper-v5", "Swimmer-v5", "Walker2d-v5", "HalfCheetah-v5", "InvertedPendulum-v5")
    n = holds(VARIANTS, planar, ("HalfCheetah-v5", "Ant-v5", "Walker2d-v5", "Pusher-v5"))
    write_counts("processors", n, 0, f"{', '.join(VARIANTS)}; planar: same bits; mujoco: same bits or another name")


FMA = "fma" in Path("/proc/cpuinfo").read_text().split() and "glibc" in os.confstr("CS_GNU_LIBC_VERSION")  # type: ignore[operator]


def elsewhere(**environment: str) -> str:
    """The fingerprint of a process with other surroundings."""
    code = "from evergait.core.versions import libm_fingerprint; print(libm_fingerprint())"
    command = [sys.executable, "-c", code]
    return subprocess.check_output(command, env={**os.environ, **environment}, text=True).strip()


def test_it_is_the_same_in_every_process_and_for_any_number_of_threads() -> None:
    assert elsewhere() == elsewhere(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1") == libm_fingerprint()


@pytest.mark.skipif(not FMA, reason="the C library has one variant of its functions on this processor")
def test_it_knows_the_variants_of_the_c_library() -> None:
    assert elsewhere(GLIBC_TUNABLES="glibc.cpu.hwcaps=-FMA") != libm_fingerprint()


@pytest.mark.skipif(not FMA, reason="numpy and BLAS have one variant on this processor")
def test_it_knows_the_variants_of_blas() -> None:
    assert elsewhere(OPENBLAS_CORETYPE="Prescott") != libm_fingerprint()
