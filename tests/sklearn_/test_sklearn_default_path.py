"""The default path of every estimator on the data that users have: right and proven, or warned about, or refused in a sentence.

Never silently wrong: an objective that is said to be certified is compared with what other solvers find.
"""

import warnings
from itertools import cycle

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("sklearn")

from sklearn.exceptions import ConvergenceWarning

import sklearn_twin as twin
from adagrad_diff import sklearn as door
from sklearn_data import NAMES, REGRESSORS

pytestmark = pytest.mark.peer


def table():
    """name -> (X, scores): regressors are given the scores, classifiers their signs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    noise = rng.standard_normal(40)
    score = X[:, 0] - 2 * X[:, 1] + 0.5 * noise
    units = X * [1e4, 1.0, 1e-3, 1e2] + [
        1e5,
        0.0,
        1.0,
        -1e3,
    ]  # raw: income, a ratio, a rate, a year
    with_zeros = sparse.csr_array(X)
    with_zeros.data[np.abs(with_zeros.data) < 1] = 0.0
    tiny = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])
    return {
        "plain": (X, score),
        "raw units": (units, 100.0 * score + 500.0),
        "collinear": (np.column_stack([X, X[:, 0], X[:, 0] + X[:, 1]]), score),
        "nearly collinear": (np.column_stack([X, X[:, 0] + 1e-9 * noise]), score),
        "a constant column": (np.column_stack([X, np.full(40, 7.0), np.zeros(40)]), score),
        "only constant columns": (np.ones((40, 2)), score),
        "one feature": (X[:, :1], score),
        "more features than samples": (rng.standard_normal((8, 30)), score[:8]),
        "one sample": (tiny[:1], np.array([2.0])),
        "two samples": (tiny[:2], np.array([1.0, -3.0])),
        "three samples": (tiny, np.array([1.0, -3.0, 2.0])),
        "three samples, one feature": (tiny[:, :1], np.array([-1.0, 2.0, 3.0])),
        "equal targets": (X, np.full(40, 3.0)),
        "targets of zero": (X, np.zeros(40)),
        "tied targets": (X, np.round(score)),
        "repeated rows": (np.repeat(X[:10], 4, axis=0), np.repeat(score[:10], 4)),
        "repeated rows, other targets": (np.repeat(X[:10], 4, axis=0), score),
        "noise-free": (X, X[:, 0] - 2 * X[:, 1] + 3.0),
        "far from zero": (X, score + 1e5),
        "very far from zero": (X, score + 1e9),
        "features far from zero": (X + 1e6, score),
        "large": (1e6 * X, 1e6 * score),
        "small": (1e-6 * X, 1e-6 * score),
        "outliers": (X, np.where(np.arange(40) == 3, 1e6, score)),
        "integers": (np.round(3 * X).astype(int), np.round(3 * score).astype(int)),
        "truth values": (X > 0, score > 0),
        "float32": (X.astype(np.float32), (score + 2000).astype(np.float32)),
        "sparse": (sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0)), score),
        "explicit zeros": (with_zeros, score),
        "one of a class": (X, np.where(np.arange(40) == 3, 1.0, -1.0)),
    }  # fmt: skip


DATA = table()


def targets(name, score):
    if name == "PoissonRegressor":
        return np.abs(np.round(score))
    return (
        score if name in REGRESSORS else np.where(np.asarray(score) > np.median(score), "yes", "no")
    )


def problem(model, X, y):
    """(loss, penalty, X, y) as in the formulas, in double precision; y has the numbers of the classes."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    name, alpha = type(model).__name__, model.alpha
    if name in REGRESSORS:
        y = np.asarray(
            y, dtype=np.float32 if model.coef_.dtype == np.float32 else np.float64
        ).astype(np.float64)
    else:
        y = np.where(y == model.classes_[1], 1.0, -1.0)
        alpha = 1 / (model.C * len(y)) if alpha is None else alpha
    loss = {
        "LADRegressor": twin.absolute,
        "QuantileRegressor": twin.pinball(0.5),
        "HuberRegressor": twin.huber(1.35),
        "PoissonRegressor": twin.poisson,
        "LogisticRegression": twin.logistic,
    }.get(name, twin.squared if name in REGRESSORS else twin.hinge)
    penalty = (
        twin.l1(alpha)
        if name in ("LADRegressor", "QuantileRegressor", "Lasso", "GroupLasso", "SparseSVC")
        else twin.ridge(alpha)
    )
    return loss, twin.elastic(alpha, 0.5) if name == "ElasticNet" else penalty, alpha, X, y


