from evergait.types import Float32, Float64, Int64, UInt32

ISA: str
MAX_WIDTH: int

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
