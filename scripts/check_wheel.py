"""Train a little with the installed evergait, and compare θ with what every other machine got.

Only the planar engine, whose bits are the same on every processor, operating system and compiler.
"""

import sys
import tempfile
from pathlib import Path

import evergait
from evergait.core.versions import in_words, versions

EXPECTED = "453f7d8e35ae3552f98f715386769205c3bbf04b9eca1978e3ea60540371dc93"
"""θ's SHA-256. It changes only when the bits of training do, which the changelog then says."""


def digest(folder: Path) -> str:
    """Of θ after two short phases: physics, noise, network, replay and optimizer all have a part in it."""
    config = evergait.Config(
        stream=("Hopper-v5", "Swimmer-v5"),
        generations=3,
        pairs=8,
        horizon=100,
        engine="planar",
        optimizer=evergait.Adam(learning_rate=0.03),
        method=evergait.Replay(budget=4),
        evaluation=evergait.Evaluation(every=3, episodes=2, random_policies=1),
    )
    return evergait.train(config, out=folder / "run", threads=2).theta_sha256


def main() -> int:
    """Exit code 0 if the bits are as expected."""
    with tempfile.TemporaryDirectory() as folder:
        found = digest(Path(folder))
    print(f"{in_words(versions())}\nθ {found}")
    if found != EXPECTED:
        print(f"expected {EXPECTED}", file=sys.stderr)
    return int(found != EXPECTED)


if __name__ == "__main__":
    sys.exit(main())
