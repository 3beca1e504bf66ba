"""Array aliases and the one exception that users see."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt32 = NDArray[np.uint32]
Bool = NDArray[np.bool_]
Array = NDArray[Any]


class EvergaitError(Exception):
    """A mistake that the user can mend; its text says where it is, what was given and what would be right."""
