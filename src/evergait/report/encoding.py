"""Motion as text: second differences over time, as variable-length integers, in base64.

Smooth motion has small second differences, so most numbers take one byte, whatever the distance travelled.
`assets/player.js` has the decoder; `decode` here is for stills, GIFs and tests.
"""

import base64

import numpy as np

from evergait.core.arrays import Int64


def encode(values: Int64) -> str:
    """(n_frames, n_channels) integers → text.

    >>> decode(encode(np.array([[0, 5], [1, 5], [3, -900]])), 2).tolist()
    [[0, 5], [1, 5], [3, -900]]
    """
    values = np.asarray(values, np.int64)
    padded = np.concatenate([np.zeros((2, values.shape[1]), np.int64), values])
    second = np.diff(padded, n=2, axis=0).T.ravel()  # channel by channel
    unsigned = np.where(second >= 0, 2 * second, -2 * second - 1)
    n_bytes = np.maximum(1, -(-_bit_length(unsigned) // 7))
    index = np.arange(int(n_bytes.max(initial=1)))
    groups = (unsigned[:, None] >> (7 * index)) & 127
    last = index == n_bytes[:, None] - 1
    kept = index < n_bytes[:, None]
    coded = np.where(last, groups, groups | 128)[kept].astype(np.uint8)
    return base64.b64encode(coded.tobytes()).decode()


def decode(text: str, n_channels: int) -> Int64:
    """Text → (n_frames, n_channels)."""
    coded = np.frombuffer(base64.b64decode(text), np.uint8).astype(np.int64)
    ends = np.flatnonzero(coded < 128)
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    place = np.arange(len(coded)) - np.repeat(starts, ends - starts + 1)
    unsigned = np.add.reduceat((coded & 127) << (7 * place), starts) if len(ends) else starts
    second = np.where(unsigned % 2 == 0, unsigned // 2, -(unsigned + 1) // 2)
    return second.reshape(n_channels, -1).T.cumsum(axis=0).cumsum(axis=0)


def _bit_length(values: Int64) -> Int64:
    lengths = np.zeros(len(values), np.int64)
    rest = values.copy()
    while rest.any():
        lengths += rest > 0
        rest >>= 1
    return lengths
