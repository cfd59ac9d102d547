"""phi = 0."""

from __future__ import annotations

import numpy as np

from ._norm import indicator
from .base import Penalty


class Zero(Penalty):
    """The zero function: no penalty, prox(z) = z.

    Examples
    --------
    >>> from adagrad_diff.penalties import Zero
    >>> Zero().prox([1.0, -2.0], 0.5).tolist()
    [1.0, -2.0]
    """

    properties = frozenset({"separable", "seminorm"})

    def value(self, x):
        return 0.0 if np.ndim(x) == 1 else np.zeros(np.shape(x)[1])

    def prox(self, z, step, out=None):
        if out is None:
            return np.array(z)
        if out is not z:
            np.copyto(out, z)
        return out

    def conjugate(self, y):
        return indicator(np.all(np.asarray(y) == 0, axis=0))

    def polar(self, y):
        return self.conjugate(y)
