"""Where the planar engine's time goes, and how far it is from the machine's arithmetic peak: fills in docs/physics.md.

python benchmarks/training_profile.py [--rows 768] [--horizon 200]

Time is sampled by `perf record` in a build with debug information and charged to the source file that the instruction
comes from. Operations are counted by `valgrind --tool=callgrind`, instruction by instruction, in the AVX2 code, whose
arithmetic is the same per lane. The peak is measured by independent multiplications and additions, as wide as the
engine's (no fused multiply-adds: the engine may not use them, see docs/physics.md).
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

TASKS = ("Hopper-v5", "Swimmer-v5", "Walker2d-v5", "HalfCheetah-v5")
PARTS = {
    "dynamics.h": "kinematics, inertia",
    "stepper.h": "integration",
    "constraints.h": "contacts, limits",
    "collision.h": "contacts, limits",
    "solver.h": "solver",
    "policy.h": "policy",
    "noise.h": "candidates (noise)",
    "rules.h": "observation, reward",
    "episodes.h": "observation, reward",
    "physics.h": "observation, reward",
    "planar.cpp": "observation, reward",
}
COLUMNS = list(dict.fromkeys(PARTS.values()))
HELPERS = ("lanes.h", "topology.h", "model.h")  # charged to whoever calls them
PEAK = r"""
#include <chrono>
#include <cstdio>
#define STEP(x, y) x = x + c, y = y * b; asm volatile("" : "+v"(x), "+v"(y));
template <class T> double peak() {
  typedef T V __attribute__((vector_size(64)));
  const V b = V{} + T(1.0000001), c = V{} + T(1e-9);
  V a0 = b, a1 = b, a2 = b, a3 = b, a4 = b, a5 = b, a6 = b, a7 = b, a8 = b, a9 = b;
  double best = 0;
  for (int round = 0; round < 20; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000000; ++i) { STEP(a0, a1) STEP(a2, a3) STEP(a4, a5) STEP(a6, a7) STEP(a8, a9) }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const double rate = 1e7 * (64 / sizeof(T)) / took.count();
    best = rate > best ? rate : best;
  }
  return best;
}
int main() { printf("%g %g\n", peak<double>(), peak<float>()); }
"""


def run(*command: str, input: str = "", **environment: str) -> str:  # noqa: A002 - as subprocess calls it
    """Standard output of a command that must succeed."""
    environment = {**os.environ, **environment}
    return subprocess.run(command, input=input, check=True, text=True, stdout=subprocess.PIPE, env=environment).stdout


def work(task: str, theta: str, n_rows: int, horizon: int) -> None:
    """What is measured: one generation on one thread. Prints steps and seconds."""
    from dataclasses import replace

    from evergait.engines.planar.engine import PlanarEngine
    from evergait.tasks import Task
    from evergait.workers.bench import generation

    request = replace(generation(Task(task), np.load(theta), n_rows, index=7), horizon=horizon)
    begin = time.perf_counter()
    lengths = PlanarEngine().run(request, 1).lengths
    print(int(lengths.sum()), time.perf_counter() - begin)


def build(folder: Path) -> dict[str, str]:
    """The package with debug information, first on Python's path."""
    options = ["-Ccmake.build-type=RelWithDebInfo", "-Cinstall.strip=false", f"-Cbuild-dir={folder / 'build'}"]
    pip = ["-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target"]
    run(sys.executable, *pip, str(folder / "package"), *options, str(ROOT))
    return {"PYTHONPATH": str(folder / "package")}


def parts_of(library: str, addresses: list[str]) -> list[str]:
    """The part of the engine that each address belongs to."""
    text = run("addr2line", "-i", "-a", "-e", library, input="\n".join(addresses))
    parts = []
    for frames in re.split(r"^0x[0-9a-f]+\n", text, flags=re.MULTILINE)[1:]:
        files = [Path(line.split(":")[0]).name for line in frames.splitlines()]
        file = next((file for file in files if file in PARTS and file not in HELPERS), "")
        parts.append(PARTS.get(file, ""))
    return parts


def sampled(folder: Path, environment: dict[str, str], arguments: list[str]) -> collections.Counter[str]:
    """Share of time by part."""
    data = str(folder / "perf.data")
    run("perf", "record", "-q", "-F", "2000", "-o", data, sys.executable, __file__, *arguments, **environment)
    library = next((folder / "package" / "evergait").glob("_native*.so"))
    mapped = r"\[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (?:0x)?([0-9a-f]+) .*: r-xp .*_native"
    found = re.search(mapped, run("perf", "script", "-i", data, "--show-mmap-events"))
    if found is None:
        raise SystemExit("perf did not see the engine")
    begin, size, offset = (int(group, 16) for group in found.groups())
    counts: collections.Counter[str] = collections.Counter()
    for line in run("perf", "script", "-i", data, "-F", "ip").split():
        if begin <= int(line, 16) < begin + size:
            counts[hex(int(line, 16) - begin + offset)] += 1
    shares: collections.Counter[str] = collections.Counter()
    for part, n in zip(parts_of(str(library), list(counts)), counts.values(), strict=True):
        shares[part] += n
    total = sum(n for part, n in shares.items() if part)
    return collections.Counter({part: n / total for part, n in shares.items() if part})


