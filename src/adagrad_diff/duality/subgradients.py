"""The smallest subgradient of a loss, measured by the polar of a penalty: at kinks there are many to choose from."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..linalg.block import residuals
from ..losses import LinearModel
from ..penalties import Penalty


def smallest_polar(loss: Any, penalty: Penalty, x: np.ndarray) -> tuple[float, np.ndarray | None]:
    """min of polar(-g) over the subgradients g of f at x whose intercept part is zero.

    With it, if there are kinks, one residual per sample that makes up this subgradient.
    """
    if isinstance(loss, LinearModel) and loss.piecewise_linear:
        return _smallest_polar_at_kinks(loss, penalty, x)
    if isinstance(loss, LinearModel) and loss.smoothness is None and not loss.differentiable:
        raise ValueError(
            f"{type(loss).__name__} does not say where it has kinks: set 'smoothness' or 'differentiable'."
        )
    g = loss.value_and_grad(x.reshape(loss.shape))[1].astype(np.float64)
    g = (g[:-1] if loss.intercept else g).ravel()
    null = penalty.null_space(g.size)
    if null.size:  # x is optimal along these directions, in which g is zero but for rounding
        g = g - null @ np.linalg.lstsq(null, g, rcond=None)[0]
    return float(penalty.polar(-g)), None


def _smallest_polar_at_kinks(
    loss: LinearModel, penalty: Penalty, x: np.ndarray
) -> tuple[float, np.ndarray]:
    """The same when samples may be at a kink, where any slope from left to right is as good as another."""
    from scipy.optimize import linprog

    samples, features = loss.A.shape
    z = loss.predict(x)
    kinks = loss.at_nonsmooth_points(z)
    r = z.astype(loss.dtype)
    residuals(loss.scalar)(r, loss.b, loss.weight, loss.theta, 0, samples, np.zeros(1))
    r = r.astype(np.float64)
    r[kinks] = 0  # their part is open
    g = np.zeros(features)
    loss.A.tdot(r, g)
    g += loss.l2 * x[:features]
    if kinks.size == 0:
        return float(penalty.polar(-g)), r

    weight = loss.weight[kinks].astype(np.float64)
    left, right = (
        np.asarray(s, dtype=np.float64) * np.ones(kinks.size)
        for s in loss.slopes(loss.b[kinks], loss.theta)
    )
    rows = _weighted_rows(loss, kinks, weight)  # column k: what slope 1 at the k-th kink adds to g
    balance = (
        -float(r.sum()) if loss.intercept else None
    )  # what the slopes must sum to, with weights
    if balance is not None and kinks.size == 1:
        r[kinks] = weight * np.clip(balance / weight, left, right)
        return float(penalty.polar(-(g + rows @ (r[kinks] / weight)))), r

    # Unknowns: the slopes v, auxiliary u, and t; minimise t subject to polar(-(g + rows v)) <= t.
    constraints = penalty.polar_inequalities(rows, g)
    if constraints is None:
        raise ValueError(
            f"{kinks.size} samples are at a kink of {type(loss).__name__} where {penalty.name} starts, and the smallest polar "
            "over their subgradients is not a linear program. Jitter b slightly, or use a smooth loss."
        )
    A_ub, b_ub, extra = constraints
    null = penalty.null_space(features)
    equalities = [np.r_[column @ rows, np.zeros(extra + 1)] for column in null.T]
    values = list(-null.T @ g)
    if balance is not None:
        equalities.append(np.r_[weight, np.zeros(extra + 1)])
        values.append(balance)
    bounds = [*zip(left, right, strict=True), *[(0.0, None)] * (extra + 1)]
    cost = np.zeros(kinks.size + extra + 1)
    cost[-1] = 1.0
    A_eq, b_eq = (np.array(equalities), np.array(values)) if equalities else (None, None)
    found = linprog(cost, A_ub=A_ub, b_ub=b_ub, A_eq=A_eq, b_eq=b_eq, bounds=bounds, method="highs")
    if found.status != 0:
        raise ValueError(
            f"The subgradients of {type(loss).__name__} at the penalty's null could not be balanced: {found.message}"
        )
    r[kinks] = weight * np.clip(found.x[: kinks.size], left, right)
    return float(found.fun), r


def _weighted_rows(loss: LinearModel, samples: np.ndarray, weight: np.ndarray) -> Any:
    """Rows of A times weights, as the columns of a sparse matrix."""
    return sparse.csc_array(loss.A.rows(samples).to_sparse().T @ sparse.diags_array(weight))
