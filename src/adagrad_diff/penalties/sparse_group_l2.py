"""Sparse group lasso: groups become zero, and single coordinates within the others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import nonnegative
from ._groups import group_prox
from ._norm import Norm, absolute_sum, largest, ratio, unit_of
from ._points import quiet
from .base import QuadraticTerms, point
from .group_l2 import GroupL2

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class SparseGroupL2(Norm):
    r"""The L1 norm plus the sum of the Euclidean norms of groups of coordinates.

    .. math:: \varphi(x) = l_1 \|x\|_1 + l_2 \sum_g \|x_g\|_2, \qquad
              \text{prox}_\varphi(z, s) = \text{prox}_{l_2 \sum_g \|\cdot\|_2}(y, s), \quad
              y_i = \text{sign}(z_i) \max(|z_i| - s_i l_1, 0)

    The composition is exact in every diagonal metric: shrinking a group changes neither signs nor zeros, so that a
    subgradient of the L1 norm at y remains one at the result.

    Parameters
    ----------
    l1, l2 : float
        Strengths >= 0.
    groups : array of int
        The label of each coordinate's group. Coordinates of a group need not be neighbours.

    Examples
    --------
    >>> from adagrad_diff.penalties import SparseGroupL2
    >>> SparseGroupL2(1.0, 2.0, groups=[0, 0, 1, 0]).prox([4.0, 0.5, 2.0, -5.0], step=1.0).round(12).tolist()
    [1.8, 0.0, 0.0, -2.4]
    """

    def __init__(self, l1: float, l2: float, groups: ArrayLike):
        self.l1, self.l2 = (
            nonnegative(l1, "l1", "SparseGroupL2"),
            nonnegative(l2, "l2", "SparseGroupL2"),
        )
        try:
            self._group = GroupL2(self.l2, groups)
        except ValueError as error:
            raise ValueError(str(error).replace("GroupL2", "SparseGroupL2")) from None
        self.groups = self._group.groups

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        return self.l1 * absolute_sum(x) + self._group.value(x)

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        group_prox(z, step, out, self.l1, self._group)

    def quadratic_terms(self, size: int) -> QuadraticTerms:
        return replace(self._group.quadratic_terms(size), l1=np.full(size, self.l1))

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        """The largest t with norm(soft(y_g, l1 t)) = l2 t for a group g."""
        size = np.abs(point(self, y, "y")).astype(np.float64)
        if self.l1 == 0.0 or self.l2 == 0.0:
            return ratio(largest(size), self.l1) if self.l1 else self._group.polar(size)
        # Newton's method from the left for the convex decreasing norm(soft(y_g, l1 t)) - l2 t, for all groups at once.
        columns, labels = size.reshape(len(size), -1), self._group._labels
        unit = unit_of(columns.max(axis=0))
        columns = columns / unit
        t = np.zeros((self._group._strength.size, columns.shape[1]))
        for _ in range(200):
            excess = np.maximum(columns - self.l1 * t[labels], 0.0)
            norms, sums = self._group._norms(excess), np.zeros_like(t)
            np.add.at(sums, labels, excess)
            gap = norms - self.l2 * t
            change = np.where(gap > 0.0, gap / (self.l1 * ratio(sums, norms) + self.l2), 0.0)
            if not (change > 1e-15 * t).any():
                break
            t += change
        t[np.isnan(gap)] = np.nan
        return (unit * t.max(axis=0)).reshape(size.shape[1:])[()]

    def check_size(self, size: int) -> None:
        if self.groups.size != size:
            raise ValueError(
                f"SparseGroupL2 has {self.groups.size} group labels, but there are {size} penalised coordinates."
            )
