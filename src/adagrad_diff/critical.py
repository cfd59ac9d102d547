"""The strength at which a penalty takes over: where its null, such as x = 0, becomes the solution."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _check, kernels
from .losses import LinearModel, Loss, Quadratic, as_loss
from .losses.matrix import Matrix
from .penalties import L1, FusedLasso, LInf, Penalty, Scaled, TotalVariation1D, as_penalty

FLAT = 1e-7  # how close, relatively, a sample must be to its kink to count as being there


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
        raise ValueError(f"{penalty.name} has no critical strength: it is neither a norm nor a seminorm, so it has no null.")
    if not isinstance(loss, LinearModel | Quadratic):
        raise ValueError("'loss' must be a loss of adagrad_diff.losses: the subgradients of a function are not known.")
    basis = _null(loss, penalty)
    x = _minimise_over(loss, basis)
    factor = _smallest_polar(loss, penalty, x)
    return factor * _unit(penalty)


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
    return Scaled(penalty, fraction * critical_lam(loss, penalty) / _unit(penalty))


def _unit(penalty: Penalty) -> float:
    """The strength of a penalty that has just one, else 1."""
    lam = np.ravel(penalty.l1 if isinstance(penalty, L1) else getattr(penalty, "lam", 1.0))
    return float(lam[0]) if lam.size == 1 and lam[0] > 0 else 1.0


def _null(loss: Loss, penalty: Penalty) -> np.ndarray:
    """A basis of where no penalty is paid: shape (coordinates of x, vectors)."""
    shape = loss.shape
    assert shape is not None
    size, columns = int(np.prod(shape)), []
    intercepts = size // shape[0] if loss.intercept else 0
    if "seminorm" in penalty.properties:
        if not isinstance(penalty, TotalVariation1D):
            raise ValueError(f"The null of {penalty.name} is not known.")
        columns.append(np.r_[np.ones(size - intercepts), np.zeros(intercepts)])
    columns += [np.eye(size)[:, size - k - 1] for k in range(intercepts)]
    return np.array(columns, dtype=np.float64).reshape(-1, size).T


def _minimise_over(loss: Any, basis: np.ndarray) -> np.ndarray:
    """The minimiser of f over the span of a few vectors, to full precision."""
    from scipy.optimize import brentq, minimize

    if basis.shape[1] == 0:
        return np.zeros(basis.shape[0])
    if isinstance(loss, LinearModel) and loss.jump is not None:
        return basis @ _minimise_piecewise_linear(loss, basis)

    def value_and_slope(c):
        f, g = loss.value_and_grad((basis @ c).reshape(loss.shape))
        return f, basis.T @ g.ravel().astype(np.float64)

    if basis.shape[1] == 1:
        slope = lambda c: value_and_slope(np.array([c]))[1][0]  # noqa: E731
        reach = 1.0
        while not slope(-reach) < 0 < slope(reach) and reach < 1e12:
            reach *= 4.0
        if not slope(-reach) < 0 < slope(reach):
            raise ValueError("The loss has no minimiser over the penalty's null (and the intercept): is there just one class?")
        return basis @ np.array([brentq(slope, -reach, reach, xtol=1e-15, rtol=1e-14)])
    found = minimize(value_and_slope, np.zeros(basis.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-12})
    at_zero = float(np.linalg.norm(value_and_slope(np.zeros(basis.shape[1]))[1]))
    if np.linalg.norm(found.jac) > 1e-7 * max(1.0, at_zero):
        raise ValueError("The loss could not be minimised over the penalty's null and the intercept.")
    return basis @ found.x


def _products(loss: LinearModel, columns: np.ndarray) -> np.ndarray:
    """A (with a column of ones for the intercept) times columns of x."""
    A: Matrix = loss.A
    features = A.shape[1]
    z = np.empty((A.shape[0], columns.shape[1]), loss.dtype)
    A.dot(np.ascontiguousarray(columns[:features], loss.dtype), 0, A.shape[0], z)
    return z.astype(np.float64) + (columns[features:] if loss.intercept else 0.0)


def _minimise_piecewise_linear(loss: LinearModel, basis: np.ndarray) -> np.ndarray:
    """min over c of the loss at basis c, as a linear program: each sample is the maximum of two lines that meet at z = b."""
    from scipy.optimize import linprog

    if loss.l2:
        raise ValueError("The critical strength of a loss with kinks, l2 > 0 and a free direction is not known in closed form.")
    Z, b = _products(loss, basis), loss.b.astype(np.float64)
    left, right = (np.asarray(s, dtype=np.float64) * np.ones(len(b)) for s in loss.jump(b, loss.theta))
    # t_j >= slope_j (z_j - b_j) for both slopes; the value at the kink is a constant.
    lines = np.concatenate([np.column_stack([s[:, None] * Z, -np.eye(len(b))]) for s in (left, right)])
    limits = np.concatenate([left * b, right * b])
    cost = np.r_[np.zeros(basis.shape[1]), loss.weight]
    found = linprog(cost, A_ub=lines, b_ub=limits, bounds=(None, None), method="highs")
    if found.status != 0:
        raise ValueError("The loss has no minimiser over the penalty's null (and the intercept): is there just one class?")
    return found.x[: basis.shape[1]]


def _smallest_polar(loss: Any, penalty: Penalty, x: np.ndarray) -> float:
    """min of polar(-g) over the subgradients g of f at x whose intercept part is zero."""
    if isinstance(loss, LinearModel) and loss.jump is not None:
        return _smallest_polar_at_kinks(loss, penalty, x)
    if isinstance(loss, LinearModel) and loss.smoothness is None and not loss.differentiable:
        raise ValueError(f"{type(loss).__name__} does not say where it has kinks: set 'smoothness' or 'differentiable'.")
    g = loss.value_and_grad(x.reshape(loss.shape))[1].astype(np.float64)
    return float(penalty.polar(-(g[:-1] if loss.intercept else g).ravel()))


def _smallest_polar_at_kinks(loss: LinearModel, penalty: Penalty, x: np.ndarray) -> float:
    """The same when samples may be at a kink, where any slope from left to right is as good as another."""
    from scipy.optimize import linprog

    samples, features = loss.A.shape
    z = _products(loss, x[:, None])[:, 0]
    kinks = np.flatnonzero((np.abs(z - loss.b) <= FLAT * (1.0 + np.abs(loss.b))) & (loss.weight > 0))
    r = z.astype(loss.dtype)
    kernels.residuals(loss.scalar)(r, loss.b, loss.weight, loss.theta, 0, samples, np.zeros(1))
    r[kinks] = 0  # their part is open
    g = np.zeros(features, loss.dtype)
    loss.A.tdot(r, 0, samples, g)
    g = g.astype(np.float64) + loss.l2 * x[:features]
    if kinks.size == 0:
        return float(penalty.polar(-g))

    weight = loss.weight[kinks].astype(np.float64)
    left, right = (np.asarray(s, dtype=np.float64) * np.ones(kinks.size) for s in loss.jump(loss.b[kinks], loss.theta))
    unit = np.zeros((loss.A.shape[0], kinks.size), loss.dtype)
    unit[kinks, np.arange(kinks.size)] = weight
    rows = np.zeros((loss.A.shape[1], kinks.size), loss.dtype)
    loss.A.tdot(unit, 0, loss.A.shape[0], rows)
    rows = rows.astype(np.float64)  # column k: what slope 1 at the k-th kink adds to g
    balance = -float(r.sum(dtype=np.float64)) if loss.intercept else None  # what the slopes must sum to, with weights
    if balance is not None and kinks.size == 1:
        return float(penalty.polar(-(g + rows[:, 0] * np.clip(balance / weight[0], left[0], right[0]))))

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
    return float(found.fun)


def _polar_as_inequalities(penalty: Penalty, rows: np.ndarray, g: np.ndarray) -> Any:
    """polar(-(g + rows v)) <= t as A (v, u, t) <= b with auxiliary u >= 0, or None if it is not polyhedral."""
    zeros = np.zeros((len(g), 0))
    if isinstance(penalty, L1):  # |y_i| <= t lam_i
        strength = penalty.l1 * np.ones(len(g))
        sides = [np.column_stack([s * rows, zeros, -strength]) for s in (1.0, -1.0)]
        return np.concatenate(sides), np.concatenate([-g, g]), 0
    if isinstance(penalty, LInf):  # |y_i| <= u_i, sum u <= t lam
        lam = float(np.ravel(penalty.lam)[0])
        sides = [np.column_stack([s * rows, -np.eye(len(g)), np.zeros(len(g))]) for s in (1.0, -1.0)]
        last = np.r_[np.zeros(rows.shape[1]), np.ones(len(g)), -lam]
        return np.concatenate([*sides, last[None]]), np.concatenate([-g, g, [0.0]]), len(g)
    if isinstance(penalty, TotalVariation1D) and not isinstance(penalty, FusedLasso):  # |partial sums of y| <= t lam
        lam = float(np.ravel(penalty.lam)[0])
        partial, sums = np.cumsum(rows, axis=0), np.cumsum(g)
        sides = [np.column_stack([s * partial, zeros, np.full(len(g), -lam)]) for s in (1.0, -1.0)]
        return np.concatenate(sides), np.concatenate([-sums, sums]), 0
    return None
