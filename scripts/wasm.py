"""Compile the engine for browsers: native/wasm/ and the kernels → src/evergait/live/evergait.wasm.gz.

The compiler is zig's clang (PyPI's `ziglang`, a development dependency); the module needs no library and imports
nothing. It is kept in the repository, so that installing needs no compiler for it, and is built anew only where the
sources have changed since: it carries their digest. tests/live proves that it has the bits of the native core.

    python scripts/wasm.py [--output FILE] [--force]
"""

import argparse
import gzip
import hashlib
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULE = ROOT / "src/evergait/live/evergait.wasm.gz"
SOURCES = tuple(
    f"native/{name}.cpp" for name in ("wasm/entry", "wasm/memory", "kernels", "planar", "planar/description")
)
# As in CMakeLists.txt: no contraction, no reordering. -O2 is as fast as -O3 here and smaller.
FLAGS = (
    *("-target", "wasm32-freestanding", "-std=c++17", "-O2", "-msimd128", "-mbulk-memory", "-ffp-contract=off"),
    *("-fno-math-errno", "-fno-trapping-math", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-Wall"),
    *("-Wextra", "-nostdlib", "-nostdlib++", "-Inative/wasm/include", "-Inative", "-s", "-Wl,--no-entry"),
)
SECTION = b"evergait-sources"


def digest() -> bytes:
    """Of everything that the module is made of."""
    found = hashlib.sha256(" ".join(FLAGS).encode())
    files = [path for path in (ROOT / "native").rglob("*") if path.is_file() and path.parent.name != "bindings"]
    for path in sorted(files):
        found.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return found.digest()


def is_current(path: Path) -> bool:
    """Whether a module was made of these sources."""
    return path.exists() and gzip.decompress(path.read_bytes()).endswith(SECTION + digest())


def build(path: Path) -> None:
    """Compile, add the digest as a section of its own at the end, and pack."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "evergait.wasm"
        command = [sys.executable, "-m", "ziglang", "c++", *FLAGS, *SOURCES, "-o", str(output)]
        subprocess.run(command, cwd=ROOT, check=True)
        content = bytes([len(SECTION)]) + SECTION + digest()
        module = output.read_bytes() + bytes([0, len(content)]) + content
    path.write_bytes(gzip.compress(module, 9, mtime=0))


def main() -> int:
    """Build the module if that is needed and can be done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=MODULE)
    parser.add_argument("--force", action="store_true", help="build even if the sources have not changed")
    arguments = parser.parse_args()
    if is_current(arguments.output) and not arguments.force:
        return 0
    if importlib.util.find_spec("ziglang") is None:
        print("wasm: ziglang is not installed; the module that the repository has is used as it is")
        return 0
    build(arguments.output)
    print(f"wasm: {arguments.output} ({arguments.output.stat().st_size / 1000:.0f} kB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
