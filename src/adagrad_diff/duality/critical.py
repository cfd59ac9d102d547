"""The strength at which a penalty takes over: where its null, such as x = 0, becomes the solution."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import block_diag

from .. import _check
from ..losses import LinearModel, Quadratic, as_loss
from ..penalties import Penalty, Scaled, as_penalty
from .intercept import balance, best_intercept
from .subgradients import smallest_polar

NO_MINIMISER = "The loss has no minimiser over the penalty's null (and the intercept): is there just one class?"


def critical_lam(loss: Any, penalty: Any) -> float:
    r"""The smallest strength at which the null of a penalty is optimal.

    .. math:: \min\; \{t : 0 \in \partial f(\hat x) + t\, \partial\varphi(\hat x)\} =
              \min_{g \in \partial f(\hat x)} \text{polar}(-g)

    The null of a norm is x = 0, that of the total variation the constant vectors; \hat x minimises f over the null (and
    over the intercept, which no penalty touches). Where f is smooth there, g is its gradient. At a kink of the hinge,
    absolute or quantile loss, the smallest value over all subgradients is a small linear program.

    Parameters
    ----------
    loss : Loss
        A loss of `adagrad_diff.losses`.
    penalty : Penalty
        A norm or seminorm.

    Returns
    -------
    float
        In units of `lam` for penalties that have a single one (`L1(lam)`, `GroupL2(lam, ...)`, ...): their own lam does
        not matter, unless it is zero. Otherwise (one strength per coordinate, several strengths) as a factor.

    Examples
    --------
    >>> from adagrad_diff import L1, Squared, critical_lam
    >>> critical_lam(Squared([[1.0, 0.0], [0.0, 2.0]], [3.0, 1.0]), L1(1.0))
    1.5
    """
    loss, penalty = as_loss(loss), as_penalty(penalty)
    if not {"norm", "seminorm"} & penalty.properties:
        raise ValueError(
            f"{penalty.name} has no critical strength: it is neither a norm nor a seminorm, so it has no null."
        )
    if not isinstance(loss, LinearModel | Quadratic):
        raise ValueError(
            "'loss' must be a loss of adagrad_diff.losses: the subgradients of a function are not known."
        )
    assert loss.shape is not None
    intercepts = int(np.prod(loss.shape)) // loss.shape[0] if loss.intercept else 0
    penalty.check_size(int(np.prod(loss.shape)) - intercepts)
    factor, _ = smallest_polar(loss, penalty, _minimiser(loss, penalty, intercepts))
    return float(factor * penalty.strength_unit)


def at_fraction(loss: Any, penalty: Any, fraction: float) -> Penalty:
    """The penalty, scaled to a fraction of its critical strength.

    At 1 the solution is the penalty's null (for a norm, all zeros); below, it leaves it. Fractions mean the same on every
    data set, strengths do not.

    Parameters
    ----------
    loss, penalty
        As for `critical_lam`.
    fraction : float
        A positive number.

    Returns
    -------
    Penalty

    Examples
    --------
    >>> from adagrad_diff import L1, Squared, at_fraction, minimize
    >>> loss = Squared([[1.0, 0.0], [0.0, 2.0]], [3.0, 1.0])
    >>> minimize(loss, penalty=at_fraction(loss, L1(1.0), 0.5), eta=1.0).x.round(3).tolist()
    [1.5, 0.125]
    """
    penalty = as_penalty(penalty)
    fraction = _check.positive(fraction, "fraction", "at_fraction")
    return Scaled(penalty, fraction * critical_lam(loss, penalty) / penalty.strength_unit)


def _minimiser(loss: Any, penalty: Penalty, intercepts: int) -> np.ndarray:
    """Where f is smallest among the x that cost no penalty, as one vector."""
    size = int(np.prod(loss.shape))
    x = np.zeros(size)
    null = penalty.null_space(size - intercepts)
    if not null.size:
        if intercepts:
            offset = best_intercept(loss)
            if offset is None:
                raise ValueError(NO_MINIMISER)
            x[-intercepts:] = offset
        return x
    basis = block_diag(null, np.eye(intercepts))
    return np.asarray(basis @ _minimise_over(loss, basis))


def _minimise_over(loss: Any, basis: np.ndarray) -> np.ndarray:
    """The minimiser of f over the span of a few vectors, to full precision."""
    from scipy.optimize import brentq, minimize

    if isinstance(loss, LinearModel) and loss.piecewise_linear:
        return _minimise_piecewise_linear(loss, basis)

    def value_and_slope(c: np.ndarray) -> tuple[float, np.ndarray]:
        f, g = loss.value_and_grad((basis @ c).reshape(loss.shape))
        return f, basis.T @ g.ravel().astype(np.float64)

    if basis.shape[1] == 1:

        def slope(c: float) -> float:
            return float(value_and_slope(np.array([c]))[1][0])

        reach = 1.0
        while not slope(-reach) < 0 < slope(reach) and reach < 1e12:
            reach *= 4.0
        if not slope(-reach) < 0 < slope(reach):
            raise ValueError(NO_MINIMISER)
        return np.array([brentq(slope, -reach, reach, xtol=1e-15, rtol=1e-14)])
    found = minimize(
        value_and_slope, np.zeros(basis.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-12}
    )
    at_zero = float(np.linalg.norm(value_and_slope(np.zeros(basis.shape[1]))[1]))
    if np.linalg.norm(found.jac) > 1e-7 * max(1.0, at_zero):
        raise ValueError(
            "The loss could not be minimised over the penalty's null and the intercept."
        )
    return np.asarray(found.x)


def _minimise_piecewise_linear(loss: LinearModel, basis: np.ndarray) -> np.ndarray:
    """min over c of the loss at basis c: each sample is the maximum of two lines that meet at z = b."""
    from scipy import sparse
    from scipy.optimize import linprog

    if loss.l2:
        raise ValueError(
            "The critical strength of a loss with kinks, l2 > 0 and a free direction is not known in closed form."
        )
    Z, b, weight = (
        loss.predict(basis).astype(np.float64),
        loss.b.astype(np.float64),
        loss.weight.astype(np.float64),
    )
    left, right = (
        np.asarray(s, dtype=np.float64) * np.ones(len(b)) for s in loss.slopes(b, loss.theta)
    )
    if basis.shape[1] == 1:
        z = Z[:, 0]
        kinks = np.divide(b, z, out=np.zeros_like(b), where=z != 0)
        c = (
            balance(
                kinks,
                np.where(z > 0, left, -right),
                np.where(z > 0, right, -left),
                weight * np.abs(z),
            )
            if z[weight > 0].any()
            else None
        )
        if c is None:
            raise ValueError(NO_MINIMISER)
        return np.array([c])
    # Unknowns: c, and one value per sample which is above both lines. Left and right of a sample's kink, the part of the loss
    # that does not vanish at the kink is a constant.
    slack = -sparse.eye_array(len(b))
    lines = sparse.vstack(
        [sparse.hstack([sparse.csr_array(s[:, None] * Z), slack]) for s in (left, right)]
    )
    cost = np.r_[np.zeros(basis.shape[1]), weight]
    found = linprog(
        cost,
        A_ub=lines,
        b_ub=np.concatenate([left * b, right * b]),
        bounds=(None, None),
        method="highs",
    )
    if found.status != 0:
        raise ValueError(NO_MINIMISER)
    return np.asarray(found.x[: basis.shape[1]])
