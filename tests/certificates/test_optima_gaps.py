"""Runs that end with a certified gap, against the optimum of a convex solver."""

import cvxpy as cp
import numpy as np
import pytest
from test_optima import LOSSES, PENALTIES, SMOOTH, WEIGHTS, A, Q, optimum, solve

from adagrad_diff import Box, BoxHyperplane, KernelSVMDual, Quadratic, Ridge, Simplex, minimize
from loss_zoo import named

PENALISED = ["L1", "Ridge", "ElasticNet", "Box"]
OPTIONS = [{}, {"intercept": True}, {"sample_weight": WEIGHTS}, {"l2": 0.3}, {"intercept": True, "l2": 0.3}]


def certified(kind, penalty, **options):
    """Run to a certified gap, and compare with the optimum of a convex solver."""
    b, parameters, _ = LOSSES[kind]
    loss = kind(A, b, **parameters, **options)
    best = optimum(kind, penalty, **options)
    smooth = kind in SMOOTH
    tol = 1e-6 if smooth else 3e-3
    result = minimize(
        loss, penalty=PENALTIES[penalty][0], eta=1.0 if smooth else 0.1, max_iter=20000, history=0, stop="gap", tol=tol
    )
    assert result.success, result.message
    assert result.gap <= tol * abs(result.fun)
    assert result.gap >= result.fun - best - 1e-8 * abs(best)
    assert result.bound == pytest.approx(result.fun - result.gap, rel=1e-12)
    assert "within" in result.message
    return result


@pytest.mark.parametrize("penalty", PENALISED)
@pytest.mark.parametrize("kind", LOSSES, ids=named)
def test_runs_end_with_a_small_gap(kind, penalty):
    certified(kind, penalty)


@pytest.mark.parametrize(  # each loss with each option and each penalty, though not with every pair
    ("kind", "options", "penalty"),
    [(kind, options, ["L1", "Box"][(i + k) % 2]) for i, kind in enumerate(LOSSES) for k, options in enumerate(OPTIONS[1:])],
)
def test_intercepts_weights_and_ridge_terms(kind, options, penalty):
    certified(kind, penalty, **options)


@pytest.mark.parametrize("penalty", [Box(-0.1, 0.4), Ridge(0.2), Simplex(), BoxHyperplane(-1.0, 1.0, np.ones(5), 0.3)], ids=str)
def test_quadratic(penalty):
    c = Q @ [1.0, -0.5, 0.3, 0.0, 0.0]
    result = minimize(Quadratic(Q, c), penalty=penalty, eta=1.0, max_iter=20000, history=0, stop="gap", tol=1e-6)
    assert result.success, result.message


def test_kernel_svm_with_a_bias():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((30, 2))
    b = np.where(points[:, 0] + 0.5 * rng.standard_normal(30) > 0, 1.0, -1.0)
    K = np.exp(-np.square(points[:, None] - points).sum(axis=2))
    dual = KernelSVMDual(K, b, lam=0.1)
    box = dual.box()
    penalty = BoxHyperplane(box._lower, box._upper, np.ones(30), 0.0)
    result = minimize(dual, penalty=penalty, eta=0.01, max_iter=20000, history=0, stop="gap", tol=1e-5)
    assert result.success, result.message
    alpha, root = cp.Variable(30), np.linalg.cholesky(K + 1e-12 * np.eye(30))
    best = solve(
        cp.sum_squares(root.T @ alpha) / 0.2 - alpha @ b, [alpha >= box._lower, alpha <= box._upper, cp.sum(alpha) == 0]
    )
    assert -1e-8 <= result.fun - best <= result.gap + 1e-8
