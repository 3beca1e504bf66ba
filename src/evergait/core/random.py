"""Counter-based randomness: every number is a pure function of where it is used, never of what was drawn before.

Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) maps a 64-bit key and a 128-bit
counter to 128 random bits. Everywhere in evergait

    key     = the run's seed
    counter = (draw, index, generation, stage·256 + purpose)

where `stage` is the position of the task in the stream, `purpose` is one of the constants below, `index` is a pair,
an episode or a layer, and `draw` counts blocks of four 32-bit words. Words (x0, x1) of a block give two normals by
Box-Muller: r = √(−2 ln((x0+1)/2³²)), angle = 2π(x1/2³² − 1/8), (r cos, r sin); words (x2, x3) give two more.
Parameter j of pair p is perturbed by normal j mod 4 of draw j // 4 at index p.
"""

import zlib
from dataclasses import dataclass

import numpy as np

from evergait import _native
from evergait.core.arrays import Float32, UInt32

PERTURBATION, RESET, INITIAL_WEIGHTS, EVALUATION, OBSERVATION_NOISE, RANDOM_POLICY, CHOICE = range(7)
COLLECTION, ACTION_NOISE, RESERVOIR, DISTILLATION = range(7, 11)


@dataclass(frozen=True)
class Noise:
    """Where a stream of random numbers sits: all of the counter but draw and index."""

    seed: int
    purpose: int
    generation: int = 0
    stage: int = 0

    def normals(self, index: int, begin: int, end: int) -> Float32:
        """Normals `begin` to `end` at an index.

        >>> noise = Noise(seed=0, purpose=PERTURBATION)
        >>> bool((noise.normals(3, 0, 8)[5:] == noise.normals(3, 5, 8)).all())
        True
        """
        return _native.normals(self, index, begin, end)

    def integers(self, n: int, index: int = 0) -> UInt32:
        """The first n 32-bit words at an index, for use as seeds."""
        return _native.words(self, index, n)


def layer_index(name: str) -> int:
    """A stable index for a named thing, so that its numbers do not depend on what else there is."""
    return zlib.crc32(name.encode())


def uniform(words: UInt32) -> Float32:
    """32-bit words to uniform numbers in [0, 1), as multiples of 2⁻²⁴.

    >>> uniform(np.array([0, 2**31], np.uint32)).tolist()
    [0.0, 0.5]
    """
    return (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
