"""Compare reported duality gaps with exact ones on random problems.

    python tools/random_problems.py [COUNT=3000] [--seed S] [--jobs 2]
    python tools/random_problems.py --only SEED

Each problem is drawn from its seed: a loss, a penalty, a dtype, a storage format, ties, offsets up to
1e8, scales from 1e-100 to 1e100 and a tolerance. It is solved with the public interface only. The
objective is then evaluated with 70 digits at the returned x and at a reference point y, which an
interior-point method computes with 70 digits (tools/exact_reference.py). F(y) is never below the
optimum, so a reported gap smaller than F(x) - F(y) is wrong, however good or bad y is. The exit code
is 1 if there is a violation.
"""

from __future__ import annotations

import argparse
import decimal
import signal
import sys
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from multiprocessing import Pool
from typing import Any

import numpy as np
from scipy import sparse

import adagrad_diff as ad
from adagrad_diff import losses, penalties
from adagrad_diff import sklearn as estimators
from exact_reference import (
    CONTEXT,
    INF,
    SMOOTH,
    ZERO,
    Problem,
    Term,
    best_point,
    exact,
    norm,
    zeros,
)

SLOW_SECONDS = 20.0  # CPU time above which a run is listed as slow
COLUMNS = ("runs", "certified", "success", "errors", "sharp", "violations")
LIMIT_SECONDS = 120  # wall time after which a run is interrupted
BINARY = ("Hinge", "SquaredHinge", "Logistic", "KernelSVMDual")
LOSSES = ("LAD", "Quantile", "Hinge", "Squared", "Huber", "SquaredHinge", *SMOOTH)
# The first line is drawn in two of three problems.
COMMON = ("Zero", "L1", "ElasticNet", "Ridge", "Box", "NonNegative", "GroupL2")
OTHERS = (
    *("L2", "LInf", "SLOPE", "SparseGroupL2", "HuberPenalty", "TotalVariation1D", "FusedLasso"),
    *(
        "L1Ball",
        "L2Ball",
        "LInfBall",
        "Simplex",
        "HalfSpace",
        "Hyperplane",
        "Affine",
        "BoxHyperplane",
    ),
    *("Monotone", "Scaled", "Translated", "Precomposed", "Separable", "Unpenalised"),
)
ESTIMATORS = {
    **{"LADRegressor": ("LAD", "L1"), "QuantileRegressor": ("Quantile", "L1")},
    **{"LinearSVC": ("Hinge", "Ridge"), "SparseSVC": ("Hinge", "L1"), "Lasso": ("Squared", "L1")},
    **{"HuberRegressor": ("Huber", "Ridge"), "PoissonRegressor": ("Poisson", "Ridge")},
    **{"LogisticRegression": ("Logistic", "Ridge"), "ElasticNet": ("Squared", "ElasticNet")},
}


# ------------------------------------------------------------ random problems


def unit(i: int, n: int) -> np.ndarray:
    row = zeros(n)
    row[i] = Decimal(1)
    return row


def absolute(row: np.ndarray, strength: Any) -> Term:
    s = exact(strength)[()]
    return Term(row, low=-s, high=s)


