"""Exact solvers for losses with one kink per sample, each in the strongest form known, all for one and the same problem.

    F(w, c) = 1/N sum_j max(lo_j (z_j - k_j), hi_j (z_j - k_j)) + l1 |w|_1 + l2/2 |w|^2,    z_j = <a_j, w> + c

Absolute values (k = b, -1, 1), quantiles (k = b, -tau, 1 - tau) and the hinge (k = b; -1, 0 for b = 1 and 0, 1 for b = -1) are
that. The dual, which linear programming likes better, has one variable per sample, the slope s_j between lo_j and hi_j:
minimise <k, s> where |A' s| <= N l1 and sum(s) = 0; w and c are the multipliers. A solver is a function (problem, tol, limit)
-> x; x is w, then c if there is one. It raises TooSlow if it was stopped after `limit` seconds.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._contest import TooSlow


@dataclass(frozen=True)
class Kinked:
    A: np.ndarray
    k: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    l1: float = 0.0
    l2: float = 0.0
    intercept: bool = True

    @property
    def rows(self) -> np.ndarray:
        """A, with a column of ones for the intercept."""
        return np.column_stack([self.A, np.ones(len(self.k))]) if self.intercept else self.A

    def value(self, x: np.ndarray) -> float:
        """F(x), summed in extended precision."""
        w = x[: self.A.shape[1]]
        t = self.A @ w + (x[-1] if self.intercept else 0.0) - self.k
        losses = np.maximum(self.lo * t, self.hi * t).astype(np.longdouble)
        return float(losses.mean() + self.l1 * np.abs(w).sum() + 0.5 * self.l2 * (w @ w))


def absolute(A: np.ndarray, b: np.ndarray, alpha: float) -> Kinked:
    return Kinked(A, b, np.full(len(b), -1.0), np.ones(len(b)), alpha)


def quantile(A: np.ndarray, b: np.ndarray, tau: float, alpha: float) -> Kinked:
    return Kinked(A, b, np.full(len(b), -tau), np.full(len(b), 1.0 - tau), alpha)


def hinge(
    A: np.ndarray, b: np.ndarray, l1: float = 0.0, l2: float = 0.0, intercept: bool = True
) -> Kinked:
    return Kinked(A, b, np.minimum(-b, 0.0), np.maximum(-b, 0.0), l1, l2, intercept)


# ---------------------------------------------------------------- HiGHS


def highs_dual(
    problem: Kinked, solver: str, crossover: str, tol: float, limit: float
) -> np.ndarray:
    """HiGHS by its own interface, on the dual form: N columns, one row per coefficient.

    solver: "ipm" or "simplex" (the wheel has no HiPO).
    """
    import highspy

    M, samples = problem.rows, len(problem.k)
    width, bound = M.shape[1], np.full(M.shape[1], samples * problem.l1)
    bound[problem.A.shape[1] :] = 0.0
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = samples, width
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = problem.k, problem.lo, problem.hi
    lp.row_lower_, lp.row_upper_ = -bound, bound
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.arange(samples + 1) * width
    lp.a_matrix_.index_ = np.tile(np.arange(width), samples)
    lp.a_matrix_.value_ = np.ascontiguousarray(M).ravel()
    return _highs(
        lp, {"solver": solver, "run_crossover": crossover, "ipm_optimality_tolerance": tol}, limit
    )[1][:width]


def highs_primal(problem: Kinked, solver: str, tol: float, limit: float) -> np.ndarray:
    """HiGHS on the primal form: A x - p + q = k with p, q >= 0, which cost hi and -lo, and w = its two parts."""
    import highspy
    from scipy import sparse

    M, samples, features = problem.rows, len(problem.k), problem.A.shape[1]
    free, eye = M[:, features:], sparse.eye_array(samples)
    rows = sparse.csc_array(sparse.hstack([problem.A, -problem.A, free, -eye, eye]))
    lp, inf = highspy.HighsLp(), highspy.kHighsInf
    lp.num_col_, lp.num_row_ = rows.shape[1], samples
    penalty = np.full(2 * features, samples * problem.l1)
    lp.col_cost_ = np.concatenate([penalty, np.zeros(free.shape[1]), problem.hi, -problem.lo])
    lower = np.zeros(rows.shape[1])
    lower[2 * features : 2 * features + free.shape[1]] = -inf
    lp.col_lower_, lp.col_upper_ = lower, np.full(rows.shape[1], inf)
    lp.row_lower_ = lp.row_upper_ = problem.k
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = (
        rows.indptr,
        rows.indices,
        rows.data,
    )
    x = _highs(lp, {"solver": solver, "ipm_optimality_tolerance": tol}, limit)[0]
    return np.concatenate(
        [x[:features] - x[features : 2 * features], x[2 * features : 2 * features + free.shape[1]]]
    )


def _highs(lp: Any, options: dict[str, Any], limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Values of the columns, multipliers of the rows."""
    import highspy

    solver = highspy.Highs()
    for name, value in ({"output_flag": False, "time_limit": float(limit)} | options).items():
        assert solver.setOptionValue(name, value) == highspy.HighsStatus.kOk, name
    solver.passModel(lp)
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kTimeLimit:
        raise TooSlow
    solution = solver.getSolution()
    return np.array(solution.col_value), np.array(solution.row_dual)


