"""Small and awkward tables: time beside the fastest peer at the same accuracy, and how many default fits are proven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from . import _kinked_peers as kinked
from . import _smooth_peers as smooth
from ._contest import Peer, contest
from ._tables import binary, classic, correlated, wide
from ._timing import Row, optional
from .exact import linear_programs

GAPS = (1e-4, 1e-8)
BRIEF: dict[str, Any] = {"gaps": GAPS, "limit": 5.0, "brief": GAPS, "must": 2.0}


def quantiles(name: str, A: np.ndarray, b: np.ndarray, tau: float, alpha: float) -> Iterator[Row]:
    from sklearn.linear_model import QuantileRegressor as Theirs

    from adagrad_diff.sklearn import QuantileRegressor

    def scikit_learn(problem: Any, tol: float, limit: float) -> np.ndarray:
        model = Theirs(quantile=tau, alpha=alpha).fit(A, b)
        return np.append(model.coef_, model.intercept_)

    def pinball_fn(problem: Any, tol: float, limit: float) -> np.ndarray:
        if alpha:  # half of the loss is the penalty's at the median
            solver = pinball.get_solver("lasso", lambda_=2 * len(b) * alpha, eps=tol)
            x = solver.solve(np.column_stack([np.ones(len(b)), A]), b, tau).coefficients
            return np.append(x[1:], x[0])
        model = pinball.QuantileRegressor(tau, solver_options={"eps": tol}).fit(A, b)
        return np.append(model.coef_, model.intercept_)

    def pinball_br(problem: Any, tol: float, limit: float) -> np.ndarray:
        model = pinball.QuantileRegressor(tau, "br").fit(A, b)
        return np.append(model.coef_, model.intercept_)

    peers, pinball = linear_programs(), optional("pinball")
    if len(b) < 1000:
        peers["scikit-learn"] = Peer(scikit_learn, (1e-8,))
        if optional("statsmodels"):
            peers["statsmodels"] = Peer(kinked.statsmodels_irls, (1e-2, 1e-4, 1e-6))
        if pinball is not None:
            peers["Frisch-Newton"] = replace(peers["Frisch-Newton"], bare=True)
            if tau == 0.5 or not alpha:
                peers["pinball, fn"] = Peer(pinball_fn, (1e-2, 1e-4, 1e-6, 1e-9))
            if not alpha:
                peers["pinball, br"] = Peer(pinball_br, (1e-8,))
    yield from contest(
        f"quantile {tau}, alpha {alpha:.2g}, {name}",
        kinked.quantile(A, b, tau, alpha),
        lambda gap: QuantileRegressor(quantile=tau, alpha=alpha, tol=gap).fit(A, b),
        peers,
        **BRIEF,
    )


def awkward() -> Iterator[Row]:
    """Correlated columns; many more columns than samples."""
    if optional("sklearn"):
        for tau in (0.5, 0.8):
            yield from quantiles("correlated 2000 x 200", *correlated(2000, 200), tau, 0.01)
        for alpha in (0.1, 0.01):
            yield from quantiles("40 x 800", *wide(), 0.5, alpha)


def classics() -> Iterator[Row]:
    """Without a penalty, and with a tenth of the one that leaves nothing."""
    if not optional("sklearn"):
        return
    from adagrad_diff import L1, Quantile, critical_lam

    for name, (A, b) in classic().items():
        critical = critical_lam(Quantile(A, b, tau=0.5, intercept=True), L1(1.0))
        for alpha in (0.0, 0.1 * critical):
            yield from quantiles(f"{name} {A.shape[0]} x {A.shape[1]}", A, b, 0.5, alpha)


def machines() -> Iterator[Row]:
    """Support vector machines on scaled breast_cancer, C = 1. liblinear penalises its intercept: it takes part without one."""
    if not optional("sklearn"):
        return
    from sklearn.svm import SVC
    from sklearn.svm import LinearSVC as Liblinear

    from adagrad_diff.sklearn import LinearSVC, SparseSVC

    A, b = binary()["breast_cancer scaled"]
    alpha = 1 / len(b)
    clarabel = (
        {"Clarabel": Peer(kinked.clarabel_dual, (1e-4, 1e-6, 1e-8, 1e-10))}
        if optional("clarabel")
        else {}
    )
    yield from contest(
        "SparseSVC, breast_cancer scaled",
        kinked.hinge(A, b, l1=alpha),
        lambda gap: SparseSVC(tol=gap).fit(A, b),
        linear_programs() | clarabel,
        **BRIEF,
    )

    def libsvm(problem: Any, tol: float, limit: float) -> np.ndarray:
        model = SVC(kernel="linear", C=1.0, tol=tol, cache_size=500).fit(A, b)
        return np.append(model.coef_, model.intercept_)

    yield from contest(
        "LinearSVC (hinge), breast_cancer scaled",
        kinked.hinge(A, b, l2=alpha),
        lambda gap: LinearSVC(loss="hinge", tol=gap).fit(A, b),
        {"libsvm": Peer(libsvm, smooth.TOLERANCES[:10])} | clarabel,
        **BRIEF,
    )

    def liblinear(problem: Any, tol: float, limit: float) -> np.ndarray:
        options: dict[str, Any] = {
            "loss": "hinge",
            "dual": True,
            "fit_intercept": False,
            "max_iter": 1_000_000,
            "random_state": 0,
        }
        return Liblinear(C=1.0, tol=tol, **options).fit(A, b).coef_.ravel()

    yield from contest(
        "LinearSVC (hinge), no intercept, breast_cancer scaled",
        kinked.hinge(A, b, l2=alpha, intercept=False),
        lambda gap: LinearSVC(loss="hinge", fit_intercept=False, tol=gap).fit(A, b),
        {"liblinear": Peer(liblinear, smooth.TOLERANCES[:8])} | clarabel,
        **BRIEF,
    )


class Kernel:
    """A kernel machine with a bias: x is the weights of the samples, then the bias."""

    def __init__(self, K: np.ndarray, b: np.ndarray, alpha: float):
        self.K, self.b, self.alpha = K, b, alpha

    def value(self, x: np.ndarray) -> float:
        z = self.K @ x[:-1]
        return float(
            np.maximum(0.0, 1.0 - self.b * (z + x[-1])).mean() + 0.5 * self.alpha * (x[:-1] @ z)
        )

    def read(self, model: Any) -> np.ndarray:
        x = np.zeros(len(self.b) + 1)
        x[model.support_] = model.dual_coef_.ravel()
        x[-1] = float(np.ravel(model.intercept_)[0])
        return x


def kernels() -> Iterator[Row]:
    """With a bias, beside libsvm. C = 1, the kernel and its gamma are the defaults of both."""
    if not optional("sklearn"):
        return
    from sklearn.datasets import make_moons
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.svm import SVC

    from adagrad_diff.sklearn import KernelSVC

    moons, side = make_moons(500, noise=0.2, random_state=0)
    for name, A, b in (
        ("breast_cancer scaled", *binary()["breast_cancer scaled"]),
        ("moons 500", moons, 2.0 * side - 1),
    ):
        problem = Kernel(rbf_kernel(A, gamma=1 / (A.shape[1] * A.var())), b, 1 / len(b))
        peers = {
            "SVC": Peer(
                lambda problem, tol, limit: problem.read(SVC(tol=tol, cache_size=500).fit(A, b)),
                smooth.TOLERANCES[:10],
            )
        }
        yield from contest(
            f"KernelSVC with a bias, {name}",
            problem,
            lambda gap: KernelSVC(kernel="rbf", fit_intercept=True, tol=gap).fit(A, b),
            peers,
            **BRIEF,
            read=problem.read,
        )


def smooth_ones() -> Iterator[Row]:
    """Lasso, ridge, several classes."""
    if not optional("sklearn"):
        return
    from sklearn.datasets import load_diabetes, load_digits
    from sklearn.linear_model import Ridge

    from adagrad_diff.sklearn import Lasso, LinearRegressor, LogisticRegression

    from .exact import regression

    A, b = regression(2000, 200, 20)
    for alpha in (0.1, 0.01):
        yield from contest(
            f"Lasso, alpha {alpha}, 2000 x 200",
            smooth.Smooth(A, b, "squared", l1=alpha),
            lambda gap: Lasso(alpha=alpha, tol=gap).fit(A, b),
            smooth.lassos() if optional("celer") and optional("skglm") else {},
            **BRIEF,
        )

    def ridge(solver: str) -> Peer:
        return smooth.peer(
            lambda problem, tol: Ridge(alpha=len(problem.b) * problem.l2, solver=solver, tol=tol),
            (1e-10,),
        )

    diabetes = load_diabetes(return_X_y=True, scaled=False)
    for name, table in (("diabetes", diabetes), ("2000 x 200", (A, b))):
        yield from contest(
            f"LinearRegressor(), {name}",
            smooth.Smooth(*table, "squared", l2=0.01),
            lambda gap: LinearRegressor(tol=gap).fit(*table),
            {f"Ridge, {solver}": ridge(solver) for solver in ("cholesky", "svd")},
            **BRIEF,
        )
    images, digit = load_digits(return_X_y=True)
    yield from contest(
        "LogisticRegression(), digits, 10 classes",
        smooth.Smooth(images / 16, digit, "multinomial", l2=1 / len(digit)),
        lambda gap: LogisticRegression(tol=gap).fit(images / 16, digit),
        {solver: smooth.logistic(solver) for solver in ("lbfgs", "newton-cholesky", "newton-cg")},
        **BRIEF,
    )


CASES = [awkward, classics, machines, kernels, smooth_ones]