def make_penalty(
    p: Problem, name: str, rng: Any, n: int, lam: float, ridge: float, radius: float
) -> Any:
    """Return a penalty of n coordinates and add its terms to the problem."""
    E = [unit(i, n) for i in range(n)]
    differences = [E[i + 1] - E[i] for i in range(n - 1)]
    each = lam * rng.choice([0.5, 1.0, 2.0], n) if rng.random() < 0.3 else np.full(n, lam)
    groups = rng.integers(0, max(1, n // 2), n)
    a, box = (
        rng.integers(1, 4, n) * rng.choice([-1.0, 1.0], n),
        (-radius * rng.integers(0, 3), radius),
    )
    positive = [Term(e, high=ZERO) for e in E]
    between = [Term(e, exact(end)[()], low=low, high=high) for e in E
               for end, low, high in ((box[0], -INF, ZERO), (box[1], ZERO, INF))]  # fmt: skip
    lam_, ridge_, radius_ = (exact(v)[()] for v in (lam, ridge, radius))
    squares = [Term(e, q=1 / ridge_) for e in E]
    if name in ("LInf", "L1Ball"):
        # Extra variables: a bound on all sizes, or one per coordinate.
        extra = 1 if name == "LInf" else n
        p.linear = np.append(p.linear, zeros(extra))
        size = len(p.linear)
        for i in range(n):
            top = unit(p.size + min(i, extra - 1), size)
            p.terms += [Term(top - sign * unit(i, size), high=ZERO) for sign in (1, -1)]
        if name == "LInf":
            p.linear[-1], p.lift = lam_, lambda x: np.array([max(abs(x))], object)
            return penalties.LInf(lam)
        p.terms.append(Term(sum(unit(p.size + i, size) for i in range(n)), radius_, low=ZERO))
        p.lift = abs
        return penalties.L1Ball(radius)
    if name == "SLOPE":
        # The sum of the k largest sizes is the minimum over s >= 0 of k s + sum_i max(|x_i| - s, 0).
        lams = lam * np.arange(n, 0, -1.0)
        drops = exact(lams) - np.append(exact(lams[1:]), ZERO)
        p.linear = np.append(p.linear, drops * np.arange(1, n + 1))
        size = len(p.linear)
        for k, i in np.ndindex(n, n):
            rows = [sign * unit(i, size) - unit(p.size + k, size) for sign in (1, -1)]
            p.terms += [Term(row, low=ZERO, high=drops[k]) for row in rows]
        p.terms += [Term(unit(p.size + k, size), high=ZERO) for k in range(n)]
        p.lift = lambda x: np.array(sorted(abs(x), reverse=True), object)
        return penalties.SLOPE(lams)
    if name == "L2Ball":
        p.ball = radius_
        return penalties.L2Ball(radius)
    if name == "Zero":
        return penalties.Zero() if rng.random() < 0.5 else None
    if name in ("GroupL2", "L2", "SparseGroupL2"):
        strength, labels = (
            (ridge_ if name == "SparseGroupL2" else lam_),
            groups if name != "L2" else groups * 0,
        )
        p.norms = [(np.flatnonzero(labels == g), strength) for g in np.unique(labels)]
    sizes, free, parts = [absolute(e, lam) for e in E], E[1:], [([0], penalties.L1(lam))]
    if n > 1:
        parts.append((list(range(1, n)), penalties.NonNegative()))
    bound = ridge_ * radius_
    make, terms = {
        "GroupL2": (lambda: penalties.GroupL2(lam, groups), []),
        "L2": (lambda: penalties.L2(lam), []),
        "SparseGroupL2": (lambda: penalties.SparseGroupL2(lam, ridge, groups), sizes),
        "L1": (
            lambda: penalties.L1(each if len(set(each)) > 1 else float(each[0])),
            [absolute(e, s) for e, s in zip(E, each, strict=True)],
        ),
        "ElasticNet": (lambda: penalties.ElasticNet(lam, ridge), sizes + squares),
        "Ridge": (lambda: penalties.Ridge(ridge), squares),
        "Box": (lambda: penalties.Box(*box), between),
        "NonNegative": (penalties.NonNegative, positive),
        "HuberPenalty": (
            lambda: penalties.HuberPenalty(ridge, radius),
            [Term(e, q=1 / ridge_, low=-bound, high=bound) for e in E],
        ),
        "TotalVariation1D": (
            lambda: penalties.TotalVariation1D(lam),
            [absolute(row, lam) for row in differences],
        ),
        "FusedLasso": (
            lambda: penalties.FusedLasso(lam, lam),
            [absolute(row, lam) for row in [*differences, *E]],
        ),
        "LInfBall": (
            lambda: penalties.LInfBall(radius),
            [Term(s * e, radius_, low=ZERO) for e in E for s in (1, -1)],
        ),
        "Simplex": (lambda: penalties.Simplex(radius), [*positive, Term(sum(E), radius_)]),
        "HalfSpace": (lambda: penalties.HalfSpace(a, radius), [Term(exact(a), radius_, low=ZERO)]),
        "Hyperplane": (lambda: penalties.Hyperplane(a, radius), [Term(exact(a), radius_)]),
        "Affine": (lambda: penalties.Affine(a[None, :], [radius]), [Term(exact(a), radius_)]),
        "BoxHyperplane": (
            lambda: penalties.BoxHyperplane(*box, abs(a), radius),
            [*between, Term(exact(abs(a)), radius_)],
        ),
        "Monotone": (penalties.Monotone, [Term(row, high=ZERO) for row in differences]),
        "Scaled": (lambda: penalties.Scaled(penalties.L1(lam / 4), 4.0), sizes),
        "Translated": (
            lambda: penalties.Translated(penalties.L1(lam), radius),
            [Term(e, radius_, low=-lam_, high=lam_) for e in E],
        ),
        "Precomposed": (
            lambda: penalties.Precomposed(penalties.L1(lam), 2.0),
            [Term(2 * e, low=-lam_, high=lam_) for e in E],
        ),
        "Separable": (lambda: penalties.Separable(parts), [sizes[0], *positive[1:]]),
        "Unpenalised": (
            lambda: penalties.Unpenalised(penalties.L1(lam), free=[0]),
            [absolute(e, lam) for e in free],
        ),
    }[name]
    p.terms += terms
    return make()


def data(rng: Any, kind: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return A and b, with ties, offsets and scales."""
    small = kind in ("Multinomial", "KernelSVMDual")
    N, d = int(rng.integers(1, 13 if small else 41)), int(rng.integers(1, 4 if small else 7))
    A = rng.standard_normal((N, d))
    if rng.random() < 0.3:
        A = np.round(A * 2) / 2
    if rng.random() < 0.15:
        A = A[rng.integers(0, N, N)]
    if d > 1 and rng.random() < 0.1:
        A[:, 1] = A[:, 0]
    if d > 1 and rng.random() < 0.1:
        A[:, 1] = A[:, 0] + 10 ** rng.uniform(-10, -4) * A[:, 1]
    b = A @ rng.standard_normal(d) + 10 ** rng.uniform(-3, 0.5) * rng.standard_normal(N)
    if rng.random() < 0.3:
        b = np.round(b)
    if rng.random() < 0.3:
        A = A + rng.integers(0, 2, d) * 10 ** rng.uniform(0, 8)
    if rng.random() < 0.3:
        b = b + 10 ** rng.uniform(0, 8)
    if rng.random() < 0.2:
        A = A * 10 ** rng.uniform(-3, 3, d)
    if rng.random() < 0.5:
        most = 100 if dtype == "float64" else 12
        A = A * 10 ** rng.uniform(-most, most) if rng.random() < 0.7 else A
        b = b * 10 ** rng.uniform(-most, most) if rng.random() < 0.7 else b
    if kind in BINARY:
        b = np.where(b > np.median(b) if rng.random() < 0.7 else b > 0, 1.0, -1.0)
    if kind == "Poisson":
        b = rng.poisson(np.exp(np.clip(rng.standard_normal(N), -3, 3))).astype(float)
    if kind == "Multinomial":
        b = rng.integers(0, 3, N)
    return A.astype(dtype), b if kind == "Multinomial" else b.astype(dtype)


def draw(seed: int) -> Problem:
    """Return the random problem of a seed."""
    rng = np.random.default_rng([seed, 29])
    mode = str(
        rng.choice(
            ["minimize", "eta", "gap", "near", "finish", "estimator"],
            p=[0.45, 0.1, 0.1, 0.1, 0.1, 0.15],
        )
    )
    kind = str(rng.choice(LOSSES))
    name = str(rng.choice(COMMON if rng.random() < 0.67 else OTHERS))
    estimator = str(rng.choice(list(ESTIMATORS)))
    if mode == "estimator":
        kind, name = ESTIMATORS[estimator]
    p = Problem(
        seed, kind, name, str(rng.choice(["float32", "float64"])), mode, 10 ** rng.uniform(-12, -4)
    )
    A, b = data(rng, kind, p.dtype)
    N, d = A.shape
    with np.errstate(all="ignore"):
        size_A, spread = (
            float(np.abs(A).max()) or 1.0,
            float(np.ptp(b)) / 2 or float(np.abs(b).max()) or 1.0,
        )
    slope = spread if kind == "Squared" else 1.0
    size_x = (spread if kind in ("LAD", "Quantile", "Squared", "Huber") else 1.0) / size_A
    theta = {
        "Quantile": float(rng.choice([0.1, 0.25, 0.5, 0.9])),
        "Huber": float(10 ** rng.uniform(-1, 1)) * spread,
    }
    if kind == "Huber":
        slope = theta["Huber"]
    lam, ridge, radius = (float(s * 10 ** rng.uniform(*ends)) for s, ends in (
        (slope * size_A, (-4, 0)), (slope * size_A / size_x, (-4, 1)), (size_x, (-1.5, 1))))  # fmt: skip
    if rng.random() < 0.1:
        lam, ridge = lam * 10 ** rng.uniform(-20, 20), ridge * 10 ** rng.uniform(-20, 20)
    if kind in ("Quadratic", "KernelSVMDual"):
        # Small integers times a power of two, so that the matrix is exactly positive semidefinite.
        B = rng.integers(-3, 4, (d if kind == "Quadratic" else N, int(rng.integers(1, 8)))).astype(
            float
        )
        scale = 2.0 ** rng.integers(-30, 31)
        A = (B @ B.T * scale).astype(p.dtype)
        size_x = 1.0 if kind == "KernelSVMDual" else 1.0 / scale
        b = (
            b
            if kind == "KernelSVMDual"
            else B @ rng.integers(-2, 3, B.shape[1]) + rng.integers(0, 2)
        ).astype(p.dtype)
        lam, ridge, radius = (
            10 ** rng.uniform(-3, 0.5),
            scale * 10 ** rng.uniform(-3, 1),
            size_x * 10 ** rng.uniform(-1, 1),
        )
        N, d = A.shape
    p.X = [np.asarray, sparse.csr_array, sparse.csc_array][int(rng.choice(3, p=[0.6, 0.2, 0.2]))](A)
    p.b = b if kind == "Multinomial" else exact(b)
    if kind == "KernelSVMDual":
        strength = 2.0 ** rng.integers(-4, 5)
        p.loss = losses.KernelSVMDual(p.X, b, strength)
        p.penalty, p.penalty_name = p.loss.box(), "box()"
        p.A, p.size, p.coefficients, p.linear = exact(A) / exact(strength)[()], N, N, zeros(N)
        for i in range(N):
            end = exact(float(b[i]) / N)[()]
            p.terms += [
                Term(unit(i, N), min(end, ZERO), high=ZERO),
                Term(unit(i, N), max(end, ZERO), low=ZERO),
            ]
        return p
    if kind == "Quadratic":
        p.loss, p.A, p.size, p.coefficients, p.linear = (
            losses.Quadratic(p.X, b),
            exact(A),
            d,
            d,
            zeros(d),
        )
        p.penalty = make_penalty(p, name, rng, d, lam, ridge, radius)
        return p
    intercept = bool(rng.random() < 0.6)
    options: dict[str, Any] = {"intercept": intercept}
    if mode != "estimator" and rng.random() < 0.2:
        options["l2"] = ridge * 10 ** rng.uniform(-3, 0)
    if mode != "estimator" and rng.random() < 0.25:
        options["sample_weight"] = rng.integers(0, 4, N) + (np.arange(N) == 0)
    if kind in theta:
        options["tau" if kind == "Quantile" else "delta"] = theta[kind]
    if kind == "Multinomial":
        options["classes"] = p.classes = 3
    p.loss = getattr(losses, kind)(p.X, b, **options)
    p.weight = exact(p.loss.weight)
    p.A = np.column_stack([exact(A), exact(np.ones(N))]) if intercept else exact(A)
    p.size, p.coefficients = p.A.shape[1] * p.classes, d * p.classes
    p.linear = zeros(p.size)
    tau = theta["Quantile"]
    for row, t, w in zip(p.A, p.b, p.weight, strict=True):
        if kind in SMOOTH or not w:
            continue
        zero = ZERO
        q, low, high = {
            "LAD": (zero, -w, w),
            "Quantile": (zero, -w * exact(tau)[()], w * exact(1.0 - tau)[()]),
            "Hinge": (zero, -w if t > 0 else zero, zero if t > 0 else w),
            "Squared": (1 / w, -INF, INF),
            "Huber": (1 / w, -w * exact(theta["Huber"])[()], w * exact(theta["Huber"])[()]),
            "SquaredHinge": (1 / (2 * w), -INF if t > 0 else zero, zero if t > 0 else INF),
        }[kind]
        p.terms.append(Term(row, t, q, low, high))
    if options.get("l2"):
        p.terms += [
            Term(unit(i, p.coefficients), q=1 / exact(options["l2"])[()])
            for i in range(p.coefficients)
        ]
    p.penalty = make_penalty(p, name, rng, p.coefficients, lam, ridge, radius)
    if mode == "estimator":
        p.estimator = make_estimator(estimator, p, lam, ridge, theta, intercept)
    return p


def make_estimator(
    name: str, p: Problem, lam: float, ridge: float, theta: dict[str, float], intercept: bool
) -> Any:
    """Return an estimator that solves the problem. The terms of its penalty replace the random ones."""
    p.terms = p.terms[: sum(w > 0 for w in p.weight)] if p.kind not in SMOOTH else []
    E = [unit(i, p.coefficients) for i in range(p.coefficients)]
    options: dict[str, Any] = {"tol": p.tol, "fit_intercept": intercept, "max_iter": 1000}
    ratio = 0.5
    if p.penalty_name in ("L1", "ElasticNet"):
        p.terms += [absolute(e, lam if p.penalty_name == "L1" else lam * ratio) for e in E]
    if p.penalty_name in ("Ridge", "ElasticNet"):
        p.terms += [
            Term(e, q=1 / exact(ridge if p.penalty_name == "Ridge" else lam * ratio)[()]) for e in E
        ]
    options["alpha"] = ridge if p.penalty_name == "Ridge" else lam
    if name == "QuantileRegressor":
        options["quantile"] = theta["Quantile"]
    if name == "HuberRegressor":
        options["epsilon"] = theta["Huber"]
    return getattr(estimators, name)(**options)


# ------------------------------------------------------------ runs and checks


@dataclass
class Outcome:
    """Results of one problem, as numbers and strings that can be sent between processes."""

    seed: int
    label: str
    kind: str
    dtype: str
    violations: list[tuple[str, str]] = field(default_factory=list)
    certified: bool = False
    success: bool = False
    refused: str = ""
    sharp: bool = False
    solver_seconds: float = 0.0
    seconds: float = 0.0
    details: str = ""


def run(p: Problem) -> tuple[np.ndarray, float, float, bool, bool]:
    """Return x, the reported objective and gap, success and certified."""
    rng = np.random.default_rng([p.seed, 30])
    if p.mode == "estimator":
        b = np.array([float(v) for v in p.b], p.dtype)
        model = p.estimator.fit(p.X, b)
        x = (
            np.append(np.ravel(model.coef_), np.ravel(model.intercept_))
            if p.size > p.coefficients
            else np.ravel(model.coef_)
        )
        return (
            x,
            float(model.objective_),
            float(model.dual_gap_),
            bool(model.converged_),
            model.stop_reason_ == "certified",
        )
    shape = p.loss.shape
    options: dict[str, Any] = {"tol": p.tol, "stop": "gap", "on_failure": "ignore"}
    if p.mode == "minimize":
        result = ad.minimize(p.loss, penalty=p.penalty, max_iter=2000, **options)
    elif p.mode == "eta":
        eta = float(10 ** rng.uniform(-2, 1))
        blocks = None if getattr(p.penalty, "accepts", "diagonal") == "diagonal" else "all"
        result = ad.minimize(
            p.loss, penalty=p.penalty, eta=eta, blocks=blocks, max_iter=300, **options
        )
    elif p.mode == "finish":
        result = ad.polish(p.loss, p.penalty, np.zeros(shape, p.dtype), tol=p.tol)
        return (
            result.x,
            float(result.fun),
            float(result.gap),
            bool(result.success),
            bool(result.success),
        )
    else:
        x = rng.standard_normal(shape)
        if p.mode == "near":
            x = ad.minimize(p.loss, penalty=p.penalty, max_iter=500, **options).x
            x = x * (1 + 10 ** rng.uniform(-16, -2) * rng.standard_normal(shape))
        x = x.astype(p.dtype)
        if p.penalty is not None:
            inside = x.reshape(-1)[: p.coefficients]
            x.reshape(-1)[: p.coefficients] = p.penalty.prox(inside, 1e-30)
        certificate = ad.duality_gap(p.loss, p.penalty or penalties.Zero(), x)
        return x, float(certificate.fun), float(certificate.gap), False, False
    return (
        result.x,
        float(result.fun),
        float(result.gap),
        bool(result.success),
        bool(result.certified),
    )


def tolerance_unit(p: Problem, F: Decimal) -> Decimal:
    """Return an upper bound on the objective that the tolerance is relative to."""
    x = zeros(p.size)
    if p.size > p.coefficients and p.classes == 1 and p.kind not in BINARY and len(set(p.b)) > 1:
        x[-1] = sorted(p.b)[len(p.b) // 2]
        if p.kind == "Poisson":
            x[-1] = (p.weight @ p.b).ln() if any(p.b) else ZERO
    return max(abs(F), Decimal("2e-6") * abs(p.value(x)))


def depends(p: Problem) -> bool:
    """Return whether columns depend on each other but for rounding."""
    A = p.A.astype(float)
    sizes = np.linalg.norm(A, axis=0)
    values = np.linalg.svd(A / np.where(sizes > 0, sizes, 1.0), compute_uv=False)
    return bool(values[-1] <= 100 * max(A.shape) * np.finfo(float).eps * values[0])


def check(seed: int) -> Outcome:
    """Draw, solve and check one problem."""
    decimal.setcontext(CONTEXT.copy())
    with np.errstate(all="ignore"):
        p = draw(seed)
    label = f"{p.kind} + {p.penalty_name}, {p.dtype}, {p.mode}, tol {p.tol:.1e}"
    outcome = Outcome(seed, label, p.kind, p.dtype)
    began = time.process_time()
    signal.alarm(LIMIT_SECONDS)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x, fun, gap, outcome.success, outcome.certified = run(p)
    except (ValueError, OverflowError, NotImplementedError) as error:
        outcome.refused = f"{type(error).__name__}: {error}"
        return outcome
    except Exception as error:  # any other exception is a crash
        place = traceback.extract_tb(error.__traceback__)[-1]
        outcome.violations.append(
            ("crash", f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})")
        )
        return outcome
    finally:
        signal.alarm(0)
        outcome.solver_seconds = time.process_time() - began
    note = outcome.violations.append
    if outcome.solver_seconds > SLOW_SECONDS:
        note(("slow", f"{outcome.solver_seconds:.0f} s of CPU time"))
    for warning in caught:
        if issubclass(warning.category, RuntimeWarning):
            note(("warning", f"{warning.message} ({warning.filename}:{warning.lineno})"))
            break
    if not np.isfinite(x).all():
        note(("x", "x is not finite")) if outcome.success or np.isfinite(gap) else None
        return outcome
    point = exact(x).reshape(-1)
    F = p.value(point)
    excess = max((term.excess(p.lifted(point)) for term in p.terms), default=ZERO)
    if p.ball is not None:
        excess = max(excess, norm(point[: p.coefficients]) / p.ball - 1)
    inside = excess <= Decimal("1e-5" if p.dtype == "float32" else "1e-8")
    try:
        y, outcome.sharp = best_point(p, point)
    except Exception as error:  # a defect of this tool must not end the whole run
        note(("no reference", f"{type(error).__name__}: {error}"))
        return outcome
    least = p.value(y)
    true = F - least
    outcome.details = f"F(x) {F:.17g}, fun {fun!r}, F(x) - F(y) {true:.6g}, gap {gap!r}, sharp {outcome.sharp}, excess {excess:.1g}"
    # An estimator may merge equal samples, so its weights are known up to their rounding only.
    slack = rounding = ZERO
    if p.mode == "estimator":
        here, there = p.sample_losses(point), p.sample_losses(y)
        eps = Decimal(float(np.finfo(p.dtype).eps))
        slack, rounding = eps * sum(abs(here - there)), eps * sum(abs(here))
    if np.isnan(gap) or gap < 0:
        note(("negative gap", f"gap {gap!r}"))
    elif np.isfinite(gap) and Decimal(gap) < true - slack - Decimal("1e-320"):
        note(("gap too small", f"gap {gap!r} < F(x) - F(y) = {true:.6g}, F(x) = {F:.6g}"))
    if np.isfinite(gap) and not inside and np.isfinite(fun):
        note(("infeasible", f"x violates a constraint by {excess:.2g} (relative)"))
    if outcome.certified and not np.isfinite(gap):
        note(("certified", f"certified with gap {gap}"))
    # A run without a certificate may end where a small subgradient shows little, for example if there
    # is no minimizer. It is judged only where the optimum is known, and not where columns depend on each
    # other but for the rounding of their entries: the exact optimum makes use of those rounding errors.
    known = outcome.certified or (outcome.sharp and not depends(p))
    if (
        outcome.success
        and known
        and true - slack > Decimal(p.tol) * tolerance_unit(p, F) * Decimal("1.000001")
    ):
        kind = "certified, not within tol" if outcome.certified else "success, not within tol"
        note(
            (
                kind,
                f"F(x) - F(y) = {true:.6g} is {true / tolerance_unit(p, F):.2g} of the objective",
            )
        )
    if np.isfinite(gap) and np.isfinite(fun):
        error, rounding = (
            abs(Decimal(fun) - F),
            rounding + Decimal("2e-15") * p.size_of_terms(point),
        )
        if error > Decimal(max(gap, 0.0)) + rounding:
            note(("fun", f"fun {fun!r} differs from F(x) = {F:.17g} by {error:.3g}, gap {gap:.3g}"))
    outcome.seconds = time.process_time() - began
    return outcome


def interrupted(*_: Any) -> None:
    raise TimeoutError(f"interrupted after {LIMIT_SECONDS} s")


def outcomes(seeds: range, jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(check, seeds)
        return
    with Pool(jobs, signal.signal, (signal.SIGALRM, interrupted)) as pool:
        yield from pool.imap(check, seeds, chunksize=5)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", nargs="?", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--only", type=int, help="repeat the problem of this seed and print details"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, interrupted)
    if options.only is not None:
        outcome = check(options.only)
        with np.errstate(all="ignore"):
            p = draw(options.only)
        print(
            outcome.label,
            p.loss,
            p.penalty,
            p.estimator,
            outcome.details,
            outcome.refused,
            sep="\n",
        )
        print(*(f"VIOLATION {kind}: {text}" for kind, text in outcome.violations), sep="\n")
        return int(bool(outcome.violations))
    found = []
    for outcome in outcomes(range(options.seed, options.seed + options.count), options.jobs):
        found.append(outcome)
        for kind, text in outcome.violations:
            print(f"--only {outcome.seed}  {kind}: {text}  [{outcome.label}]", flush=True)
    rows: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome in found:
        rows[outcome.kind, outcome.dtype].append(outcome)
    print(
        f"\n{'loss':14} {'dtype':8} {'runs':>5} {'certified':>9} {'success':>8} {'errors':>7} {'sharp':>6} {'violations':>10}"
    )
    for (kind, dtype), some in [*sorted(rows.items()), (("all", ""), found)]:
        flags = [(True, o.certified, o.success, o.refused, o.sharp, o.violations) for o in some]
        print(
            f"{kind:14} {dtype:8}",
            *(f"{sum(map(bool, column)):10}" for column in zip(*flags, strict=True)),
        )
    print(
        "\nviolations:",
        dict(Counter(kind for o in found for kind, _ in o.violations).most_common()),
    )
    print("errors:", dict(Counter(o.refused[:100] for o in found if o.refused).most_common(10)))
    print(
        f"CPU seconds: {sum(o.solver_seconds for o in found):.0f} in the package, {sum(o.seconds for o in found):.0f} in total"
    )
    return int(any(o.violations for o in found))


if __name__ == "__main__":
    sys.exit(main())
