"""Exponential and logarithm of scalar losses: ufuncs in NumPy, polynomials in compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np


def decay(t: Any) -> Any:
    """Return exp(t) for t <= 0. It is zero below -708."""
    return np.exp(t)


def log1p_unit(u: Any) -> Any:
    """Return log(1 + u) for u in [0, 1]."""
    return np.log1p(u)