def linprog_dual(problem: Kinked, method: str, tol: float, limit: float) -> np.ndarray:
    """SciPy's HiGHS on the dual form, |A' s| <= N l1 as two inequalities."""
    from scipy.optimize import linprog

    A, features = problem.A, problem.A.shape[1]
    equal = problem.rows[:, features:].T if problem.l1 else problem.rows.T
    bounds, options = np.column_stack([problem.lo, problem.hi]), {"time_limit": limit}
    if "ipm" in method:
        options["ipm_optimality_tolerance"] = tol
    sides = (
        {"A_ub": np.vstack([A.T, -A.T]), "b_ub": np.full(2 * features, len(A) * problem.l1)}
        if problem.l1
        else {}
    )
    some = {"A_eq": equal, "b_eq": np.zeros(len(equal))} if len(equal) else {}
    found = linprog(problem.k, **sides, **some, bounds=bounds, method=method, options=options)
    if found.status == 1:
        raise TooSlow
    free, sides_of = found.eqlin.marginals, found.ineqlin.marginals
    return np.concatenate([sides_of[:features] - sides_of[features:], free]) if problem.l1 else free


# ---------------------------------------------------------------- quantreg's Fortran, as pinball-qr ships it


def frisch_newton(problem: Kinked, tol: float, limit: float) -> np.ndarray:
    """Frisch-Newton. The L1 norm is one more row per coefficient, as in R's rq.fit.lasso.

    (pinball's own LassoSolver gives these rows the loss of the samples: for tau != 1/2 its penalty is not symmetric. And its
    solvers copy A: here the routine is called directly.)
    """
    return _frisch_newton(
        problem.rows,
        problem.k,
        problem.lo,
        problem.hi,
        len(problem.k) * problem.l1,
        problem.intercept,
        tol,
    )


def _frisch_newton(
    X: Any, k: Any, lo: Any, hi: Any, lam: float, intercept: bool, eps: float
) -> np.ndarray:
    """The sum of losses + lam |w|_1, by the slopes hi - s in [0, hi - lo]; the routine wants to start at an interior point."""
    from pinball._native import rqfnb

    samples, width = X.shape
    features = width - intercept
    extra = features if lam else 0
    a = np.zeros((width, samples + extra), order="F")
    a[:, :samples] = X.T
    s = np.zeros(samples)
    if (
        not (lo < 0).all() or not (hi > 0).all()
    ):  # the hinge: as much slope down as up, and little of it
        s = np.where(lo < 0, -1 / np.count_nonzero(lo < 0), 1 / np.count_nonzero(hi > 0))
        s *= min(0.5 / np.abs(s).max(), 0.5 * lam / np.abs(X[:, :features].T @ s).max())
    start, upper, cost = hi - s, hi - lo, -k
    if extra:
        a[np.arange(features), samples + np.arange(features)] = 2 * lam
        start = np.concatenate([start, 0.5 + X[:, :features].T @ s / (2 * lam)])
        upper, cost = (
            np.concatenate([upper, np.ones(extra)]),
            np.concatenate([cost, np.zeros(extra)]),
        )
    work = np.zeros((samples + extra, 9), order="F")
    work[:, 0] = start
    small, count = np.zeros((width, width + 3), order="F"), np.zeros(3, np.int32)
    out = rqfnb(
        a,
        cost,
        a @ start,
        np.ones(samples + extra),
        upper,
        0.99995,
        eps,
        work,
        small,
        count,
        np.int32(0),
    )
    return -out[6][:, 0]


