"""What rounding can do to a sum: the sizes of the terms that are added up.

A product A'(w u) in double precision is off by at most a few N eps sum_j w_j |a_ji| |u_j| in coordinate i. Bounds are made for
whatever is within that of the computed numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..penalties.base import EPS
from ..penalties.base import sum_rounding as factor

__all__ = ["EPS", "factor", "largest"]


def largest(values: Any) -> float:
    """Return the largest absolute value."""
    return max(float(np.max(values)), -float(np.min(values)))
