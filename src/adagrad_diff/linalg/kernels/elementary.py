"""Exponential and logarithm for scalar losses: ufuncs in NumPy, polynomials in compiled loops (`_elementary`)."""

from __future__ import annotations

from typing import Any

import numpy as np

INLINE: Any = {"forceinline": True}  # also a long function, or the loop around it is not vectorized


def decay(t: Any) -> Any:
    """exp(t) for t <= 0; zero below -708."""
    return np.exp(t)


def log1p_unit(u: Any) -> Any:
    """log(1 + u) for u in [0, 1]."""
    return np.log1p(u)
