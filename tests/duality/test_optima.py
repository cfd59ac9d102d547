"""Every loss with every penalty against cvxpy and scikit-learn: the optimum, and a gap that is never too small."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from sklearn import linear_model as sk

from adagrad_diff import L1, Box, BoxHyperplane, ElasticNet, NonNegative, Ridge, Simplex, minimize
from adagrad_diff.losses import (
    LAD,
    Hinge,
    Huber,
    KernelSVMDual,
    Logistic,
    Multinomial,
    Poisson,
    Quadratic,
    Quantile,
    Squared,
    SquaredHinge,
)
from pairwise import pairwise

SAMPLES, FEATURES, CLASSES = 30, 5, 3
RNG = np.random.default_rng(7)
A = RNG.standard_normal((SAMPLES, FEATURES))
SIGNAL = A @ [1.0, -0.5, 0.0, 0.25, 0.0] + 0.3
REAL = SIGNAL + 0.5 * RNG.standard_normal(SAMPLES)
LABELS = np.where(SIGNAL + RNG.standard_normal(SAMPLES) > 0, 1.0, -1.0)  # not separable
COUNTS = RNG.poisson(np.exp(0.5 * SIGNAL))
GROUPS = np.digitize(REAL, [-0.5, 0.8])
WEIGHTS = RNG.uniform(0.5, 2.0, SAMPLES)
Q = A.T @ A / SAMPLES

SMOOTH = {
    Logistic: (LABELS, {}, lambda z, b: cp.logistic(-cp.multiply(b, z))),
    SquaredHinge: (LABELS, {}, lambda z, b: cp.square(cp.pos(1 - cp.multiply(b, z)))),
    Squared: (REAL, {}, lambda z, b: cp.square(z - b) / 2),
    Huber: (REAL, {"delta": 0.3}, lambda z, b: cp.huber(z - b, 0.3) / 2),
    Poisson: (COUNTS, {}, lambda z, b: cp.exp(z) - cp.multiply(b, z)),
    Multinomial: (
        GROUPS,
        {},
        lambda z, b: cp.log_sum_exp(z, axis=1) - cp.sum(cp.multiply(np.eye(CLASSES)[b], z), axis=1),
    ),
}
NONSMOOTH = {
    Hinge: (LABELS, {}, lambda z, b: cp.pos(1 - cp.multiply(b, z))),
    LAD: (REAL, {}, lambda z, b: cp.abs(z - b)),
    Quantile: (REAL, {"tau": 0.8}, lambda z, b: cp.maximum(0.8 * (b - z), 0.2 * (z - b))),
}
LOSSES = SMOOTH | NONSMOOTH
PENALTIES = {
    "None": (None, lambda x: 0.0, lambda x: []),
    "L1": (L1(0.05), lambda x: 0.05 * cp.sum(cp.abs(x)), lambda x: []),
    "Ridge": (Ridge(0.2), lambda x: 0.1 * cp.sum_squares(x), lambda x: []),
    "ElasticNet": (
        ElasticNet(0.05, 0.2),
        lambda x: 0.05 * cp.sum(cp.abs(x)) + 0.1 * cp.sum_squares(x),
        lambda x: [],
    ),
    "Box": (Box(-0.1, 0.4), lambda x: 0.0, lambda x: [x >= -0.1, x <= 0.4]),
    "NonNegative": (NonNegative(), lambda x: 0.0, lambda x: [x >= 0]),
}


def solve(objective, constraints=()):
    """Return the optimal value, by an interior-point method."""
    problem = cp.Problem(cp.Minimize(objective), list(constraints))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="cvxpy")
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert problem.status == "optimal"
    return problem.value


def optimum(kind, penalty, *, sample_weight=None, l2=0.0, intercept=False):
    """Return the smallest objective, by a convex solver."""
    b, _, scalar = LOSSES[kind]
    _, value, constraints = PENALTIES[penalty]
    weight = np.ones(SAMPLES) if sample_weight is None else sample_weight
    columns = (CLASSES,) if kind is Multinomial else ()
    x = cp.Variable((FEATURES, *columns))
    z = A @ x
    if intercept:
        z = z + (np.ones((SAMPLES, 1)) @ cp.Variable((1, *columns)) if columns else cp.Variable())
    return solve(
        (weight / weight.sum()) @ scalar(z, b) + l2 / 2 * cp.sum_squares(x) + value(x),
        constraints(x),
    )


def check(result, best, smooth):
    """Assert that the last iterate is optimal if f is smooth, and that the best one is nearly so otherwise."""
    found, accuracy = (result.fun, 1e-6) if smooth else (result.fun_best, 3e-3)
    assert (
        -1e-7 * abs(best) <= found - best <= accuracy * abs(best)
    )  # below by no more than the solver's own accuracy
    assert result.gap >= result.fun - best - 1e-7 * abs(best)


OPTIONS = [{}, {"intercept": True}, {"sample_weight": WEIGHTS}, {"l2": 0.3}]
OPTIONS += [{"intercept": True, "sample_weight": WEIGHTS, "l2": 0.3}]


@pairwise(kind=LOSSES, penalty=PENALTIES, options=OPTIONS)
def test_every_loss_with_every_penalty(kind, penalty, options):
    b, parameters, _ = LOSSES[kind]
    loss, smooth = kind(A, b, **parameters, **options), kind in SMOOTH
    tol = 1e-6 if smooth else 3e-3
    rule = {
        "eta": 1.0 if smooth else 0.1,
        "max_iter": 6000 if penalty in ("None", "NonNegative") else 20000,
    }
    result = minimize(
        loss,
        penalty=PENALTIES[penalty][0],
        history=0,
        stop="gap",
        tol=tol,
        on_failure="ignore",
        **rule,
    )
    check(result, optimum(kind, penalty, **options), smooth)
    if penalty not in ("None", "NonNegative"):  # where a gap need not close
        assert result.success, result.message
        assert result.gap <= tol * abs(result.fun)
        assert result.bound == pytest.approx(result.fun - result.gap, rel=1e-12)
        assert "within" in result.message


def run(loss, penalty, eta, tol):
    result = minimize(
        loss, penalty=penalty, eta=eta, max_iter=20000, history=0, stop="gap", tol=tol
    )
    assert result.success, result.message
    return result


SETS = {
    "Simplex": (Simplex(), lambda x: 0.0, lambda x: [x >= 0, cp.sum(x) == 1]),
    "BoxHyperplane": (
        BoxHyperplane(-1.0, 1.0, np.ones(5), 0.3),
        lambda x: 0.0,
        lambda x: [x >= -1, x <= 1, cp.sum(x) == 0.3],
    ),
}


@pytest.mark.parametrize("penalty", ["L1", "Ridge", "ElasticNet", "Box", *SETS])
def test_quadratic(penalty):
    own, value, constraints = (PENALTIES | SETS)[penalty]
    x, c = cp.Variable(FEATURES), A.T @ REAL / SAMPLES
    best = solve(cp.quad_form(x, cp.psd_wrap(Q)) / 2 - c @ x + value(x), constraints(x))
    check(run(Quadratic(Q, c), own, 1.0, 1e-6), best, smooth=True)


def test_kernel_svm_with_a_bias():
    K = np.exp(-np.sum((A[:, None] - A) ** 2, axis=2) / FEATURES)
    dual = KernelSVMDual(K, LABELS, lam=0.1)
    box = dual.box()
    result = run(dual, BoxHyperplane(box.lower, box.upper, np.ones(SAMPLES), 0.0), 0.01, 1e-5)
    a = cp.Variable(SAMPLES)
    inside = [a >= box.lower, a <= box.upper, cp.sum(a) == 0]
    best = solve(cp.quad_form(a, cp.psd_wrap(K)) / 0.2 - LABELS @ a, inside)
    assert -1e-8 <= result.fun - best <= result.gap + 1e-8


@pytest.mark.parametrize("lam", [0.02, 0.5])
def test_kernel_svm_dual(lam):
    squared = np.sum((A[:, None] - A) ** 2, axis=2)
    for K in (np.exp(-squared / FEATURES), A @ A.T):
        dual = KernelSVMDual(K, LABELS, lam)
        result = minimize(dual, penalty=dual.box(), eta=0.02, max_iter=3000, history=0, stop="gap")
        assert np.all((LABELS * result.x >= 0) & (LABELS * result.x <= 1 / SAMPLES))
        a = cp.Variable(SAMPLES)
        inside = [cp.multiply(LABELS, a) >= 0, cp.multiply(LABELS, a) <= 1 / SAMPLES]
        check(
            result,
            solve(cp.quad_form(a, cp.psd_wrap(K)) / (2 * lam) - LABELS @ a, inside),
            smooth=True,
        )
    # With the linear kernel, the last of these, the dual optimum is minus the optimum of the linear machine.
    w = cp.Variable(FEATURES)
    primal = solve(
        cp.sum(cp.pos(1 - cp.multiply(LABELS, A @ w))) / SAMPLES + lam / 2 * cp.sum_squares(w)
    )
    assert -result.fun == pytest.approx(primal, rel=1e-6)
    h = A.T @ result.x / lam
    assert Hinge(A, LABELS, l2=lam).value_and_grad(h)[0] == pytest.approx(primal, rel=1e-4)


PEERS = [
    (
        Logistic,
        LABELS,
        L1(0.05),
        sk.LogisticRegression(
            C=1 / (0.05 * SAMPLES), l1_ratio=1.0, solver="saga", tol=1e-9, max_iter=10**5
        ),
    ),
    (
        Logistic,
        LABELS,
        Ridge(0.1),
        sk.LogisticRegression(C=1 / (0.1 * SAMPLES), tol=1e-10, max_iter=10**4),
    ),
    (
        Multinomial,
        GROUPS,
        Ridge(0.1),
        sk.LogisticRegression(C=1 / (0.1 * SAMPLES), tol=1e-10, max_iter=10**4),
    ),
    (Squared, REAL, L1(0.1), sk.Lasso(0.1, tol=1e-12)),
    (Squared, REAL, ElasticNet(0.04, 0.06), sk.ElasticNet(0.1, l1_ratio=0.4, tol=1e-12)),
    (Squared, REAL, Ridge(0.1), sk.Ridge(0.1 * SAMPLES)),
    (Poisson, COUNTS, Ridge(0.1), sk.PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=10**4)),
]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("kind", "b", "penalty", "peer"),
    PEERS,
    ids=[f"{p[0].__name__}-{p[3].__class__.__name__}" for p in PEERS],
)
def test_scikit_learn_finds_the_same_coefficients(kind, b, penalty, peer, intercept):
    peer = peer.set_params(fit_intercept=intercept).fit(A, b)
    result = minimize(
        kind(A, b, intercept=intercept), penalty=penalty, eta=1.0, max_iter=5000, history=0
    )
    coefficients, constant = (result.x[:-1], result.x[-1]) if intercept else (result.x, 0.0)
    np.testing.assert_allclose(
        coefficients.T, np.reshape(peer.coef_, coefficients.T.shape), atol=1e-5
    )
    if kind is Multinomial:  # only differences of the constants matter
        constant, peer.intercept_ = (
            constant - np.mean(constant),
            peer.intercept_ - np.mean(peer.intercept_),
        )
    np.testing.assert_allclose(constant, np.squeeze(peer.intercept_), atol=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
def test_scikit_learn_finds_the_same_quantile(intercept):
    peer = sk.QuantileRegressor(
        quantile=0.8, alpha=0.05, fit_intercept=intercept, solver="highs"
    ).fit(A, REAL)
    loss = Quantile(A, REAL, tau=0.8, intercept=intercept)
    theirs = np.append(peer.coef_, peer.intercept_)[: loss.shape[0]]
    best = loss.value_and_grad(theirs)[0] + 0.05 * np.abs(peer.coef_).sum()
    check(run(loss, L1(0.05), 0.1, 3e-3), best, smooth=False)