def reference(name, loss, penalty, alpha, X, y):
    """The least objective that other solvers find. They get centered data, which an intercept makes the same problem."""
    import sklearn.linear_model as peers
    from scipy.optimize import minimize
    from sklearn.svm import SVC

    X = X - X.mean(axis=0)
    shift = np.median(y) if name in REGRESSORS and name != "PoissonRegressor" else 0.0
    y = y - shift
    value = lambda x: loss(X @ x[:-1] + x[-1], y).mean() + penalty(x[:-1])
    if name in ("LADRegressor", "QuantileRegressor"):
        half, unit = (
            1 if name == "LADRegressor" else 2,
            np.abs(y).max() or 1.0,
        )  # HiGHS has an absolute tolerance
        return value(
            unit * twin.by_highs(X, y / unit, half * alpha, "absolute", at=True)
        )  # within which its optimum is wrong
    if name == "SparseSVC":
        return twin.by_highs(X, y, alpha, "hinge")
    if name == "PoissonRegressor":
        return twin.poisson_by_newton(X, y, alpha)
    if name in ("Lasso", "GroupLasso", "ElasticNet"):
        theirs = peers.ElasticNet(
            alpha, l1_ratio=0.5 if name == "ElasticNet" else 1.0, tol=1e-12, max_iter=10**5
        )
    elif name == "LinearRegressor":
        theirs = peers.Ridge(alpha * len(y), solver="svd")
    elif name == "LogisticRegression":
        theirs = peers.LogisticRegression(
            C=1 / (alpha * len(y)), tol=1e-12, max_iter=1000, solver="newton-cholesky"
        )
    elif name in ("LinearSVC", "LinearClassifier"):
        theirs = SVC(kernel="linear", C=1 / (alpha * len(y)), tol=1e-10, max_iter=10**6)
    else:  # Huber
        scale = np.where(X.any(axis=0), np.abs(X).max(axis=0), 1.0)
        scaled = lambda x: value(np.append(x[:-1] / scale, x[-1]))
        return minimize(scaled, np.zeros(X.shape[1] + 1), method="BFGS", options={"gtol": 1e-9}).fun
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # they may not converge either: an objective is an objective
        theirs.fit(X, y)
    return value(np.append(theirs.coef_, theirs.intercept_))


STRONG = [
    "ElasticNet",
    "LADRegressor",
    "Lasso",
    "PoissonRegressor",
    "QuantileRegressor",
]  # penalties, by default
ALL = ["plain", "raw units", "more features than samples", "float32"]  # for every estimator


def cases():
    """Give each estimator every fourth of the other data, because the estimators share their code.

    Estimators with two strengths of the penalty get half of them.
    """
    names = [name for name in NAMES if name != "KernelSVC"]
    rest = [data for data in DATA if data not in ALL]
    for k, name in enumerate(names):
        for turn, options in enumerate([{}, {"alpha": 1e-3}] if name in STRONG else [{}]):
            for data in (*ALL, *rest[(k + 2 * turn) % 4 :: 4]):
                yield pytest.param(name, options, data, id=f"{name}-{options}-{data}")


