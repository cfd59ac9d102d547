"""The estimators with their defaults beside scikit-learn, HiGHS, Clarabel, skglm and celer: time and accuracy."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from adagrad_diff import datasets

from ._timing import Row, optional, peak_memory

DATA = os.environ.get("DATA", "../shared/data")
GOOD = 1e-4  # how close to the optimum, relatively, an answer must be to count


def once(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and answer; peers that take many seconds are called once."""
    begin = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = call()
    return perf_counter() - begin, answer


def best(call: Callable[[], Any], times: int = 5) -> tuple[float, Any]:
    """The same, of several calls after one to warm up."""
    call()
    runs = [once(call) for _ in range(times)]
    return min(seconds for seconds, _ in runs), runs[0][1]


def regression(samples: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Every feature matters, heavy tails."""
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((samples, features)), rng.standard_normal(features)
    return A, A @ w + rng.standard_t(3, samples)


def pinball(A: Any, b: np.ndarray, tau: float, alpha: float, w: np.ndarray, c: float) -> float:
    t = b - A @ w - c
    return float(np.mean(np.maximum(tau * t, (tau - 1) * t)) + alpha * np.abs(w).sum())


def quantile_program(
    A: np.ndarray, b: np.ndarray, tau: float, alpha: float, method: str
) -> tuple[np.ndarray, float]:
    """The linear program of L1 quantile regression, by HiGHS: x = p - q, and the two parts of the residual."""
    from scipy import sparse
    from scipy.optimize import linprog

    samples, features = A.shape
    one, eye = np.ones((samples, 1)), sparse.eye_array(samples)
    cost = np.concatenate([np.full(2 * features, alpha), [0, 0], np.full(samples, tau / samples)])
    cost = np.concatenate([cost, np.full(samples, (1 - tau) / samples)])
    rows = sparse.hstack([sparse.csr_array(A), -sparse.csr_array(A), one, -one, eye, -eye])
    x = linprog(cost, A_eq=rows, b_eq=b, bounds=(0, None), method=method).x
    return x[:features] - x[features : 2 * features], x[2 * features] - x[2 * features + 1]


def quantile_cone(
    A: np.ndarray, b: np.ndarray, tau: float, alpha: float
) -> tuple[np.ndarray, float]:
    """The same by Clarabel."""
    import cvxpy as cp

    w, c = cp.Variable(A.shape[1]), cp.Variable()
    t = b - A @ w - c
    cp.Problem(
        cp.Minimize(cp.sum(cp.maximum(tau * t, (tau - 1) * t)) / len(b) + alpha * cp.norm1(w))
    ).solve(solver="CLARABEL")
    return w.value, float(c.value)


def quantile() -> Iterator[Row]:
    """L1 quantile regression, 5000 x 200: scikit-learn makes a linear program of it. (PDCD_WS of skglm takes minutes.)"""
    if not optional("sklearn"):
        return
    from sklearn.linear_model import QuantileRegressor as Theirs

    from adagrad_diff.sklearn import LADRegressor, QuantileRegressor

    A, b = regression(5000, 200)
    for tau, alpha in ((0.5, 0.01), (0.8, 0.01)):
        ours = (
            LADRegressor(alpha=2 * alpha)
            if tau == 0.5
            else QuantileRegressor(quantile=tau, alpha=alpha)
        )
        name = f"{type(ours).__name__}, quantile {tau}, 5000 x 200"
        seconds, fitted = best(lambda: ours.fit(A, b))
        theirs, model = once(lambda: Theirs(quantile=tau, alpha=alpha).fit(A, b))
        optimum = pinball(A, b, tau, alpha, model.coef_, model.intercept_)
        found = pinball(A, b, tau, alpha, fitted.coef_, fitted.intercept_)
        peers = {"highs-ipm": once(lambda: quantile_program(A, b, tau, alpha, "highs-ipm"))[0]}
        if optional("cvxpy"):
            peers["Clarabel"] = once(lambda: quantile_cone(A, b, tau, alpha))[0]
        seconds = min(
            seconds, best(lambda: ours.fit(A, b))[0]
        )  # peers average over a minute: so do we
        yield Row(name, seconds, "QuantileRegressor", theirs, must=1 / 60)
        for peer, time in peers.items():
            yield Row("", seconds, peer, time, must=1 / 25 if time == min(peers.values()) else None)
        yield Row(
            "  objective above the optimum, relative",
            (found - optimum) / optimum,
            "allowed",
            GOOD,
            must=1,
            unit="",
        )
        yield Row("  certified", fitted.dual_gap_ / fitted.objective_, "allowed", GOOD, unit="")


def hinge(A: Any, b: np.ndarray, alpha: float, w: np.ndarray, c: float) -> float:
    return float(np.mean(np.maximum(0.0, 1.0 - b * (A @ w + c))) + alpha * np.abs(w).sum())


def sparse_svc() -> Iterator[Row]:
    """Hinge + L1, 5000 x 200: no exact solver in scikit-learn; the linear program by HiGHS, and SGD with its defaults."""
    if not optional("sklearn"):
        return
    from scipy import sparse
    from scipy.optimize import linprog
    from sklearn.linear_model import SGDClassifier

    from adagrad_diff.sklearn import SparseSVC

    A, z = regression(5000, 200)
    b, alpha, samples = np.sign(z), 0.01, 5000
    seconds, fitted = best(lambda: SparseSVC(alpha=alpha).fit(A, b))
    found = hinge(A, b, alpha, fitted.coef_.ravel(), float(fitted.intercept_[0]))
    signed = sparse.csr_array(b[:, None] * A)
    rows = sparse.hstack([-signed, signed, -b[:, None], b[:, None], -sparse.eye_array(samples)])
    cost = np.concatenate([np.full(400, alpha), [0, 0], np.full(samples, 1 / samples)])
    optimum = np.inf
    for method in ("highs-ipm", "highs-ds"):
        time, answer = once(
            lambda: linprog(
                cost, A_ub=rows, b_ub=-np.ones(samples), bounds=(0, None), method=method
            )
        )
        optimum = min(optimum, answer.fun)
        yield Row("SparseSVC, 5000 x 200", seconds, f"HiGHS ({method})", time, must=1 / 20)
    yield Row(
        "  objective above the optimum, relative",
        (found - optimum) / optimum,
        "allowed",
        GOOD,
        must=1,
        unit="",
    )
    sgd = SGDClassifier(loss="hinge", penalty="l1", alpha=alpha, random_state=0)
    time, _ = once(lambda: sgd.fit(A, b))
    theirs = hinge(A, b, alpha, sgd.coef_.ravel(), float(sgd.intercept_[0]))
    yield Row(
        "  the same, and SGDClassifier's",
        (found - optimum) / optimum,
        "SGDClassifier",
        (theirs - optimum) / optimum,
        unit="",
    )
    yield Row("  seconds", seconds, "SGDClassifier", time)


def log_loss(A: Any, b: np.ndarray, w: np.ndarray, c: float) -> float:
    return float(np.mean(np.logaddexp(0.0, -b * (A @ w + c))))


def logistic() -> Iterator[Row]:
    """Where others are at home: smooth problems. Who does not get within 1e-4 of the best objective is named so."""
    if not optional("sklearn"):
        return
    for name, penalty, alpha in (("a9a", "l1", 1e-3), ("news20", "l2", 1e-4)):
        data = datasets.load(name, DATA if os.path.isdir(DATA) else None, stand_in=True)
        A, b = data.A, np.where(data.b <= 10, 1.0, -1.0) if name == "news20" else data.b
        size = (lambda w: np.abs(w).sum()) if penalty == "l1" else (lambda w: 0.5 * float(w @ w))
        # Ours may have to compile first.
        runs = {
            key: best(call, 1) if key == "ours" else once(call)
            for key, call in classifiers(A, b, penalty, alpha).items()
        }
        found = {}
        for key, (_, model) in runs.items():
            w, c = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
            found[key] = log_loss(A, b, w, c) + alpha * size(w)
        optimum, ours = min(found.values()), runs.pop("ours")
        gap = (found["ours"] - optimum) / optimum
        yield Row(
            f"LogisticRegression {penalty}, {data.name}: above the best, relative",
            gap,
            "wanted",
            GOOD,
            unit="",
        )
        for key, (time, _) in runs.items():
            off = (found[key] - optimum) / optimum
            yield Row("", ours[0], key if off <= GOOD else f"{key} ({off:.0e} off)", time)


def classifiers(A: Any, b: np.ndarray, penalty: str, alpha: float) -> dict[str, Callable[[], Any]]:
    """Fits of every library, all with an unpenalised intercept where they can (liblinear cannot: it penalises it)."""
    from sklearn.linear_model import LogisticRegression as Theirs

    from adagrad_diff.sklearn import LogisticRegression

    C, ratio = 1 / (alpha * len(b)), 1.0 if penalty == "l1" else 0.0
    solvers = ("saga", "liblinear") if penalty == "l1" else ("lbfgs", "saga", "liblinear")
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: LogisticRegression(penalty=penalty, alpha=alpha).fit(A, b),
        **{
            s: lambda s=s: Theirs(l1_ratio=ratio, C=C, solver=s, max_iter=1000).fit(A, b)  # type: ignore[misc]
            for s in solvers
        },
    }
    if optional("skglm") and penalty == "l1":
        import skglm

        calls["skglm"] = lambda: skglm.SparseLogisticRegression(alpha=alpha).fit(A.tocsc(), b)
    if optional("celer") and penalty == "l1":
        import celer

        calls["celer (no intercept)"] = lambda: celer.LogisticRegression(
            C=C, fit_intercept=False
        ).fit(A.tocsc(), b)
    return calls


def scale() -> Iterator[Row]:
    """LAD on 1,000,000 x 100, float32: memory of a second fit, and time per sample against a thousandth of the samples."""
    if not optional("sklearn"):
        return
    from adagrad_diff.sklearn import LADRegressor

    rng = np.random.default_rng(0)
    A = rng.standard_normal((1_000_000, 100), dtype=np.float32)
    b = A[:, 0] - 2 * A[:, 1] + rng.standard_normal(len(A), dtype=np.float32)
    model = LADRegressor(alpha=0.01)
    small, _ = best(lambda: LADRegressor(alpha=0.01).fit(A[:10_000], b[:10_000]), 3)
    large, fitted = once(lambda: model.fit(A, b))
    yield Row(
        "LADRegressor, 1e6 x 100 float32, per sample",
        large / 1e6,
        "1e4 x 100, per sample",
        small / 1e4,
    )
    yield Row("  certified", fitted.dual_gap_ / fitted.objective_, "allowed", GOOD, unit="")
    yield Row(
        "  memory of a second fit (NumPy's share)",
        peak_memory(lambda: model.fit(A, b)),
        "A",
        A.nbytes,
        must=0.1,
        unit="B",
    )


CASES = [quantile, sparse_svc, logistic, scale]
