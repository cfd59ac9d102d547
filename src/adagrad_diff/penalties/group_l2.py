"""Group lasso and sparse group lasso: whole groups of coordinates become zero, in any diagonal metric."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import nonnegative, numbers, shown
from .arrays import (
    absolute_sum,
    as_rows,
    by_rows,
    check_length,
    from_rows,
    largest,
    point,
    quiet,
    ratio,
)
from .base import Norm, QuadraticTerms
from .roots import NEWTON_STEPS, norms
from .six_penalties import soft

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class GroupL2(Norm):
    r"""The sum of the Euclidean norms of groups of coordinates.

    .. math:: \varphi(x) = \lambda \sum_g w_g \|x_g\|_2

    Within a group, with :math:`\lambda_g = \lambda w_g`, the prox is

    .. math:: \text{prox}(z, s)_i = \frac{h z_i}{h + \lambda_g s_i}, \qquad
              h > 0 \text{ with } \sum_i \frac{z_i^2}{(h + \lambda_g s_i)^2} = 1,
              \quad\text{or } 0 \text{ if } \sum_i \frac{z_i^2}{(\lambda_g s_i)^2} \le 1.

    If the steps of the group are equal, :math:`h = \|z_g\|_2 - \lambda_g s`.

    Parameters
    ----------
    lam : float
        Strength >= 0.
    groups : array of int
        The label of each coordinate's group. Coordinates of a group need not be neighbours.
    weights : array, optional
        One weight >= 0 per group, in the order of the sorted labels; 1 by default. A group of weight 0 is not penalized.

    Examples
    --------
    >>> from adagrad_diff.penalties import GroupL2
    >>> GroupL2(1.0, groups=[0, 1, 0]).prox([3.0, 0.5, 4.0], step=1.0).round(12).tolist()
    [2.4, 0.0, 3.2]
    """

    def __init__(self, lam: float, groups: ArrayLike, weights: ArrayLike | None = None):
        self.lam = nonnegative(lam, "lam", "GroupL2")
        try:
            self.groups = np.asarray(groups)
        except ValueError:  # lists of different lengths
            self.groups = np.empty(0)
        if self.groups.ndim != 1 or self.groups.size == 0 or self.groups.dtype.kind not in "iu":
            raise ValueError(
                "The 'groups' parameter of GroupL2 must be a vector of integers, the label of each coordinate's group. "
                f"Got {shown(groups)} instead."
            )
        names, self._labels, sizes = np.unique(self.groups, return_inverse=True, return_counts=True)
        sentence = (
            f"The 'weights' parameter of GroupL2 must hold one number >= 0 per group, here {names.size}, in the order of "
            f"the sorted labels. Got {shown(weights)} instead."
        )
        self.weights = None if weights is None else numbers(weights, sentence)
        factors = np.ones(names.size) if self.weights is None else self.weights
        if factors.shape != names.shape or not ((factors >= 0) & (factors < np.inf)).all():
            raise ValueError(sentence)
        with np.errstate(over="ignore"):
            self._strength = self.lam * factors
        if not np.isfinite(self._strength).all():
            raise ValueError(
                f"The 'weights' parameter of GroupL2 is too large: times 'lam', {self.lam}, it is infinite."
            )
        self._order = np.argsort(self._labels, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(sizes)])

    def _sums(self, rows: np.ndarray) -> Any:
        """Return the sum over each group of each row."""
        return np.add.reduceat(rows[:, self._order], self._starts[:-1], axis=1)

    def _shrink(self, z: np.ndarray, step: np.ndarray) -> Any:
        """Return the prox of each row."""
        a = (self._strength[self._labels] * step)[:, self._order]
        h = np.empty((len(z), self._strength.size))
        norms(z[:, self._order], a, self._starts, h)
        x = np.empty_like(z)
        h = h[:, self._labels[self._order]]
        x[:, self._order] = np.where(a > 0.0, h / (h + a), 1.0)
        return x * z

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        return from_rows((np.sqrt(self._sums(as_rows(x) ** 2)) * self._strength).sum(axis=1), x)

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        by_rows(self._shrink, z, step, out)

    def quadratic_terms(self, size: int) -> QuadraticTerms:
        return QuadraticTerms.of(size, labels=self._labels, strength=self._strength)

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        y = point(self, y, "y")
        return from_rows(ratio(np.sqrt(self._sums(as_rows(y) ** 2)), self._strength).max(axis=1), y)

    def check_size(self, size: int) -> None:
        check_length(size, self.groups.size, "GroupL2", "group labels")


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
        self.l1 = nonnegative(l1, "l1", "SparseGroupL2")
        self.l2 = nonnegative(l2, "l2", "SparseGroupL2")
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
        by_rows(
            lambda z, step: self._group._shrink(soft(np, z, self.l1 * step), step), z, step, out
        )

    def quadratic_terms(self, size: int) -> QuadraticTerms:
        return replace(self._group.quadratic_terms(size), l1=np.full(size, self.l1))

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        """The largest t with norm(soft(y_g, l1 t)) = l2 t for a group g."""
        y = point(self, y, "y")
        if self.l1 == 0.0 or self.l2 == 0.0:
            return ratio(largest(y), self.l1) if self.l1 else self._group.polar(y)
        group, size = self._group, np.abs(as_rows(y))
        # Newton's method from the left for the convex decreasing norm(soft(y_g, l1 t)) - l2 t.
        t = np.zeros((len(size), group._strength.size))
        for _ in range(NEWTON_STEPS):
            excess = np.maximum(size - self.l1 * t[:, group._labels], 0.0)
            size_g = np.sqrt(group._sums(excess**2))
            gap = size_g - self.l2 * t
            slope = self.l1 * ratio(group._sums(excess), size_g) + self.l2
            change = np.where(gap > 0.0, gap / slope, 0.0)
            if not (change > 1e-15 * t).any():
                break
            t = t + change
        t[np.isnan(gap)] = np.nan
        return from_rows(t.max(axis=1), y)

    def check_size(self, size: int) -> None:
        check_length(size, self.groups.size, "SparseGroupL2", "group labels")
