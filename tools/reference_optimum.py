"""Optima of the default runs by independent solvers: interior points (Clarabel) and simplex (HiGHS).

Needs cvxpy, and only when `tools/references.py` writes the file.
"""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np

from reference_cases import CLASSES, Problem, dense

TIGHT = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12) | {"accept_unknown": True}


def linear_loss(
    loss: str, z: Any, b: np.ndarray, w: np.ndarray, tau: float = 0.5, delta: float = 1.0
) -> Any:
    """Return the weighted mean loss of the predictions z."""
    if loss == "Multinomial":
        return w @ (cp.log_sum_exp(z, axis=1) - cp.sum(cp.multiply(np.eye(CLASSES)[b], z), axis=1))
    margin, residual = cp.multiply(b, z), z - b
    values = {
        "LAD": lambda: cp.abs(residual),
        "Quantile": lambda: cp.maximum(-tau * residual, (1 - tau) * residual),
        "Hinge": lambda: cp.pos(1 - margin),
        "SquaredHinge": lambda: cp.square(cp.pos(1 - margin)),
        "Squared": lambda: cp.square(residual) / 2,
        "Huber": lambda: cp.huber(residual, delta) / 2,
        "Logistic": lambda: cp.logistic(-margin),
        "Poisson": lambda: cp.exp(z) - margin,
    }
    return w @ values[loss]()


def penalty_terms(name: str, x: Any, p: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Return the penalty as an expression and constraints."""
    x = cp.vec(x, order="C")
    terms = {
        "Zero": lambda: 0.0,
        "L1": lambda: p["lam"] * cp.norm1(x),
        "Ridge": lambda: p["lam"] / 2 * cp.sum_squares(x),
        "ElasticNet": lambda: p["l1"] * cp.norm1(x) + p["l2"] / 2 * cp.sum_squares(x),
        "GroupL2": lambda: (
            p["lam"] * sum(cp.norm2(x[np.flatnonzero(p["groups"] == g)]) for g in set(p["groups"]))
        ),
        "FusedLasso": lambda: p["l1"] * cp.norm1(x) + p["tv"] * cp.norm1(cp.diff(x)),
        "SLOPE": lambda: sum(
            drop * cp.sum_largest(cp.abs(x), k + 1)
            for k, drop in enumerate(-np.diff(p["lams"], append=0.0))
        ),
    }
    constraints = {
        "Box": lambda: [x >= p["lower"], x <= p["upper"]],
        "NonNegative": lambda: [x >= 0],
        "Simplex": lambda: [x >= 0, cp.sum(x) == p["radius"]],
        "L1Ball": lambda: [cp.norm1(x) <= p["radius"]],
    }
    return terms.get(name, lambda: 0.0)(), constraints.get(name, list)()


def optimum(problem: Problem) -> tuple[float, float]:
    """Return the least objective that a solver reaches, and the accuracy to which that is the optimum.

    The accuracy is the distance to the solver's dual objective, at least 1e-12 relative.
    """
    (A, b, *rest), options = problem.loss_arguments()
    if problem.loss in ("Quadratic", "KernelSVMDual"):
        Q = A / rest[0] if rest else A
        x = y = cp.Variable(len(b))
        phi, constraints = penalty_terms(problem.penalty, x, problem.arguments)
        if problem.loss == "KernelSVMDual":
            constraints = [cp.multiply(b, x) >= 0, cp.multiply(b, x) <= 1 / len(b)]
        objective, scale = cp.quad_form(x, cp.psd_wrap(Q)) / 2 - b @ x + phi, np.ones(len(b))
    else:
        A = dense(A).astype(np.float64)
        mean = A.mean(axis=0) if problem.intercept else np.zeros(A.shape[1])
        scale = 1 / np.maximum(
            (A - mean).std(axis=0), 1e-300
        )  # the solver sees columns of unit size
        tail = (CLASSES,) if problem.loss == "Multinomial" else ()
        y, c = (
            cp.Variable((A.shape[1], *tail)),
            cp.Variable(tail) if problem.intercept else np.zeros(tail),
        )
        x = cp.diag(scale) @ y if tail else cp.multiply(scale, y)
        z = ((A - mean) * scale) @ y + (
            np.ones((len(A), 1)) @ cp.reshape(c, (1, CLASSES), order="C") if tail else c
        )
        w = options.pop("sample_weight", np.ones(len(A)))
        l2 = options.pop("l2", 0.0)
        options.pop("intercept", None)
        phi, constraints = penalty_terms(problem.penalty, x, problem.arguments)
        objective = (
            linear_loss(problem.loss, z, b, w / w.sum(), **options)
            + phi
            + l2 / 2 * cp.sum_squares(x)
        )
    program = cp.Problem(cp.Minimize(objective), constraints)

    def recovered() -> np.ndarray:
        """Return the solver's point in the coordinates of the problem."""
        point = (scale * y.value.T).T
        if problem.intercept:
            last = np.atleast_1d(c.value - mean @ point)
            point = np.concatenate([point, last[None] if problem.loss == "Multinomial" else last])
        return point

    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # a solver may stop short of 1e-12: the accuracy accounts for it
        data, chain, inverse = program.get_problem_data(cp.CLARABEL, solver_opts=TIGHT)
        answer = chain.solve_via_data(program, data, solver_opts=TIGHT)
        program.unpack_results(answer, chain, inverse)
        bound = program.value - (answer.obj_val - answer.obj_val_dual)
        points = [recovered()]
        if program.is_lp():
            program.solve(solver=cp.HIGHS)
            points.append(recovered())
    best = min(problem.objective(point) for point in points)
    return best, max(best - bound, 1e-12 * abs(best))