def preprocessed(problem: Kinked, tol: float, limit: float) -> np.ndarray:
    """Portnoy and Koenker's preprocessing around it, as pinball's "pfn"; rows of the penalty are never left out."""
    X, k, rng = problem.rows, problem.k, np.random.default_rng(0)
    (samples, width), lo, hi = X.shape, problem.lo, problem.hi
    lam, tau = samples * problem.l1, float(-lo[0] / (hi[0] - lo[0]))
    m = round(np.sqrt(width) * samples ** (2 / 3))
    while m < samples:
        part = rng.choice(samples, m, replace=False)
        x = _frisch_newton(
            X[part], k[part], lo[part], hi[part], lam * m / samples, problem.intercept, tol
        )
        L = np.linalg.cholesky(X[part].T @ X[part])
        band = np.maximum(1e-6, np.sqrt(np.einsum("ij,ij->i", Y := X @ np.linalg.inv(L).T, Y)))
        r, kept = k - X @ x, 0.8 * m
        edges = np.quantile(
            r / band,
            [
                max(1 / samples, tau - kept / 2 / samples),
                min(tau + kept / 2 / samples, 1 - 1 / samples),
            ],
        )
        below, above = r < band * edges[0], r > band * edges[1]
        for _ in range(4):
            middle = ~below & ~above
            globs = [side for side in (below, above) if side.any()]
            rows = np.vstack([X[middle], *(X[side].sum(axis=0) for side in globs)])
            kinks = np.concatenate([k[middle], [k[side].sum() for side in globs]])
            n = len(kinks)
            x = _frisch_newton(rows, kinks, lo[:n], hi[:n], lam, problem.intercept, tol)
            r = k - X @ x
            bad_below, bad_above = below & (r > 0), above & (r < 0)
            bad = np.count_nonzero(bad_below | bad_above)
            if not bad:
                return x
            if bad > 0.1 * kept:
                break
            below, above = below & ~bad_below, above & ~bad_above
        m *= 2
    return frisch_newton(problem, tol, limit)


def barrodale_roberts(problem: Kinked, tol: float, limit: float) -> np.ndarray:
    """quantreg's simplex method, for quantiles of small tables without a penalty."""
    from pinball.linear.solvers import get_solver

    assert not problem.l1
    tau = float(-problem.lo[0] / (problem.hi[0] - problem.lo[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a solution may not be unique
        return get_solver("br").solve(problem.rows, problem.k, tau).coefficients


# ---------------------------------------------------------------- Clarabel, statsmodels


def clarabel_dual(problem: Kinked, tol: float, limit: float) -> np.ndarray:
    """Clarabel on the dual form with g = A' s as variables: its sparse factorisation then has a d x d matrix to fill.

    With ridge g costs |g|^2 / (2 N l2).
    """
    import clarabel
    from scipy import sparse

    A, samples, features, width = problem.A, *problem.A.shape, problem.rows.shape[1]
    boxed = bool(problem.l1)
    if problem.l1 or problem.l2:
        equal = sparse.bmat([[sparse.csc_array(A.T), -sparse.eye_array(features)]])
        if problem.intercept:
            equal = sparse.vstack(
                [equal, sparse.csc_array(np.append(np.ones(samples), np.zeros(features))[None])]
            )
    else:
        equal = sparse.csc_array(problem.rows.T)
    size = equal.shape[1]
    bound = np.full(features if boxed else 0, samples * problem.l1)
    limited = sparse.eye_array(size, format="csc")[: samples + len(bound)]
    upper, lower = np.concatenate([problem.hi, bound]), np.concatenate([problem.lo, -bound])
    rows = sparse.csc_matrix(sparse.vstack([equal, limited, -limited]))
    right = np.concatenate([np.zeros(width), upper, -lower])
    curvature = np.zeros(size)
    if problem.l2:
        curvature[samples:] = 1 / (samples * problem.l2)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.time_limit = False, float(limit)
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    cones = [clarabel.ZeroConeT(width), clarabel.NonnegativeConeT(len(right) - width)]
    cost = np.concatenate([problem.k, np.zeros(size - samples)])
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(sparse.diags_array(curvature)), cost, rows, right, cones, settings
    )
    found = solver.solve()
    if "MaxTime" in str(found.status):
        raise TooSlow
    return -np.asarray(found.z[:width])


def statsmodels_irls(problem: Kinked, tol: float, limit: float) -> np.ndarray:
    """statsmodels' QuantReg: weighted least squares again and again. The L1 norm is two more rows per coefficient."""
    from statsmodels.regression.quantile_regression import QuantReg

    X, k, features = problem.rows, problem.k, problem.A.shape[1]
    if problem.l1:
        scale = float(
            problem.hi[0] - problem.lo[0]
        )  # two opposite rows cost (tau + 1 - tau) |w| in units of this
        more = np.zeros((features, X.shape[1]))
        more[np.arange(features), np.arange(features)] = len(k) * problem.l1 / scale
        X, k = np.vstack([X, more, -more]), np.concatenate([k, np.zeros(2 * features)])
    tau = float(-problem.lo[0] / (problem.hi[0] - problem.lo[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(QuantReg(k, X).fit(q=tau, p_tol=tol, max_iter=1000).params)
