"""Group lasso: whole groups of coordinates become zero, in any diagonal metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import nonnegative, numbers, shown
from ..linalg import kernels
from ._groups import group_prox
from ._norm import Norm, ratio, unit_of
from ._points import quiet
from ._sizes import all_moderate
from .base import QuadraticTerms, point

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
        One weight >= 0 per group, in the order of the sorted labels; 1 by default. A group of weight 0 is not penalised.

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
        names, labels, sizes = np.unique(self.groups, return_inverse=True, return_counts=True)
        sentence = (
            f"The 'weights' parameter of GroupL2 must hold one number >= 0 per group, here {names.size}, in the order of "
            f"the sorted labels. Got {shown(weights)} instead."
        )
        self.weights = None if weights is None else numbers(weights, sentence)
        if self.weights is not None and (
            self.weights.shape != names.shape
            or not np.isfinite(self.weights).all()
            or (self.weights < 0).any()
        ):
            raise ValueError(sentence)
        self._labels = labels.astype(np.int64)
        self._order = np.argsort(self._labels, kind="stable")
        self._starts = np.concatenate(([0], np.cumsum(sizes)))
        with np.errstate(over="ignore"):
            self._strength = self.lam * (
                np.ones(names.size) if self.weights is None else self.weights
            )
        if not np.isfinite(self._strength).all():
            raise ValueError(
                f"The 'weights' parameter of GroupL2 is too large: times 'lam', {self.lam}, it is infinite."
            )

    def _norms(self, x: np.ndarray) -> np.ndarray:
        """The Euclidean norm of each group, with one column per trajectory."""
        x = np.ascontiguousarray(x, np.float64).reshape(len(x), -1)
        squares, unit = np.zeros((self._strength.size, x.shape[1])), 1.0
        if not all_moderate(x):
            largest = np.zeros_like(squares)
            np.maximum.at(largest, self._labels, np.abs(x))
            unit = unit_of(largest)
            x = x / unit[self._labels]
        kernels.add_block_squares(squares, self._labels, x)
        return unit * np.sqrt(squares)

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        return (self._strength @ self._norms(x)).reshape(x.shape[1:])[()]

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        group_prox(z, step, out, 0.0, self)

    def quadratic_terms(self, size: int) -> QuadraticTerms:
        return QuadraticTerms.of(size, labels=self._labels, strength=self._strength)

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        y = point(self, y, "y")
        return ratio(self._norms(y), self._strength[:, None]).max(axis=0).reshape(y.shape[1:])[()]

    def check_size(self, size: int) -> None:
        if self.groups.size != size:
            raise ValueError(
                f"GroupL2 has {self.groups.size} group labels, but there are {size} penalised coordinates."
            )
