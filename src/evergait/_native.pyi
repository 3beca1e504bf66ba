import numpy as np
from numpy.typing import NDArray

from evergait.core.arrays import Float32, Float64, Int32, Int64, UInt32

ISA: str
MAX_WIDTH: int
PLANAR_LANES: tuple[int, int]

def words(seed: int, generation: int, purpose: int, index: int, n: int) -> UInt32: ...
def normals(seed: int, generation: int, purpose: int, index: int, begin: int, end: int) -> Float32: ...
def accumulate_noise(
    seed: int,
    generation: int,
    purpose: int,
    pairs: UInt32,
    weights: Float64,
    begin: int,
    end: int,
    gradient: Float64,
    n_threads: int,
) -> None: ...
def packed_size(layers: Int64) -> int: ...
def pack_candidates(
    layers: Int64,
    theta: Float32,
    sigma: float,
    seed: int,
    generation: int,
    purpose: int,
    pairs: UInt32,
    signs: Float32,
    packed: Float32,
    n_threads: int,
) -> None: ...
def act(
    layers: Int64,
    middle: Float32,
    half_range: Float32,
    mean: Float64 | None,
    scale: Float64 | None,
    packed: Float32,
    observations: Float64,
    actions: Float32,
    n_threads: int,
) -> None: ...
def outputs(
    layers: Int64,
    mean: Float64 | None,
    scale: Float64 | None,
    theta: Float64,
    observations: Float64,
    outputs: Float64,
) -> None: ...
def pull_back(
    layers: Int64,
    mean: Float64 | None,
    scale: Float64 | None,
    theta: Float64,
    observations: Float64,
    cotangents: Float64,
    squared: bool,
    gradient: Float64,
) -> None: ...
def planar_step(
    description: Float64,
    position: Float64,
    velocity: Float64,
    control: Float64,
    n_frames: int,
    n_threads: int,
    n_lanes: int,
    any_tree: bool,
) -> None: ...
def planar_episodes(
    description: Float64,
    rules: Float64,
    layers: Int64,
    middle: Float32,
    half_range: Float32,
    mean: Float64 | None,
    scale: Float64 | None,
    theta: Float32,
    sigma: float,
    seed: int,
    generation: int,
    purpose: int,
    pair: UInt32,
    sign: Float32,
    row_seed: UInt32,
    noise_purpose: int,
    position: Float64,
    velocity: Float64,
    limit: int,
    returns: Float64,
    lengths: Int32,
    diverged: NDArray[np.uint8],
    sums: Float64 | None,
    trace: Float64 | None,
    n_threads: int,
    n_lanes: int,
    any_tree: bool,
) -> None: ...