@pytest.mark.parametrize(("name", "options", "data"), list(cases()))
def test_right_or_warned_or_refused(name, options, data):
    X, score = DATA[data]
    y = targets(name, score)
    model = getattr(door, name)(max_iter=600, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if (
            name not in REGRESSORS and len(set(y)) == 1
        ):  # the only thing that is wrong with any of these
            with pytest.raises(ValueError, match="at least 2 classes"):
                model.fit(X, y)
            return
        model.fit(X, y)
    assert [w.category for w in caught] == [ConvergenceWarning] * (not model.converged_)
    assert model.converged_ == (model.stop_reason_ in ("certified", "subgradient"))
    assert np.isfinite(model.coef_).all()
    loss, penalty, alpha, A, b = problem(model, X, y)
    found = twin.objective(model, loss, penalty, A, b)
    optimum = reference(name, loss, penalty, alpha, A, b)
    eps = np.finfo(model.coef_.dtype).eps
    size = (
        np.abs(A) @ np.abs(model.coef_).ravel() + np.abs(b) + np.abs(model.intercept_)
    )  # of what cancels in a residual
    slope = 1 + np.sqrt(abs(found))
    rounding = 100 * eps * slope * size.max() + 1e-8 * abs(optimum)
    if np.isfinite(model.dual_gap_):
        assert found - model.dual_gap_ <= optimum + rounding
    if model.converged_:
        constant = np.median(b) if name in REGRESSORS and name != "PoissonRegressor" else 0.0
        scale = loss(np.full(len(b), constant), b).mean()
        assert found <= optimum + rounding + 1e-4 * max(abs(found), 1e-6 * scale)


@pytest.mark.parametrize(
    "data", [data for data in DATA if data != "nearly collinear"]
)  # whose best coefficients are 1e9
def test_least_squares(data):
    """A small subgradient means a small error; what is certified has the error that is asked for."""
    X, y = DATA[data]
    model = door.LinearRegressor(penalty=None).fit(X, y)
    assert model.converged_
    A = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    b = np.asarray(y, dtype=model.coef_.dtype).astype(np.float64)
    A, b = A - A.mean(axis=0), b - b.mean()
    optimum = twin.squared(A @ np.linalg.lstsq(A, b, rcond=None)[0], b).mean()
    rounding = 100 * np.finfo(model.coef_.dtype).eps * np.abs(y).max() * (1 + np.abs(b).max())
    allowed = model.tol * optimum if model.stop_reason_ == "certified" else 0.0
    assert model.objective_ <= optimum + max(1e-6 * twin.squared(0.0, b).mean(), allowed) + rounding


@pytest.mark.parametrize(("data", "intercept"), list(zip(DATA, cycle([False, True]), strict=False)))
def test_kernel_machines(data, intercept):
    """Against libsvm, which has an intercept; without one the optimum is not smaller."""
    from sklearn.svm import SVC

    X, score = DATA[data]
    y = targets("KernelSVC", score)
    if len(set(y)) == 1:
        pytest.skip("one class is no problem")
    model = door.KernelSVC(max_iter=1000, fit_intercept=intercept)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert [w.category for w in caught] == [ConvergenceWarning] * (not model.converged_)
    sign, values = np.where(y == model.classes_[1], 1.0, -1.0), []
    centered = (
        X - 1e6 if data == "features far from zero" else X
    )  # libsvm's kernel is not precise there
    for m, A in ((model, X), (SVC(tol=1e-10).fit(centered, y), centered)):
        h = m.decision_function(A).astype(np.float64) - m.intercept_
        coefficients = m.dual_coef_.toarray() if sparse.issparse(m.dual_coef_) else m.dual_coef_
        values.append(
            twin.hinge(h + m.intercept_, sign).mean()
            + 0.5 * float(coefficients[0] @ h[m.support_]) / len(y)
        )
    (found, optimum), rounding = values, 1000 * float(np.finfo(model.dual_coef_.dtype).eps)
    assert found == pytest.approx(model.objective_, abs=rounding)
    if intercept:
        assert found - model.dual_gap_ <= optimum + rounding + 1e-7
        assert found <= optimum + 1e-4 * found + rounding or not model.converged_
    else:
        assert optimum <= found + rounding + 1e-7


def test_kernels_far_from_zero():
    X, score = DATA["plain"]
    near = door.KernelSVC().fit(X, score > 0)
    for far, close in ((1e3, 1e-9), (1e6, 1e-6)):  # the numbers themselves are rounded
        model = door.KernelSVC().fit(X + far, score > 0)
        assert model.objective_ == pytest.approx(near.objective_, rel=close)
        np.testing.assert_allclose(
            model.decision_function(X + far), near.decision_function(X), atol=1e3 * close
        )
