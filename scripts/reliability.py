"""Writes the table of docs/reliability.md from what `make prove` has measured (docs/reliability.json).

    python scripts/reliability.py

A row without a measurement says so; nothing is filled in by hand. A proof that finds a loss fails and writes no row, so
`lost` in a written row is 0; `make prove` begins with an empty file, so that no row outlives a failure.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from pages import DOCS, fill_in

FAULTS = {
    "kill-training": "SIGKILL of a training run, at random moments",
    "kill-study": "SIGKILL of a study, at random moments",
    "kill-study-jobs": "SIGKILL of a study with two jobs: the parent alone, or all processes",
    "kill-call-before": "SIGKILL right before a system call of a write",
    "kill-call-after": "SIGKILL right after a system call of a write",
    "kill-call-torn": "SIGKILL in the middle of a write, half of it done",
    "tuning": "kills, signals and edits of a search for settings",
    "signals": "SIGTERM, Ctrl-C and a closed terminal, once and twice",
    "streams": "standard streams that are closed, full, or lose their reader",
    "signals-resumed": "SIGTERM and Ctrl-C, then the same command again",
    "call-fails-ENOSPC": "a system call of a write fails: no space",
    "call-fails-EDQUOT": "a system call of a write fails: quota",
    "call-fails-EIO": "a system call of a write fails: input/output error",
    "call-fails-EROFS": "a system call of a write fails: read-only file system",
    "disk-full": "a disk that is really full",
    "damage-run": "a flipped bit or a cut tail in a finished run",
    "damage-study": "a flipped bit or a cut tail in a study",
    "damage-training": "a flipped bit or a cut tail in a run in training",
    "numbers": "NaN, infinite and overflowing returns, observations that are no numbers",
    "undefined": "evaluations without a finite return, in measures, R*, choices and JSON",
    "environments": "environments that raise, die or hang when they are simulated, made, asked or recorded",
    "foreign": "environments that return what their spaces do not promise, scribble, fork or cannot speak",
    "many-runs": "runs that start at once in one store",
    "threads": "numbers of threads, BLAS variables, a crowded machine",
    "processors": "other elementary functions, BLAS and vector instructions",
    "surroundings": "clocks, start methods, names of folders, homes",
    "formats": "files of released formats",
    "hostile": "files from strangers",
    "archives": "archives of phases: damaged, hostile, larger unpacked than they say",
    "imports": "modules that a stranger's file names",
    "escapes": "escape sequences, markup and emoji in files",
    "pages": "requests from elsewhere, links, pipes and odd folders, to the page that follows trainings",
    "arrays": "actions, states and numbers of environments that no vector of environments can take",
    "retrained": "configs resealed after training, found out by training again",
    "lock": "the lock: every package with hashes, no host, no beta, nothing that is missing",
    "limits": "studies, configs and flags that are too much",
    "outside": "links and names that lead out of a folder",
    "leftovers": "SIGKILL of export, report and play, at every call that changes a file",
    "flags": "every flag of every command, with values made up by a fuzzer",
    "fuzz": "files made up by a fuzzer",
    "memory-show": "memory of `show`, of 10, 1,000 and 10,000 phases",
    "memory-status": "memory of `study status`, likewise",
    "memory-report": "memory of `report`, likewise",
    "memory": "phases at full scale against the memory ceiling",
}


def table(figures: dict[str, dict[str, object]]) -> str:
    """What was proven, and one row per fault."""
    commits = sorted({str(row["commit"]) for row in figures.values()})
    missing = len(FAULTS) - len(figures)
    whole = f"All {len(figures)} rows are of one run of `make prove`, on commit `{commits[0] if commits else ''}`."
    parts = f"{len(figures)} of {len(FAULTS)} rows are measured; each says on which commit."
    is_whole = len(commits) == 1 and not missing
    head = ["fault", "tried", "survived", "lost", "", *([] if is_whole else ["commit"])]
    lines = [
        whole if is_whole else parts,
        "",
        f"| {' | '.join(head)} |",
        f"|---|--:|--:|--:|---|{'---|' * (not is_whole)}",
    ]
    for key, fault in FAULTS.items():
        row = figures.get(key, {"tried": "–", "survived": "–", "lost": "–", "note": "not measured", "commit": "–"})
        names = ("tried", "survived", "lost", "note", *(() if is_whole else ("commit",)))
        lines.append(f"| {' | '.join([fault, *(str(row[name]) for name in names)])} |")
    return "\n".join(lines)


def main() -> None:
    """Write the page anew."""
    fill_in("reliability.md", {"measured": table(json.loads((DOCS / "reliability.json").read_text()))})


if __name__ == "__main__":
    main()