def counted(folder: Path, environment: dict[str, str], arguments: list[str]) -> tuple[float, float]:
    """Double and single precision operations per environment step: executed vector instructions times their lanes."""
    out = folder / "callgrind.out"
    printed = run(
        "valgrind", "-q", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--compress-strings=no",
        f"--callgrind-out-file={out}", sys.executable, __file__, *arguments, **environment, EVERGAIT_ISA="avx2",
    )  # fmt: skip
    n_steps = int(printed.split()[0])
    library = next((folder / "package" / "evergait").glob("_native*.so"))
    executed: collections.Counter[int] = collections.Counter()
    inside, after_call = False, False
    for line in out.read_text(errors="replace").splitlines():
        if line.startswith("ob="):
            inside = "_native" in line
        elif line.startswith("calls="):
            after_call = True
        elif inside and line.startswith("0x"):
            if not after_call:  # the line after calls= is the cost of the callee
                address, _, cost = line.split()[:3]
                executed[int(address, 16)] += int(cost)
            after_call = False
    lanes = {"pd": 4, "ps": 8, "sd": 1, "ss": 1}
    operations = {"d": 0.0, "s": 0.0}
    code = {}
    pattern = r"^\s*([0-9a-f]+):\s+(?:v?)(add|sub|mul|div|sqrt|min|max)([ps][sd])\s+(.*)$"
    for address, _, kind, operands in re.findall(
        pattern, run("objdump", "-d", "--no-show-raw-insn", str(library)), flags=re.M
    ):
        width = lanes[kind] if "ymm" in operands or kind[0] == "s" else lanes[kind] // 2
        code[int(address, 16)] = (kind[1], width)
    base = loaded_at(executed, code)
    for address, n in executed.items():  # type: ignore[assignment]
        if address - base in code:  # type: ignore[operator]
            kind, width = code[address - base]  # type: ignore[operator]
            operations[kind] += n * width
    return operations["d"] / n_steps, operations["s"] / n_steps


def loaded_at(executed: collections.Counter[int], code: dict[int, tuple[str, int]]) -> int:
    """Where the library was loaded: the shift by whole pages under which most executed addresses are instructions."""
    busiest = [address for address, _ in executed.most_common(2000)]
    tries: collections.Counter[int] = collections.Counter()
    for address in busiest[:200]:
        for known in code:
            if (address - known) % 4096 == 0:
                tries[address - known] += 1
    return tries.most_common(1)[0][0]


def main() -> None:
    """Measure every task and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=768)
    parser.add_argument("--horizon", type=int, default=200)
    parser.add_argument("--work", nargs=2, metavar=("TASK", "THETA"), help="only run what is measured")
    options = parser.parse_args()
    if options.work:
        work(*options.work, options.rows, options.horizon)  # type: ignore[call-arg]
        return
    missing = [name for name in ("perf", "valgrind", "addr2line", "objdump") if not shutil.which(name)]
    if missing:
        raise SystemExit(f"{', '.join(missing)}: not found; on Debian: apt install linux-perf valgrind binutils")
    from pages import fill_in

    from evergait.tasks import Task
    from evergait.workers.bench import survivor

    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "peak.cpp").write_text(PEAK)
        run(
            "g++",
            "-O2",
            "-ffp-contract=off",
            "-march=native",
            "-mprefer-vector-width=512",
            str(folder / "peak.cpp"),
            "-o",
            str(folder / "peak"),
        )
        environment = build(folder)
        for task in TASKS:
            theta = str(folder / f"{task}.npy")
            np.save(theta, survivor(Task(task), 2))
            arguments = ["--work", task, theta, "--rows", str(options.rows), "--horizon", str(options.horizon)]
            peaks, speeds = [], []
            for _ in range(3):  # interleaved: both see the same noise
                peaks.append([float(x) for x in run(str(folder / "peak")).split()])
                n_steps, seconds = run(sys.executable, __file__, *arguments, **environment).split()
                speeds.append(int(n_steps) / float(seconds))
            shares = sampled(folder, environment, arguments)
            few = ["--work", task, theta, "--rows", "16", "--horizon", str(options.horizon)]
            double, single = counted(folder, environment, few)
            peak_double, peak_single = np.max(peaks, axis=0)
            speed = max(speeds)
            ideal = double / peak_double + single / peak_single
            cells = [task, *(f"{shares[part]:.0%}" for part in COLUMNS), f"{double:,.0f}", f"{single:,.0f}"]
            rows.append([*cells, f"{speed:,.0f}", f"{ideal * speed:.0%}"])
            print(rows[-1], f"peak {peak_double / 1e9:.1f} {peak_single / 1e9:.1f} G/s", flush=True)
    head = ["task", *COLUMNS, "double operations per step", "single", "steps/s, 1 thread", "share of peak"]
    lines = [head, ["---"] * len(head), *rows]
    peaks = f"{peak_double / 1e9:.0f} G double or {peak_single / 1e9:.0f} G single precision operations per second"  # type: ignore[assignment]
    fill_in(
        "physics.md",
        {"profile": "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\nPeak of one core: {peaks}."},
    )


if __name__ == "__main__":
    main()
