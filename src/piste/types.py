"""Array types that every part of the package uses."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Counts: TypeAlias = csr_array
"""Questions × types, sparse: most questions hold few of them."""
