"""Boxes: the prox is clipping, whatever the metric."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import RELATIVE, Penalty, as_float


class Box(Penalty):
    r"""The indicator of a box.

    .. math:: \varphi(x) = 0 \text{ if } l \le x \le u, \text{ else } \infty, \qquad
              \text{prox}(z, s) = \min(\max(z, l), u)

    Parameters
    ----------
    lower, upper : float or array
        Bounds, one for all coordinates or one per coordinate; infinite ones are allowed.

    Examples
    --------
    >>> from adagrad_diff.penalties import Box
    >>> Box(0.0, 1.0).prox([-1.0, 0.5, 3.0], step=10.0).tolist()
    [0.0, 0.5, 1.0]
    """

    def __init__(self, lower: Any, upper: Any):
        self.lower, self.upper = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
        if max(self.lower.ndim, self.upper.ndim) > 1 or np.isnan(self.lower).any() or np.isnan(self.upper).any():
            raise ValueError("The bounds of Box must be numbers or one-dimensional arrays without NaN.")
        try:
            empty = ~(self.lower <= self.upper) | (self.lower == np.inf) | (self.upper == -np.inf)
        except ValueError:
            raise ValueError(
                f"The bounds of Box must have the same length. Got {self.lower.size} and {self.upper.size}."
            ) from None
        if np.any(empty):
            raise ValueError(f"Box is empty: lower must not exceed upper. It does at coordinate {int(np.argmax(empty))}.")
        size = np.maximum(*(np.where(np.isfinite(bound), np.abs(bound), 0.0) for bound in (self.lower, self.upper)))
        self._slack = RELATIVE * np.where(size > 0, size, 1.0)

    @staticmethod
    def _like(x, bound):
        """A bound in x's dtype (so that what float32 clipping returns is inside), as a column beside trajectories."""
        return (bound[:, None] if bound.ndim == 1 and x.ndim == 2 else bound).astype(x.dtype, copy=False)

    def value(self, x):
        x = as_float(x)
        slack = self._like(x, self._slack)
        inside = np.all((x >= self._like(x, self.lower) - slack) & (x <= self._like(x, self.upper) + slack), axis=0)
        return np.where(inside, 0.0, np.inf) if x.ndim == 2 else (0.0 if inside else np.inf)

    def prox(self, z, step, out=None):
        z = as_float(z)
        return np.clip(z, self._like(z, self.lower), self._like(z, self.upper), out=np.empty_like(z) if out is None else out)

    def check_size(self, size):
        for bound in (self.lower, self.upper):
            if bound.ndim and bound.size != size:
                raise ValueError(f"Box has {bound.size} bounds, but there are {size} penalised coordinates.")
