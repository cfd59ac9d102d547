"""A minimiser of each of the paper's problems, accurate enough to be the x_star of the statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..losses import LAD, Hinge, Loss
from ..penalties import L1, Box, Penalty, Zero

if TYPE_CHECKING:
    from ..paper import Problem

SOLVED = 500  # free coordinates up to which Newton's equations are solved directly
NEWTON = 60  # steps at most


def solve(problem: Problem) -> np.ndarray:
    """A minimiser of F: a linear program for hinge and LAD, L-BFGS-B and then Newton's method on the free coordinates else.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff.paper import lad
    >>> problem = lad(samples=30, features=4, nonzeros=2, starts=1)
    >>> x = solve(problem)
    >>> F = lambda x: problem.loss.value_and_grad(x)[0] + problem.penalty.value(x)
    >>> bool(all(F(x + 1e-3 * e) > F(x) and F(x - 1e-3 * e) > F(x) for e in np.eye(4)))
    True
    """
    loss: Any = problem.loss
    if isinstance(loss, Hinge | LAD):
        return linear_program(loss, float(problem.penalty.l1[0]))  # type: ignore[attr-defined]
    return newton(loss, problem.penalty, quasi_newton(loss, problem.penalty, problem.x0s[:, 0]))


def linear_program(loss: Any, lam: float) -> np.ndarray:
    """min mean(t) + lam sum(p + q) over t, p, q >= 0, x = p - q: t is the hinge, or with s the two parts of the residual."""
    from scipy import sparse
    from scipy.optimize import linprog

    A, b = loss.A.to_dense(), loss.b
    N, d = A.shape
    eye, share = sparse.eye_array(N), np.full(N, 1.0 / N)
    if isinstance(loss, Hinge):  # t >= 1 - b <a, x>
        signed = sparse.csr_array(b[:, None] * A)
        found = linprog(
            np.concatenate([share, np.full(2 * d, lam)]),
            A_ub=sparse.hstack([-eye, -signed, signed]),
            b_ub=-np.ones(N),
            method="highs-ds",
        )
        x = found.x[N:]
    else:  # A x + t - s = b
        signed = sparse.csr_array(A)
        found = linprog(
            np.concatenate([share, share, np.full(2 * d, lam)]),
            A_eq=sparse.hstack([eye, -eye, signed, -signed]),
            b_eq=b,
            method="highs-ds",
        )
        x = found.x[2 * N :]
    return np.asarray(x[:d] - x[d:])


def quasi_newton(loss: Loss, penalty: Penalty, x0: np.ndarray) -> np.ndarray:
    """L-BFGS-B; the L1 norm is the sum of the positive and the negative part, each with a bound."""
    from scipy.optimize import minimize

    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-13, "maxcor": 30}
    if isinstance(penalty, L1):
        d = x0.size

        def split(z: np.ndarray) -> tuple[float, np.ndarray]:
            f, g = loss.value_and_grad(z[:d] - z[d:])
            return f + float(penalty.l1[0]) * z.sum(), np.concatenate([g, -g]) + penalty.l1[0]

        found = minimize(
            split,
            np.zeros(2 * d),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * (2 * d),
            options=options,
        )
        return np.asarray(found.x[:d] - found.x[d:])
    bounds = None
    if not isinstance(penalty, Zero):
        bounds = list(zip(penalty.lower, penalty.upper, strict=True))  # type: ignore[attr-defined]
    return np.asarray(
        minimize(
            loss.value_and_grad, 0 * x0, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        ).x
    )


def newton(loss: Loss, penalty: Penalty, x: np.ndarray) -> np.ndarray:
    """Newton's method on the coordinates that are not held at a kink or a bound, as long as F gets smaller.

    A fixed coordinate is let go when a prox step moves it. Curvature comes from differences of gradients: an error in it makes
    the method slower, not its result wrong. A ridge that follows the gradient copes with singular Hessians.
    """

    def objective(y: np.ndarray) -> float:
        return float(loss.value_and_grad(y)[0]) + float(penalty.value(y))

    best, L = objective(x), loss.lipschitz()
    step = np.full(x.size, 1.0 / L)
    for _ in range(NEWTON):
        g = loss.value_and_grad(x)[1]
        moved = np.empty_like(x)
        penalty.prox(x - step * g, step, out=moved)
        if isinstance(penalty, L1):
            free, slope = moved != 0, g + penalty.l1[0] * np.sign(moved)
        elif isinstance(penalty, Box):
            free, slope = (moved > penalty.lower) & (moved < penalty.upper), g
        else:
            free, slope = np.ones(x.size, bool), g
        if not free.any():
            break
        direction = np.where(free, 0.0, moved - x)
        direction[free] = -_newton_direction(loss, x, g, slope[free], free, 1e-14 * L)
        for t in 0.5 ** np.arange(30):
            trial = x + t * direction
            if isinstance(penalty, L1):
                trial[np.sign(trial) * np.sign(moved) < 0] = (
                    0.0  # a sign that changes stops at the kink
                )
            elif isinstance(penalty, Box):
                np.clip(trial, penalty.lower, penalty.upper, out=trial)
            if (value := objective(trial)) < best:
                break
        else:
            trial = moved
            if (value := objective(moved)) >= best:
                break
        x, best = trial, value
    return x


def _newton_direction(
    loss: Loss, x: np.ndarray, g: np.ndarray, slope: np.ndarray, free: np.ndarray, ridge: float
) -> np.ndarray:
    """Solve (H + ridge) p = slope for the free coordinates."""
    from scipy.sparse.linalg import LinearOperator, cg

    where = np.flatnonzero(free)

    def product(v: np.ndarray) -> np.ndarray:
        size = np.linalg.norm(v)
        if size == 0:
            return 0 * v
        h = 1e-5 * (1 + np.linalg.norm(x)) / size
        e = np.zeros_like(x)
        e[where] = h * v
        return np.asarray(
            (loss.value_and_grad(x + e)[1] - loss.value_and_grad(x - e)[1])[where] / (2 * h)
            + ridge * v
        )

    if where.size <= SOLVED:
        H = np.column_stack([product(e) for e in np.eye(where.size)])
        return np.asarray(np.linalg.lstsq((H + H.T) / 2, slope, rcond=1e-13)[0])
    operator = LinearOperator((where.size, where.size), matvec=product, dtype=x.dtype)
    return np.asarray(cg(operator, slope, rtol=1e-3, maxiter=200)[0])
