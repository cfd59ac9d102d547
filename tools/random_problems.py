"""Compare reported duality gaps with exact ones on random problems.

    python tools/random_problems.py [COUNT=3000] [--seed S] [--jobs 2]
    python tools/random_problems.py --only SEED

Each problem is drawn from its seed: a loss, a penalty, a dtype, a storage format, ties, offsets up to
1e8, scales from 1e-100 to 1e100 and a tolerance. It is solved with the public interface only. The
objective is then evaluated with 70 digits at the returned x and at a reference point y, which an
interior-point method computes with 70 digits. F(y) is never below the optimum, so a reported gap
smaller than F(x) - F(y) is wrong, however good or bad y is. The exit code is 1 if there is a violation.
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

CONTEXT = decimal.Context(prec=70, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
INF = Decimal("inf")
EXP_LIMIT = 1000  # logistic losses of larger margins are linear or zero to 70 digits and beyond
SLOW_SECONDS = 20.0  # CPU time above which a run is listed as slow
LIMIT_SECONDS = 120  # wall time after which a run is interrupted
SHARP = Decimal("1e-18")  # relative optimality gap below which the reference point counts as sharp
FEASIBLE = Decimal("1e-45")  # relative excess of a constraint up to which a reference point is used
SMOOTH = ("Logistic", "Poisson", "Multinomial", "Quadratic", "KernelSVMDual")
BINARY = ("Hinge", "SquaredHinge", "Logistic", "KernelSVMDual")
LOSSES = ("LAD", "Quantile", "Hinge", "Squared", "Huber", "SquaredHinge", *SMOOTH)
# The first line is drawn in two of three problems.
COMMON = ("Zero", "L1", "ElasticNet", "Ridge", "Box", "NonNegative", "GroupL2")
OTHERS = (
    *("L2", "LInf", "SLOPE", "SparseGroupL2", "HuberPenalty", "TotalVariation1D", "FusedLasso"),
    *("L1Ball", "L2Ball", "LInfBall", "Simplex", "HalfSpace", "Hyperplane", "Affine", "BoxHyperplane"),
    *("Monotone", "Scaled", "Translated", "Precomposed", "Separable", "Unpenalised"),
)
ESTIMATORS = {
    **{"LADRegressor": ("LAD", "L1"), "QuantileRegressor": ("Quantile", "L1")},
    **{"LinearSVC": ("Hinge", "Ridge"), "SparseSVC": ("Hinge", "L1"), "Lasso": ("Squared", "L1")},
    **{"HuberRegressor": ("Huber", "Ridge"), "PoissonRegressor": ("Poisson", "Ridge")},
    **{"LogisticRegression": ("Logistic", "Ridge"), "ElasticNet": ("Squared", "ElasticNet")},
}


def exact(values: Any) -> Any:
    """Return an array of decimals with the values of doubles, rounded to 70 digits."""
    numbers = [+Decimal(float(v)) for v in np.ravel(values)]
    return np.array(numbers, object).reshape(np.shape(values))


def zeros(*shape: int) -> np.ndarray:
    return np.full(shape, Decimal(0), object)


@dataclass
class Term:
    """A function of the linear form t = <row, x> - shift: the maximum of u t - q u^2 / 2 over low <= u <= high."""

    row: np.ndarray
    shift: Decimal = Decimal(0)
    q: Decimal = Decimal(0)
    low: Decimal = -INF
    high: Decimal = INF

    def value(self, x: np.ndarray) -> Decimal:
        """Return the value. The value of a constraint is zero, whether it is fulfilled or not."""
        t = self.row @ x[: len(self.row)] - self.shift
        if self.q:
            u = min(max(t / self.q, self.low), self.high)
            return u * t - self.q * u * u / 2
        end = self.high if t > 0 else self.low
        return t * end if end.is_finite() else Decimal(0)

    def excess(self, x: np.ndarray) -> Decimal:
        """Return how far outside a constraint x is, relative to the sizes of its terms."""
        products = self.row * x[: len(self.row)]
        t = sum(products) - self.shift
        outside = not (self.high if t > 0 else self.low).is_finite() and not self.q
        size = sum(abs(products)) + abs(self.shift)
        return abs(t) / size if outside and size else Decimal(0)


@dataclass
class Problem:
    """A random problem, both as objects of the package and as a sum of terms."""

    seed: int
    kind: str
    penalty_name: str
    dtype: str
    mode: str
    tol: float
    loss: Any = None
    penalty: Any = None
    estimator: Any = None
    X: Any = None
    b: Any = None
    A: Any = None  # with a column of ones for an intercept
    weight: Any = None
    coefficients: int = 0  # coordinates of x that are penalized
    size: int = 0  # coordinates of x
    classes: int = 1
    linear: Any = None  # a linear function of (x, extra variables)
    terms: list[Term] = field(default_factory=list)
    norms: list[tuple[np.ndarray, Decimal]] = field(default_factory=list)  # indices, strength
    lift: Any = None  # x -> the best values of the extra variables
    ball: Decimal | None = None  # the radius of an L2Ball

    def value(self, x: np.ndarray) -> Decimal:
        """Return F(x) of decimals, without constraints."""
        full = self.lifted(x)
        total = sum((term.value(full) for term in self.terms), self.linear @ full)
        total += sum((s * norm(x[index]) for index, s in self.norms), Decimal(0))
        return total + (self.smooth(x)[0] if self.kind in SMOOTH else 0)

    def size_of_terms(self, x: np.ndarray) -> Decimal:
        full = self.lifted(x)
        total = sum((abs(term.value(full)) for term in self.terms), abs(self.value(x)))
        if self.kind == "Poisson":
            total += self.weight @ abs(self.b * (self.A @ x))
        if self.kind in ("Quadratic", "KernelSVMDual"):
            total += abs(x) @ abs(self.b) + abs(x) @ abs(self.A) @ abs(x)
        return total

    def lifted(self, x: np.ndarray) -> np.ndarray:
        return x if self.lift is None else np.concatenate([x, self.lift(x[: self.coefficients])])

    def smooth(self, x: np.ndarray) -> tuple[Decimal, np.ndarray, np.ndarray]:
        """Return the value, gradient and Hessian of a smooth loss that is not a sum of terms."""
        A, b, w = self.A, self.b, self.weight
        if self.kind in ("Quadratic", "KernelSVMDual"):
            product = A @ x
            return x @ product / 2 - b @ x, product - b, A
        Z = A @ x.reshape(-1, self.classes)
        if self.kind == "Multinomial":
            P = Z - Z.max(axis=1)[:, None]
            P = np.vectorize(exponential, otypes=[object])(P)
            total = P.sum(axis=1)
            logs = np.array([v.ln() for v in total], object) + Z.max(axis=1)
            P = P / total[:, None]
            chosen = Z[np.arange(len(Z)), b]
            U = P.copy()
            U[np.arange(len(Z)), b] -= 1
            hessian = zeros(x.size, x.size)
            for a, p, weight in zip(A, P, w, strict=True):
                inner = weight * (np.diag(p) + Decimal(0) - np.outer(p, p))
                hessian += np.kron(np.outer(a, a), inner)
            return w @ (logs - chosen), (A.T @ (w[:, None] * U)).ravel(), hessian
        scalar = logistic if self.kind == "Logistic" else poisson
        parts = [scalar(z, t) for z, t in zip(Z[:, 0], b, strict=True)]
        value, first, second = (w * np.array(column, object) for column in zip(*parts, strict=True))
        return sum(value), A.T @ first, gram(A, second)


def norm(v: np.ndarray) -> Decimal:
    return (v @ v).sqrt()


def exponential(z: Decimal) -> Decimal:
    return z.exp() if z > -EXP_LIMIT else Decimal(0)


def logistic(z: Decimal, b: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    m = b * z
    if abs(m) > EXP_LIMIT:
        return max(-m, Decimal(0)), -b * (m < 0), Decimal(0)
    e = (-m).exp()
    return (1 + e).ln(), -b * e / (1 + e), e / (1 + e) ** 2


def poisson(z: Decimal, b: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    e = z.exp() if abs(z) < 10**6 else (INF if z > 0 else Decimal(0))
    return e - b * z, e - b, e


def gram(R: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return R' diag(d) R."""
    n = R.shape[1]
    H, scaled = zeros(n, n), R * d[:, None]
    for i in range(n):
        used = np.flatnonzero(R[:, i])
        H[i, : i + 1] = H[: i + 1, i] = scaled[used, i] @ R[used, : i + 1]
    return H


