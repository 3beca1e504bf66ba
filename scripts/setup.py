"""Make .venv, or leave it alone if it is what requirements.lock and this Python ask for (`make setup` calls this).

Old Pythons must be able to read this file, to say in a sentence that they are too old: so no new syntax here.
"""

import hashlib
import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
STAMP = "locked"


def complaint(version, executable, compiler):
    """Why this machine cannot build evergait, in words; empty if it can."""
    if tuple(version[:2]) < OLDEST:
        return (
            "evergait needs Python {}.{} or newer, and {} is {}.{}.\n"
            "Name another one: make setup PYTHON=python3.12".format(OLDEST[0], OLDEST[1], executable, *version[:2])
        )
    if not compiler:
        return (
            "No C++ compiler to build evergait from source: apt-get install g++ (macOS: xcode-select --install).\n"
            "`pip install evergait` needs none."
        )
    return ""


def compiler():
    """The C++ compiler that CMake will find."""
    named = os.environ.get("CXX", "").split()
    return next(filter(None, map(shutil.which, named[:1] or ["c++", "g++", "clang++"])), "")


def wanted(lock):
    """What decides whether an environment can stay: the lock, and the Python it was made from."""
    with open(lock, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    return "{}\n{} {}\n".format(digest, os.path.realpath(sys.base_prefix), sys.version.split()[0])


def found(folder):
    """The stamp of an environment whose Python still runs; empty otherwise."""
    python = os.path.join(folder, "bin", "python")
    try:
        with open(os.path.join(folder, STAMP)) as file:
            stamp = file.read()
        subprocess.check_call([python, "-c", "import pip"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return stamp


def main(lock="requirements.lock", folder=".venv"):
    """Exit code 0 if the environment is ready."""
    words = complaint(sys.version_info, sys.executable, compiler())
    if words:
        sys.stderr.write(words + "\n")
        return 2
    want, have = wanted(lock), found(folder)
    if want == have:
        return 0
    if want.splitlines()[1:] != have.splitlines()[1:]:  # another Python, or one that is gone
        if os.path.exists(folder):
            sys.stderr.write("{} was made by another Python: it is made again\n".format(folder))
        if subprocess.call([sys.executable, "-m", "venv", "--clear", folder]):
            sys.stderr.write("No virtual environment could be made (Debian: apt-get install python3-venv).\n")
            return 2
    pip = [os.path.join(folder, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.call(pip + ["--require-hashes", "-r", lock]):
        sys.stderr.write(
            "Not everything in {} could be installed. Without a network only what is there already can be used;\n"
            "behind a proxy set HTTPS_PROXY, or an index in pip's own settings.\n".format(lock)
        )
        return 2
    with open(os.path.join(folder, STAMP), "w") as file:
        file.write(want)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
