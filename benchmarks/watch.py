"""What being watched costs a training: the same one with and without a page that follows it, in turn, and in either
order. Wall and processor time of the training, and of who watches. `--tall` shows the page down to its robot, which
then moves; in a window of usual height it is below the fold and rests.

python benchmarks/watch.py --rounds 5
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

EVERGAIT = (sys.executable, "-m", "evergait")
SWITCHES = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
TRAINING = ("--stream", "Swimmer-v5", "Walker2d-v5", "--pairs", "32", "--evaluation.every", "5")


@dataclass(frozen=True)
class Cost:
    """Seconds of one training, and processor seconds of what watched it."""

    wall: float
    processor: float
    server: float
    browser: float


@contextmanager
def watched(folder: Path, home: Path, height: int) -> Iterator[list[subprocess.Popen[str]]]:
    """A server and a Chromium that shows its page."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        raise SystemExit("no Chromium on this machine")
    ask = (*EVERGAIT, "watch", str(folder), "--no-open")
    server = subprocess.Popen(ask, stdout=subprocess.PIPE, text=True, start_new_session=True)
    address = next(word for line in server.stdout or () for word in line.split() if word.startswith("http://"))
    show = (
        chromium,
        *SWITCHES,
        f"--window-size=1400,{height}",
        f"--user-data-dir={home}",
        "--remote-debugging-port=0",
        address,
    )
    browser = subprocess.Popen(show, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    try:
        yield [server, browser]
    finally:
        for process in (browser, server):
            process.terminate()
            process.wait()


def processor_seconds(session: int) -> float:
    """Of all processes of a session that are there."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(") ")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def train(folder: Path, generations: int, threads: int, watchers: list[subprocess.Popen[str]]) -> Cost:
    """One training from nothing."""
    command = (*EVERGAIT, "train", *TRAINING, "--generations", str(generations), "--threads", str(threads))
    before, began = [processor_seconds(process.pid) for process in watchers], time.perf_counter()
    process = subprocess.Popen((*command, "--out", str(folder / "run")), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"training failed: {status}")
    wall = time.perf_counter() - began
    spent = [processor_seconds(one.pid) - early for one, early in zip(watchers, before, strict=True)] or [0.0, 0.0]
    return Cost(wall, usage.ru_utime + usage.ru_stime, *spent)


def one(generations: int, threads: int, is_watched: bool, height: int) -> Cost:
    """In a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "runs").mkdir()
        if not is_watched:
            return train(path, generations, threads, [])
        with watched(path, Path(folder) / "home", height) as watchers:
            time.sleep(2)  # the page is open before the training begins
            return train(path, generations, threads, watchers)


def main() -> None:
    """Print every training and the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--generations", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tall", action="store_true")
    options = parser.parse_args()
    generations, threads, height = options.generations, options.threads, 3000 if options.tall else 900
    rounds: list[dict[bool, Cost]] = []
    for number in range(options.rounds):
        order = (False, True) if number % 2 == 0 else (True, False)
        rounds.append({is_watched: one(generations, threads, is_watched, height) for is_watched in order})
        print(number, json.dumps({str(key): vars(cost) for key, cost in sorted(rounds[-1].items())}), flush=True)
    for name in ("processor", "wall"):
        ratios = sorted(getattr(pair[True], name) / getattr(pair[False], name) for pair in rounds)
        print(
            f"{name} time, watched / alone: median {statistics.median(ratios):.3f}, all {[round(r, 3) for r in ratios]}"
        )
    wall = sum(pair[True].wall for pair in rounds)
    for name in ("server", "browser"):
        print(f"{name}: {100 * sum(getattr(pair[True], name) for pair in rounds) / wall:.1f} % of one processor")
    print(f"load of the last minute: {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
