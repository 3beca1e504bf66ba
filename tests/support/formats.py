"""Files of every released format, each a .tar.gz in tests/formats."""

import tarfile
from pathlib import Path

FORMATS = Path(__file__).parents[1] / "formats"
VERSIONS = sorted(path.name.removesuffix(".tar.gz") for path in FORMATS.glob("v*.tar.gz"))


def unpack(version: str, folder: Path) -> Path:
    """The files of a format as they were written, in a new folder."""
    with tarfile.open(FORMATS / f"{version}.tar.gz") as file:
        file.extractall(folder / version, filter="data")
    return folder / version
