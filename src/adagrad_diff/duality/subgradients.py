"""The smallest subgradient of a loss, measured by the polar of a penalty: at kinks there are many to choose from."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..linalg import kernels
from ..losses import LinearModel
from ..penalties import L1, FusedLasso, LInf, Penalty, TotalVariation1D


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
    if (
        "seminorm" in penalty.properties
    ):  # x is best among the constants, where g sums to zero but for rounding
        g = g - g.mean()
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
    kernels.residuals(loss.scalar)(r, loss.b, loss.weight, loss.theta, 0, samples, np.zeros(1))
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
    constraints = _polar_as_inequalities(penalty, rows, g)
    if constraints is None:
        raise ValueError(
            f"{kinks.size} samples are at a kink of {type(loss).__name__} where {penalty.name} starts, and the smallest polar "
            "over their subgradients is not a linear program. Jitter b slightly, or use a smooth loss."
        )
    A_ub, b_ub, extra = constraints
    equalities, values = [], []
    if balance is not None:
        equalities.append(np.r_[weight, np.zeros(extra + 1)])
        values.append(balance)
    if "seminorm" in penalty.properties:
        equalities.append(np.r_[rows.sum(axis=0), np.zeros(extra + 1)])
        values.append(-g.sum())
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


def _polar_as_inequalities(penalty: Penalty, rows: Any, g: np.ndarray) -> Any:
    """polar(-(g + rows v)) <= t as A (v, u, t) <= b with auxiliary u >= 0, or None if it is not polyhedral."""

    def stack(*blocks: Any) -> Any:
        return sparse.hstack([sparse.csc_array(block) for block in blocks])

    size = len(g)
    if isinstance(penalty, L1):  # |y_i| <= t lam_i
        strength = (penalty.l1 * np.ones(size))[:, None]
        return (
            sparse.vstack([stack(s * rows, -strength) for s in (1.0, -1.0)]),
            np.concatenate([-g, g]),
            0,
        )
    if isinstance(penalty, LInf):  # |y_i| <= u_i, sum u <= t lam
        lam = float(np.ravel(penalty.lam)[0])
        sides = [stack(s * rows, -sparse.eye_array(size), np.zeros((size, 1))) for s in (1.0, -1.0)]
        last = np.r_[np.zeros(rows.shape[1]), np.ones(size), -lam]
        return (
            sparse.vstack([*sides, sparse.csc_array(last[None])]),
            np.concatenate([-g, g, [0.0]]),
            size,
        )
    if isinstance(penalty, TotalVariation1D) and not isinstance(
        penalty, FusedLasso
    ):  # |partial sums of y| <= t lam
        lam = float(np.ravel(penalty.lam)[0])
        partial, sums = np.cumsum(rows.toarray(), axis=0), np.cumsum(g)
        sides = [stack(s * partial, np.full((size, 1), -lam)) for s in (1.0, -1.0)]
        return sparse.vstack(sides), np.concatenate([-sums, sums]), 0
    return None
