"""Names for the arrays that travel between modules."""

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
