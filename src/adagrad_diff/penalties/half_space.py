"""Half-spaces: a hyperplane for the points beyond it."""

from __future__ import annotations

from .hyperplane import Hyperplane


class HalfSpace(Hyperplane):
    r"""The indicator of a half-space.

    .. math:: \varphi(x) = 0 \text{ if } \langle a, x\rangle \le \beta, \text{ else } \infty, \qquad
              \text{prox}(z, s)_i = z_i - s_i a_i \frac{\max(\langle a, z\rangle - \beta, 0)}{\sum_j s_j a_j^2}

    Parameters
    ----------
    a : array
        The outer normal vector, not zero.
    beta : float
        The right-hand side.

    Examples
    --------
    >>> from adagrad_diff.penalties import HalfSpace
    >>> HalfSpace([1.0, 1.0], 2.0).prox([4.0, 1.0], step=[2.0, 1.0]).tolist()
    [2.0, 0.0]
    >>> HalfSpace([1.0, 1.0], 2.0).prox([0.0, 1.0], step=[2.0, 1.0]).tolist()
    [0.0, 1.0]
    """

    _below = True