# ------------------------------------------------------------ the reference point


def solve(H: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve H X = right for a symmetric positive definite H, by elimination."""
    n, table = len(H), np.column_stack([H, right])
    for i in range(n):
        if not table[i, i]:
            continue
        for k in range(i + 1, n):
            if table[k, i]:
                table[k, i:] -= table[i, i:] * (table[k, i] / table[i, i])
    X = zeros(*right.shape)
    for i in reversed(range(n)):
        if table[i, i]:
            X[i] = (table[i, n:] - table[i, i + 1 : n] @ X[i + 1 :]) / table[i, i]
    return X


def reference(problem: Problem, x: np.ndarray, iterations: int = 90) -> tuple[np.ndarray, bool]:
    """Return a nearly optimal point and whether it is sharp, by an interior-point method.

    The method is Mehrotra's. Each term has a slope u with t - q u = above - below, above (high - u) = 0
    and below (u - low) = 0. Groups that are zero at x stay zero.
    """
    p = problem
    fixed = np.zeros(p.size, bool)
    for index, strength in p.norms:
        fixed[index] = bool(strength) and not any(x[index])
    keep = np.flatnonzero(np.append(~fixed, np.ones(len(p.linear) - p.size, bool)))
    variables = keep[keep < p.size]
    if not len(keep):
        return x, False
    full = np.array([np.append(term.row, zeros(len(p.linear) - len(term.row))) for term in p.terms], object)
    full = full.reshape(len(p.terms), len(p.linear))
    shift, q, low, high = (np.array([getattr(t, n) for t in p.terms], object) for n in ("shift", "q", "low", "high"))
    # Scale the columns and then the rows to a largest entry of one.
    sources = {"Multinomial": lambda: np.kron(p.A, np.array([[Decimal(1)] * p.classes], object))}
    sources |= dict.fromkeys(("Logistic", "Poisson"), lambda: p.A)
    root = lambda: np.array([[v.sqrt() for v in np.diag(p.A)]], object)  # noqa: E731
    sources |= dict.fromkeys(("Quadratic", "KernelSVMDual"), root)
    more = sources.get(p.kind, lambda: zeros(0, p.size))()
    data = np.vstack([full, np.column_stack([more, zeros(len(more), len(p.linear) - p.size)])])
    columns = np.array([max(abs(c), default=0) or Decimal(1) for c in data.T], object)[keep]
    R = full[:, keep] / columns
    rows = np.array([max(abs(r)) or Decimal(1) for r in R], object) if len(R) else zeros(0)
    R, shift, q, low, high = R / rows[:, None], shift / rows, q / rows**2, low * rows, high * rows
    linear = p.linear[keep] / columns
    upper, lower = np.array([v.is_finite() for v in high], bool), np.array([v.is_finite() for v in low], bool)
    start = p.lifted(x)[keep] * columns
    v = start if p.kind in SMOOTH or p.norms else start * 0
    slopes = [abs(s) for s in [*high[upper], *low[lower], *linear] if s]
    if p.kind in SMOOTH:
        slopes += [abs(s) for s in p.smooth(x)[1] / columns[: p.size] if s] if not fixed.any() else []
    unit_u = max(slopes, default=Decimal(1))
    u = np.array([(h + l) / 2 if a and b else h - unit_u if a else l + unit_u if b else Decimal(0)
                  for h, l, a, b in zip(high, low, upper, lower, strict=True)], object)  # fmt: skip
    t = R @ v - shift
    unit_t = max(abs(t), default=Decimal(1)) or Decimal(1)
    above = np.array([max(s, Decimal(0)) + unit_t if a else Decimal(0) for s, a in zip(t, upper, strict=True)], object)
    below = np.array([max(-s, Decimal(0)) + unit_t if a else Decimal(0) for s, a in zip(t, lower, strict=True)], object)
    tiny, count = Decimal("1e-30") * unit_t / unit_u, max(1, int(upper.sum() + lower.sum()))
    best, lowest, first_gap = (INF, x), -INF, Decimal(0)  # lowest: nearly a lower bound on the optimum
    if all(term.excess(p.lifted(x)) <= FEASIBLE for term in p.terms):
        best = (p.value(x), x)
    for iteration in range(iterations):
        point = zeros(len(p.linear))
        point[keep] = v / columns
        gradient, hessian = linear + (R.T @ u if len(R) else 0), zeros(len(keep), len(keep))
        m = len(variables)
        if p.kind in SMOOTH:
            _, g, h = p.smooth(point[: p.size])
            gradient[:m] += g[variables] / columns[:m]
            hessian[:m, :m] += h[np.ix_(variables, variables)] / np.outer(columns[:m], columns[:m])
        for index, strength in p.norms:
            if not fixed[index].any() and (length := norm(point[index])):
                places = np.searchsorted(keep, index)
                direction = point[index] / length
                gradient[places] += strength * direction / columns[places]
                inner = np.diag([Decimal(1)] * len(index)) - np.outer(direction, direction)
                inner = strength / length * inner / np.outer(columns[places], columns[places])
                hessian[np.ix_(places, places)] += inner
        up, down = np.where(upper, high - u, 1), np.where(lower, u - low, 1)
        primal = R @ v - shift - q * u - above + below
        gap = above @ up + below @ down if len(R) else Decimal(0)
        residual = abs(gradient) @ abs(v) + (abs(primal) @ abs(u) if len(R) else 0)
        value = p.value(point[: p.size])
        if iteration and all(term.excess(point) <= FEASIBLE for term in p.terms):
            lowest = max(lowest, value - gap - 1000 * residual)
            best = min(best, (value, point[: p.size]), key=lambda pair: pair[0])
            if gap + residual <= Decimal("1e-36") * (abs(value) or unit_t * unit_u):
                break
        if not all(s.is_finite() for s in gradient):
            break
        mu = gap / count
        D = q + above / up + below / down
        D = np.where(D < tiny, tiny, D)
        H = hessian + (gram(R, 1 / D) if len(R) else 0)
        for i in range(len(H)):
            H[i, i] += Decimal("1e-45") * max(H[i, i], unit_u / unit_t)
        sigma, cross_up, cross_down = Decimal(0), zeros(len(R)), zeros(len(R))
        for corrector in (False, True):
            drift_up = np.where(upper, (sigma * mu + cross_up) / up - above, 0)
            drift_down = np.where(lower, (sigma * mu - cross_down) / down - below, 0)
            e = (primal - drift_up + drift_down) / D
            dv = solve(H, (-gradient - (R.T @ e if len(R) else 0))[:, None])[:, 0]
            du = (R @ dv) / D + e if len(R) else u
            d_above, d_below = drift_up + above / up * du, drift_down + below / down * du * -1
            step = min(largest_step(above, d_above), largest_step(below, d_below))
            step = min(step, largest_step(up[upper], -du[upper]), largest_step(down[lower], du[lower]))
            if p.kind in ("Logistic", "Poisson", "Multinomial"):
                move = p.A @ scatter(dv / columns, keep, p.size).reshape(-1, p.classes)
                step = min(step, 2 / max(abs(move).max(), Decimal("1e-99")))
            if not corrector:
                after = (above + step * d_above) @ (up - step * du) + (below + step * d_below) @ (down + step * du)
                sigma = min(Decimal(1), max(Decimal(0), after / gap)) ** 3 if gap else Decimal(0)
                cross_up, cross_down = d_above * du, d_below * du
        first_gap = first_gap or gap or Decimal(1)
        step = min(Decimal(1), step * (1 - min(Decimal("0.01"), gap / first_gap)))
        v, u, above, below = v + step * dv, u + step * du, above + step * d_above, below + step * d_below
    return best[1], best[0] - lowest <= SHARP * max(abs(best[0]), Decimal("1e-9") * unit_t * unit_u)


def scatter(values: np.ndarray, places: np.ndarray, size: int) -> np.ndarray:
    result = zeros(max(size, int(places.max(initial=0)) + 1))
    result[places] = values
    return result[:size]


def largest_step(values: np.ndarray, changes: np.ndarray) -> Decimal:
    """Return the largest step of at most one (and a bit) that keeps values + step * changes nonnegative."""
    return min((-s / d for s, d in zip(values, changes, strict=True) if d < 0), default=Decimal(2))


# ------------------------------------------------------------ random problems


def unit(i: int, n: int) -> np.ndarray:
    row = zeros(n)
    row[i] = Decimal(1)
    return row


def absolute(row: np.ndarray, strength: Any) -> Term:
    s = exact(strength)[()]
    return Term(row, low=-s, high=s)


def make_penalty(p: Problem, name: str, rng: Any, n: int, lam: float, ridge: float, radius: float) -> Any:
    """Return a penalty of n coordinates and add its terms to the problem."""
    E = [unit(i, n) for i in range(n)]
    differences = [E[i + 1] - E[i] for i in range(n - 1)]
    each = lam * rng.choice([0.5, 1.0, 2.0], n) if rng.random() < 0.3 else np.full(n, lam)
    groups = rng.integers(0, max(1, n // 2), n)
    a, box = rng.integers(1, 4, n) * rng.choice([-1.0, 1.0], n), (-radius * rng.integers(0, 3), radius)
    positive = [Term(e, high=Decimal(0)) for e in E]
    between = [Term(e, exact(end)[()], low=low, high=high) for e in E
               for end, low, high in ((box[0], -INF, Decimal(0)), (box[1], Decimal(0), INF))]  # fmt: skip
    lam_, ridge_, radius_ = (exact(v)[()] for v in (lam, ridge, radius))
    squares = [Term(e, q=1 / ridge_) for e in E]
    if name == "Zero":
        return penalties.Zero() if rng.random() < 0.5 else None
    if name == "L1":
        p.terms += [absolute(e, s) for e, s in zip(E, each, strict=True)]
        return penalties.L1(each if len(set(each)) > 1 else lam)
    if name == "ElasticNet":
        p.terms += [absolute(e, lam) for e in E] + squares
        return penalties.ElasticNet(lam, ridge)
    if name == "Ridge":
        p.terms += squares
        return penalties.Ridge(ridge)
    if name == "Box":
        p.terms += between
        return penalties.Box(*box)
    if name == "NonNegative":
        p.terms += positive
        return penalties.NonNegative()
    if name == "GroupL2":
        p.norms = [(np.flatnonzero(groups == g), lam_) for g in np.unique(groups)]
        return penalties.GroupL2(lam, groups)
    if name == "L2":
        p.norms = [(np.arange(n), lam_)]
        return penalties.L2(lam)
    if name == "SparseGroupL2":
        p.terms += [absolute(e, lam) for e in E]
        p.norms = [(np.flatnonzero(groups == g), ridge_) for g in np.unique(groups)]
        return penalties.SparseGroupL2(lam, ridge, groups)
    if name in ("LInf", "L1Ball"):
        # Extra variables: a bound on all sizes, or one per coordinate.
        extra = 1 if name == "LInf" else n
        p.linear = np.append(p.linear, zeros(extra))
        size = len(p.linear)
        for i in range(n):
            top = unit(p.size + min(i, extra - 1), size)
            p.terms += [Term(top - sign * unit(i, size), high=Decimal(0)) for sign in (1, -1)]
        if name == "LInf":
            p.linear[-1], p.lift = lam_, lambda x: np.array([max(abs(x))], object)
            return penalties.LInf(lam)
        p.terms.append(Term(sum(unit(p.size + i, size) for i in range(n)), radius_, low=Decimal(0)))
        p.lift = abs
        return penalties.L1Ball(radius)
    if name == "SLOPE":
        lams = lam * np.arange(n, 0, -1.0)
        drops = exact(lams) - np.append(exact(lams[1:]), Decimal(0))
        p.linear = np.append(p.linear, drops * np.arange(1, n + 1))
        for k, i in np.ndindex(n, n):
            for sign in (1, -1):
                row = sign * unit(i, len(p.linear)) - unit(p.size + k, len(p.linear))
                p.terms.append(Term(row, low=Decimal(0), high=drops[k]))
        p.terms += [Term(unit(p.size + k, len(p.linear)), high=Decimal(0)) for k in range(n)]
        p.lift = lambda x: np.array(sorted(abs(x), reverse=True), object)
        return penalties.SLOPE(lams)
    if name == "HuberPenalty":
        bound = exact(ridge)[()] * radius_
        p.terms += [Term(e, q=1 / ridge_, low=-bound, high=bound) for e in E]
        return penalties.HuberPenalty(ridge, radius)
    if name == "TotalVariation1D":
        p.terms += [absolute(row, lam) for row in differences]
        return penalties.TotalVariation1D(lam)
    if name == "FusedLasso":
        p.terms += [absolute(row, lam) for row in [*differences, *E]]
        return penalties.FusedLasso(lam, lam)
    if name == "L2Ball":
        p.ball = radius_
        return penalties.L2Ball(radius)
    if name == "LInfBall":
        p.terms += [Term(s * e, radius_, low=Decimal(0)) for e in E for s in (1, -1)]
        return penalties.LInfBall(radius)
    if name == "Simplex":
        p.terms += [*positive, Term(sum(E), radius_)]
        return penalties.Simplex(radius)
    if name == "HalfSpace":
        p.terms += [Term(exact(a), radius_, low=Decimal(0))]
        return penalties.HalfSpace(a, radius)
    if name == "Hyperplane":
        p.terms += [Term(exact(a), radius_)]
        return penalties.Hyperplane(a, radius)
    if name == "Affine":
        p.terms += [Term(exact(a), radius_)]
        return penalties.Affine(a[None, :], [radius])
    if name == "BoxHyperplane":
        p.terms += [*between, Term(exact(abs(a)), radius_)]
        return penalties.BoxHyperplane(*box, abs(a), radius)
    if name == "Monotone":
        p.terms += [Term(row, high=Decimal(0)) for row in differences]
        return penalties.Monotone()
    if name == "Scaled":
        p.terms += [absolute(e, lam) for e in E]
        return penalties.Scaled(penalties.L1(lam / 4), 4.0)
    if name == "Translated":
        p.terms += [Term(e, radius_, low=-lam_, high=lam_) for e in E]
        return penalties.Translated(penalties.L1(lam), radius)
    if name == "Precomposed":
        p.terms += [Term(e * Decimal(2), low=-lam_, high=lam_) for e in E]
        return penalties.Precomposed(penalties.L1(lam), 2.0)
    if name == "Separable":
        p.terms += [absolute(E[0], lam), *positive[1:]]
        parts = [([0], penalties.L1(lam)), (list(range(1, n)), penalties.NonNegative())]
        return penalties.Separable(parts[: min(n, 2)])
    p.terms += [absolute(e, lam) for e in E[1:]]
    return penalties.Unpenalised(penalties.L1(lam), free=[0])


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
    mode = str(rng.choice(["minimize", "eta", "gap", "near", "finish", "estimator"], p=[0.45, 0.1, 0.1, 0.1, 0.1, 0.15]))
    kind = str(rng.choice(LOSSES))
    name = str(rng.choice(COMMON if rng.random() < 0.67 else OTHERS))
    estimator = str(rng.choice(list(ESTIMATORS)))
    if mode == "estimator":
        kind, name = ESTIMATORS[estimator]
    p = Problem(seed, kind, name, str(rng.choice(["float32", "float64"])), mode, 10 ** rng.uniform(-12, -4))
    A, b = data(rng, kind, p.dtype)
    N, d = A.shape
    with np.errstate(all="ignore"):
        size_A, spread = float(np.abs(A).max()) or 1.0, float(np.ptp(b)) / 2 or float(np.abs(b).max()) or 1.0
    slope = spread if kind == "Squared" else 1.0
    size_x = (spread if kind in ("LAD", "Quantile", "Squared", "Huber") else 1.0) / size_A
    theta = {"Quantile": float(rng.choice([0.1, 0.25, 0.5, 0.9])), "Huber": float(10 ** rng.uniform(-1, 1)) * spread}
    if kind == "Huber":
        slope = theta["Huber"]
    lam, ridge, radius = (float(s * 10 ** rng.uniform(*ends)) for s, ends in (
        (slope * size_A, (-4, 0)), (slope * size_A / size_x, (-4, 1)), (size_x, (-1.5, 1))))  # fmt: skip
    if rng.random() < 0.1:
        lam, ridge = lam * 10 ** rng.uniform(-20, 20), ridge * 10 ** rng.uniform(-20, 20)
    if kind in ("Quadratic", "KernelSVMDual"):
        # Small integers times a power of two, so that the matrix is exactly positive semidefinite.
        B = rng.integers(-3, 4, (d if kind == "Quadratic" else N, int(rng.integers(1, 8)))).astype(float)
        scale = 2.0 ** rng.integers(-30, 31)
        A = (B @ B.T * scale).astype(p.dtype)
        size_x = 1.0 if kind == "KernelSVMDual" else 1.0 / scale
        b = (b if kind == "KernelSVMDual" else B @ rng.integers(-2, 3, B.shape[1]) + rng.integers(0, 2)).astype(p.dtype)
        lam, ridge, radius = 10 ** rng.uniform(-3, 0.5), scale * 10 ** rng.uniform(-3, 1), size_x * 10 ** rng.uniform(-1, 1)
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
            p.terms += [Term(unit(i, N), min(end, Decimal(0)), high=Decimal(0)), Term(unit(i, N), max(end, Decimal(0)), low=Decimal(0))]
        return p
    if kind == "Quadratic":
        p.loss, p.A, p.size, p.coefficients, p.linear = losses.Quadratic(p.X, b), exact(A), d, d, zeros(d)
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
        zero = Decimal(0)
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
        p.terms += [Term(unit(i, p.coefficients), q=1 / exact(options["l2"])[()]) for i in range(p.coefficients)]
    p.penalty = make_penalty(p, name, rng, p.coefficients, lam, ridge, radius)
    if mode == "estimator":
        p.estimator = make_estimator(estimator, p, lam, ridge, theta, intercept)
    return p


def make_estimator(name: str, p: Problem, lam: float, ridge: float, theta: dict[str, float], intercept: bool) -> Any:
    """Return an estimator that solves the problem. The terms of its penalty replace the random ones."""
    p.terms = p.terms[: sum(w > 0 for w in p.weight)] if p.kind not in SMOOTH else []
    E = [unit(i, p.coefficients) for i in range(p.coefficients)]
    options: dict[str, Any] = {"tol": p.tol, "fit_intercept": intercept, "max_iter": 1000}
    ratio = 0.5
    if p.penalty_name in ("L1", "ElasticNet"):
        p.terms += [absolute(e, lam if p.penalty_name == "L1" else lam * ratio) for e in E]
    if p.penalty_name in ("Ridge", "ElasticNet"):
        p.terms += [Term(e, q=1 / exact(ridge if p.penalty_name == "Ridge" else lam * ratio)[()]) for e in E]
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
        x = np.append(np.ravel(model.coef_), np.ravel(model.intercept_)) if p.size > p.coefficients else np.ravel(model.coef_)
        return x, float(model.objective_), float(model.dual_gap_), bool(model.converged_), model.stop_reason_ == "certified"
    shape = p.loss.shape
    options: dict[str, Any] = {"tol": p.tol, "stop": "gap", "on_failure": "ignore"}
    if p.mode == "minimize":
        result = ad.minimize(p.loss, penalty=p.penalty, max_iter=2000, **options)
    elif p.mode == "eta":
        eta = float(10 ** rng.uniform(-2, 1))
        blocks = None if getattr(p.penalty, "accepts", "diagonal") == "diagonal" else "all"
        result = ad.minimize(p.loss, penalty=p.penalty, eta=eta, blocks=blocks, max_iter=300, **options)
    elif p.mode == "finish":
        result = ad.finish(p.loss, p.penalty, np.zeros(shape, p.dtype), tol=p.tol)
        return result.x, float(result.fun), float(result.gap), bool(result.success), bool(result.success)
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
    return result.x, float(result.fun), float(result.gap), bool(result.success), bool(result.certified)


def tolerance_unit(p: Problem, F: Decimal) -> Decimal:
    """Return an upper bound on the objective that the tolerance is relative to."""
    x = zeros(p.size)
    if p.size > p.coefficients and p.classes == 1 and p.kind not in BINARY:
        x[-1] = sorted(p.b)[len(p.b) // 2]
        if p.kind == "Poisson":
            x[-1] = (p.weight @ p.b).ln() if any(p.b) else Decimal(0)
    return max(abs(F), Decimal("2e-6") * abs(p.value(x)))


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
        outcome.violations.append(("crash", f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"))
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
    excess = max((term.excess(p.lifted(point)) for term in p.terms), default=Decimal(0))
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
    if np.isnan(gap) or gap < 0:
        note(("negative gap", f"gap {gap!r}"))
    elif np.isfinite(gap) and Decimal(gap) < true - Decimal("1e-320"):
        note(("gap too small", f"gap {gap!r} < F(x) - F(y) = {true:.6g}, F(x) = {F:.6g}"))
    if np.isfinite(gap) and not inside and np.isfinite(fun):
        note(("infeasible", f"x violates a constraint by {excess:.2g} (relative)"))
    if outcome.certified and not np.isfinite(gap):
        note(("certified", f"certified with gap {gap}"))
    if outcome.success and true > Decimal(p.tol) * tolerance_unit(p, F) * Decimal("1.000001"):
        kind = "certified, not within tol" if outcome.certified else "success, not within tol"
        note((kind, f"F(x) - F(y) = {true:.6g} is {true / tolerance_unit(p, F):.2g} of the objective"))
    if np.isfinite(gap) and np.isfinite(fun):
        error, rounding = abs(Decimal(fun) - F), Decimal("2e-15") * p.size_of_terms(point)
        if error > Decimal(gap) + rounding:
            note(("fun", f"fun {fun!r} differs from F(x) = {F:.17g} by {error:.3g}, gap {gap:.3g}"))
    outcome.seconds = time.process_time() - began
    return outcome


def best_point(p: Problem, x: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return a nearly optimal feasible point and whether it is sharp."""
    y, sharp = reference(p, x)
    if p.ball is not None and norm(y[: p.coefficients]) > p.ball:
        y, sharp = x.copy(), False
        y[: p.coefficients] *= min(Decimal(1), p.ball / (norm(y[: p.coefficients]) or Decimal(1)))
    return y, sharp


def interrupted(*_: Any) -> None:
    raise TimeoutError(f"interrupted after {LIMIT_SECONDS} s")


def outcomes(seeds: range, jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(check, seeds)
        return
    with Pool(jobs, signal.signal, (signal.SIGALRM, interrupted)) as pool:
        yield from pool.imap_unordered(check, seeds, chunksize=5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", type=int, help="repeat the problem of this seed and print details")
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, interrupted)
    if options.only is not None:
        outcome = check(options.only)
        with np.errstate(all="ignore"):
            p = draw(options.only)
        print(outcome.label, p.loss, p.penalty, p.estimator, outcome.details, outcome.refused, sep="\n")
        print(*(f"VIOLATION {kind}: {text}" for kind, text in outcome.violations), sep="\n")
        return int(bool(outcome.violations))
    found = list(outcomes(range(options.seed, options.seed + options.count), options.jobs))
    for outcome in sorted(found, key=lambda o: o.seed):
        for kind, text in outcome.violations:
            print(f"--only {outcome.seed}  {kind}: {text}  [{outcome.label}]")
    rows: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome in found:
        rows[outcome.kind, outcome.dtype].append(outcome)
    print(f"\n{'loss':14} {'dtype':8} {'runs':>5} {'certified':>9} {'success':>8} {'errors':>7} {'sharp':>6} {'violations':>10}")
    for (kind, dtype), some in [*sorted(rows.items()), (("all", ""), found)]:
        numbers = [sum(map(bool, column)) for column in zip(
            *((o.certified, o.success, o.refused, o.sharp, o.violations) for o in some), strict=True)]  # fmt: skip
        print(f"{kind:14} {dtype:8} {len(some):5} {numbers[0]:9} {numbers[1]:8} {numbers[2]:7} {numbers[3]:6} {numbers[4]:10}")
    print("\nviolations:", dict(Counter(kind for o in found for kind, _ in o.violations).most_common()))
    print("errors:", dict(Counter(o.refused[:100] for o in found if o.refused).most_common(10)))
    print(f"CPU seconds: {sum(o.solver_seconds for o in found):.0f} in the package, {sum(o.seconds for o in found):.0f} in total")
    return int(any(o.violations for o in found))


if __name__ == "__main__":
    sys.exit(main())
