"""Make a folder for what tests write, and print its name.

It is in memory if there is room, and if programs may be started from there: tests sync many thousand files, and would
mostly wait for disks.
"""

import os
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108
ROOM = 4 * 2**30


def has_room(folder: Path) -> bool:
    """Whether tests can have their files there."""
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return False
    system = os.statvfs(folder)
    return system.f_bavail * system.f_frsize >= ROOM and not system.f_flag & getattr(os, "ST_NOEXEC", 0)


if __name__ == "__main__":
    print(tempfile.mkdtemp(prefix="evergait-", dir=MEMORY if has_room(MEMORY) else None))
