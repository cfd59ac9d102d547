"""Scalar functions of losses: exponential and logarithm, ufuncs in NumPy and polynomials in compiled loops (`_numba`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

LOSS_PACKAGE = str(Path(__file__).parents[1] / "losses")  # where scalar functions consist of ufuncs


def decay(t: Any) -> Any:
    """Return exp(t) for t <= 0. It is zero below -708."""
    return np.exp(t)


def log1p_unit(u: Any) -> Any:
    """Return log(1 + u) for u in [0, 1]."""
    return np.log1p(u)


def takes_arrays(scalar: Any) -> bool:
    """Return whether the scalar function is one of this package. Those of users may have branches."""
    code = getattr(scalar, "__code__", None)
    return code is not None and code.co_filename.startswith(LOSS_PACKAGE)
