"""What being watched costs a training: one training of even pace, followed by a server and a page that are halted and
let go on in turn, and how many generations a second it makes in each state. `--tall` shows the page down to its robot,
which then moves; in a window of usual height it is below the fold and rests.

python benchmarks/watch.py --windows 60 --seconds 4
"""

import argparse
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import evergait
from evergait import Diagnostics, Position

SWITCHES = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
SETTLED = 0.25
"""Seconds after a change of state that do not count."""


@dataclass
class Pace(evergait.Observer):
    """When each generation was done; ends the training when it has been seen enough."""

    ends: list[float] = field(default_factory=list)
    enough: threading.Event = field(default_factory=threading.Event)

    def generation_done(self, at: Position, seen: Diagnostics) -> None:
        """Remember the time."""
        self.ends.append(time.perf_counter())
        if self.enough.is_set():
            raise KeyboardInterrupt

    def rate(self, begin: float, end: float) -> float:
        """Generations a second between two times."""
        ends = [at for at in self.ends if begin <= at <= end]
        return (len(ends) - 1) / (ends[-1] - ends[0])


@contextmanager
def watched(folder: Path, home: Path, height: int) -> Iterator[list[subprocess.Popen[str]]]:
    """A server and a Chromium that shows its page, each a session of its own."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        raise SystemExit("no Chromium on this machine")
    ask = (sys.executable, "-m", "evergait", "watch", str(folder), "--no-open")
    server = subprocess.Popen(ask, stdout=subprocess.PIPE, text=True, start_new_session=True)
    address = next(word for line in server.stdout or () for word in line.split() if word.startswith("http://"))
    show = (chromium, *SWITCHES, f"--window-size=1400,{height}", f"--user-data-dir={home}", address)
    browser = subprocess.Popen(
        (*show, "--remote-debugging-port=0"), stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    try:
        yield [server, browser]
    finally:
        for process in (browser, server):
            os.killpg(process.pid, signal.SIGCONT)
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


def in_turn(pace: Pace, watchers: list[subprocess.Popen[str]], windows: int, seconds: float) -> list[float]:
    """Watched / alone of each two windows that follow each other, in either order; prints who took what."""
    ratios = []
    before, let_go = [processor_seconds(one.pid) for one in watchers], 0.0
    for number in range(windows):
        rates = {}
        for is_watched in (True, False) if number % 2 else (False, True):
            for process in watchers:
                os.killpg(process.pid, signal.SIGCONT if is_watched else signal.SIGSTOP)
            begin = time.perf_counter()
            time.sleep(seconds)
            let_go += seconds * is_watched
            rates[is_watched] = pace.rate(begin + SETTLED, begin + seconds)
        ratios.append(rates[True] / rates[False])
    for name, process, early in zip(("server", "browser"), watchers, before, strict=True):
        print(f"{name}: {100 * (processor_seconds(process.pid) - early) / let_go:.2f} % of one processor")
    return ratios


def main() -> None:
    """Train, watch in turn, and print the ratio of the paces with its interval."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tall", action="store_true")
    options = parser.parse_args()
    # Every generation is as much work as any other: a swimmer's episodes have one length, and it touches nothing.
    evaluation = evergait.Evaluation(every=50, snapshots=0)
    config = evergait.Config(stream=("Swimmer-v5",), generations=1_000_000, pairs=128, evaluation=evaluation)
    pace = Pace()
    with tempfile.TemporaryDirectory() as place:
        (folder := Path(place) / "runs").mkdir()
        asked = {"threads": options.threads, "observers": (pace,), "checkpoint_seconds": 5.0}
        with watched(folder, Path(place) / "home", 3000 if options.tall else 900) as watchers:
            found: list[float] = []

            def look() -> None:
                time.sleep(8)  # the page is open, and knows the training
                found.extend(in_turn(pace, watchers, options.windows, options.seconds))
                pace.enough.set()

            thread = threading.Thread(target=look)
            thread.start()
            try:
                evergait.train(config, folder / "run", **asked)
            except KeyboardInterrupt:
                thread.join()
    spread = statistics.stdev(found) / math.sqrt(len(found))
    mean = statistics.fmean(found)
    print(
        f"generations a second, watched / alone: {mean:.4f} ± {1.96 * spread:.4f} (95 %, {len(found)} pairs of windows)"
    )
    print(f"load of the last minute: {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
