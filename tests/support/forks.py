"""A process that has imported everything and forks others on request; tests/support/faults.py talks to it.

Requests come as JSON lines: {"start": function, "arguments": [...], "fault": [folder, n, kind] or null} is answered by
a process id, {"wait": id} by its exit code: 0, 2 for an EvergaitError (kept in FOLDER.error), 3 for any other.
"""

import ctypes
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from small import tiny_config

from evergait.cli import main as main_command
from evergait.commands.study import run_study
from evergait.config import read_config
from evergait.core.errors import EvergaitError
from evergait.training.run import train


def train_run(config: str, out: str) -> None:
    """A run with a checkpoint after every generation."""
    train(read_config(Path(config)), out, threads=1, checkpoint_seconds=0)


def train_study(study: str, out: str, jobs: str) -> None:
    """A study, likewise."""
    run_study(study, out, threads=1, jobs=int(jobs), checkpoint_seconds=0, artifacts=False)


def count(config: str, out: str) -> None:
    """Train; how many calls changed something under the folder goes to FOLDER.count."""
    train_run(config, out)
    Path(f"{out}.count").write_text(str(ctypes.CDLL(None).evergait_count()))


def command(*arguments: str) -> None:
    """A command that writes into the folder of its last argument; how many calls did goes to FOLDER.count."""
    assert main_command(list(arguments)) == 0
    Path(f"{Path(arguments[-1]).parent}.count").write_text(str(ctypes.CDLL(None).evergait_count()))


FUNCTIONS = {"train": train_run, "study": train_study, "count": count, "command": command}


def child(request: dict[str, Any]) -> int:
    """What a forked process does."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nowhere, standard)
    if request["start"] == "study":
        os.dup2(nowhere, 2)
    if request["fault"]:
        folder, nth, kind = request["fault"]
        ctypes.CDLL(None).evergait_arm(os.fsencode(folder), nth, kind)
    try:
        FUNCTIONS[request["start"]](*request["arguments"])  # type: ignore[operator]
    except EvergaitError as error:
        Path(f"{request['arguments'][1]}.error").write_text(str(error))
        return 2
    except BaseException:
        traceback.print_exc()
        return 3
    return 0


def main() -> None:
    """Serve until nobody asks any more."""
    tasks = ("InvertedPendulum-v5", "InvertedDoublePendulum-v5", "Reacher-v5")
    tiny_config(stream=tasks).check()  # Gymnasium's spaces are asked for once
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        process = os.fork()
        if process == 0:
            os._exit(child(request))
        print(process, flush=True)


if __name__ == "__main__":
    main()
