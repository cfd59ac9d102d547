"""Objectives with 70 digits, and nearly optimal points of small problems, for tools/random_problems.py.

Nothing here calls the package. A problem is a sum of terms, functions of one linear form each, plus
Euclidean norms of groups and a smooth loss.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

CONTEXT = decimal.Context(prec=70, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
ZERO, INF = Decimal(0), Decimal("inf")
EXP_LIMIT = 1000  # beyond this margin, the logistic loss is linear or zero to 70 digits
SHARP = Decimal("1e-18")  # relative optimality gap below which the reference point counts as sharp
FEASIBLE = Decimal("1e-45")  # relative excess of a constraint up to which a reference point is used
SMOOTH = ("Logistic", "Poisson", "Multinomial", "Quadratic", "KernelSVMDual")


def exact(values: Any) -> Any:
    """Return an array of decimals with the values of doubles, rounded to 70 digits."""
    numbers = [+Decimal(float(v)) for v in np.ravel(values)]
    return np.array(numbers, object).reshape(np.shape(values))


def zeros(*shape: int) -> np.ndarray:
    return np.full(shape, ZERO, object)


@dataclass
class Term:
    """A function of the linear form t = <row, x> - shift: the maximum of u t - q u^2 / 2 over low <= u <= high."""

    row: np.ndarray
    shift: Decimal = ZERO
    q: Decimal = ZERO
    low: Decimal = -INF
    high: Decimal = INF

    def value(self, x: np.ndarray) -> Decimal:
        """Return the value. The value of a constraint is zero, whether it is fulfilled or not."""
        t = self.row @ x[: len(self.row)] - self.shift
        if self.q:
            u = min(max(t / self.q, self.low), self.high)
            return u * t - self.q * u * u / 2
        end = self.high if t > 0 else self.low
        return t * end if end.is_finite() else ZERO

    def excess(self, x: np.ndarray) -> Decimal:
        """Return how far outside a constraint x is, relative to the sizes of its terms."""
        products = self.row * x[: len(self.row)]
        t = sum(products) - self.shift
        outside = not (self.high if t > 0 else self.low).is_finite() and not self.q
        size = sum(abs(products)) + abs(self.shift)
        return abs(t) / size if outside and size else ZERO


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
        total += sum((s * norm(x[index]) for index, s in self.norms), ZERO)
        return total + (self.smooth(x)[0] if self.kind in SMOOTH else 0)

    def size_of_terms(self, x: np.ndarray) -> Decimal:
        full = self.lifted(x)
        total = sum((abs(term.value(full)) for term in self.terms), abs(self.value(x)))
        if self.kind == "Poisson":
            total += self.weight @ abs(self.b * (self.A @ x))
        if self.kind in ("Quadratic", "KernelSVMDual"):
            total += abs(x) @ abs(self.b) + abs(x) @ abs(self.A) @ abs(x)
        return total

    def sample_losses(self, x: np.ndarray) -> np.ndarray:
        """Return the weighted loss of each sample, for a linear model with one output."""
        if self.kind in SMOOTH:
            scalar = logistic if self.kind == "Logistic" else poisson
            values = [scalar(z, b)[0] for z, b in zip(self.A @ x, self.b, strict=True)]
            return self.weight * np.array(values, object)
        samples = sum(w > 0 for w in self.weight)
        return np.array([term.value(x) for term in self.terms[:samples]], object)

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
                inner = weight * (np.diag(p) + ZERO - np.outer(p, p))
                hessian += np.kron(np.outer(a, a), inner)
            return w @ (logs - chosen), (A.T @ (w[:, None] * U)).ravel(), hessian
        scalar = logistic if self.kind == "Logistic" else poisson
        parts = [scalar(z, t) for z, t in zip(Z[:, 0], b, strict=True)]
        value, first, second = (w * np.array(column, object) for column in zip(*parts, strict=True))
        return sum(value), A.T @ first, gram(A, second)


def norm(v: np.ndarray) -> Decimal:
    return (v @ v).sqrt()


def exponential(z: Decimal) -> Decimal:
    return z.exp() if z > -EXP_LIMIT else ZERO


def logistic(z: Decimal, b: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    m = b * z
    if abs(m) > EXP_LIMIT:
        return max(-m, ZERO), -b * (m < 0), ZERO
    e = (-m).exp()
    return (1 + e).ln(), -b * e / (1 + e), e / (1 + e) ** 2


def poisson(z: Decimal, b: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    e = z.exp() if abs(z) < 10**6 else (INF if z > 0 else ZERO)
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
    full = np.array(
        [np.append(term.row, zeros(len(p.linear) - len(term.row))) for term in p.terms], object
    )
    full = full.reshape(len(p.terms), len(p.linear))
    shift, q, low, high = (
        np.array([getattr(t, n) for t in p.terms], object) for n in ("shift", "q", "low", "high")
    )
    # Scale the columns and then the rows to a largest entry of one.
    sources = {"Multinomial": lambda: np.kron(p.A, np.array([[Decimal(1)] * p.classes], object))}
    sources |= dict.fromkeys(("Logistic", "Poisson"), lambda: p.A)
    root = lambda: np.array([[v.sqrt() for v in np.diag(p.A)]], object)
    sources |= dict.fromkeys(("Quadratic", "KernelSVMDual"), root)
    more = sources.get(p.kind, lambda: zeros(0, p.size))()
    data = np.vstack([full, np.column_stack([more, zeros(len(more), len(p.linear) - p.size)])])
    columns = np.array([max(abs(c), default=0) or Decimal(1) for c in data.T], object)[keep]
    R = full[:, keep] / columns
    rows = np.array([max(abs(r)) or Decimal(1) for r in R], object) if len(R) else zeros(0)
    R, shift, q, low, high = R / rows[:, None], shift / rows, q / rows**2, low * rows, high * rows
    linear = p.linear[keep] / columns
    upper, lower = (
        np.array([v.is_finite() for v in high], bool),
        np.array([v.is_finite() for v in low], bool),
    )
    start = p.lifted(x)[keep] * columns
    v = start if p.kind in SMOOTH or p.norms else start * 0
    slopes = [abs(s) for s in [*high[upper], *low[lower], *linear] if s]
    if p.kind in SMOOTH:
        slopes += (
            [abs(s) for s in p.smooth(x)[1] / columns[: p.size] if s] if not fixed.any() else []
        )
    unit_u = max(slopes, default=Decimal(1))
    u = np.array([(h + l) / 2 if a and b else h - unit_u if a else l + unit_u if b else ZERO
                  for h, l, a, b in zip(high, low, upper, lower, strict=True)], object)  # fmt: skip
    t = R @ v - shift
    unit_t = max(abs(t), default=Decimal(1)) or Decimal(1)
    above = np.array(
        [max(s, ZERO) + unit_t if a else ZERO for s, a in zip(t, upper, strict=True)], object
    )
    below = np.array(
        [max(-s, ZERO) + unit_t if a else ZERO for s, a in zip(t, lower, strict=True)], object
    )
    tiny, count = Decimal("1e-30") * unit_t / unit_u, max(1, int(upper.sum() + lower.sum()))
    best, lowest, first_gap = (INF, x), -INF, ZERO  # lowest: nearly a lower bound on the optimum
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
        gap = above @ up + below @ down if len(R) else ZERO
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
        D = np.maximum(D, tiny)
        H = hessian + (gram(R, 1 / D) if len(R) else 0)
        for i in range(len(H)):
            H[i, i] += Decimal("1e-45") * max(H[i, i], unit_u / unit_t)
        sigma, cross_up, cross_down = ZERO, zeros(len(R)), zeros(len(R))
        for corrector in (False, True):
            drift_up = np.where(upper, (sigma * mu + cross_up) / up - above, 0)
            drift_down = np.where(lower, (sigma * mu - cross_down) / down - below, 0)
            e = (primal - drift_up + drift_down) / D
            dv = solve(H, (-gradient - (R.T @ e if len(R) else 0))[:, None])[:, 0]
            du = (R @ dv) / D + e if len(R) else u
            d_above, d_below = drift_up + above / up * du, drift_down + below / down * du * -1
            step = min(largest_step(above, d_above), largest_step(below, d_below))
            step = min(
                step, largest_step(up[upper], -du[upper]), largest_step(down[lower], du[lower])
            )
            if p.kind in ("Logistic", "Poisson", "Multinomial"):
                move = p.A @ scatter(dv / columns, keep, p.size).reshape(-1, p.classes)
                step = min(step, 2 / max(abs(move).max(), Decimal("1e-99")))
            if not corrector:
                after = (above + step * d_above) @ (up - step * du) + (below + step * d_below) @ (
                    down + step * du
                )
                sigma = min(Decimal(1), max(ZERO, after / gap)) ** 3 if gap else ZERO
                cross_up, cross_down = d_above * du, d_below * du
        first_gap = first_gap or gap or Decimal(1)
        step = min(Decimal(1), step * (1 - min(Decimal("0.01"), gap / first_gap)))
        v, u, above, below = (
            v + step * dv,
            u + step * du,
            above + step * d_above,
            below + step * d_below,
        )
    return best[1], best[0] - lowest <= SHARP * max(abs(best[0]), Decimal("1e-9") * unit_t * unit_u)


def scatter(values: np.ndarray, places: np.ndarray, size: int) -> np.ndarray:
    result = zeros(max(size, int(places.max(initial=0)) + 1))
    result[places] = values
    return result[:size]


def largest_step(values: np.ndarray, changes: np.ndarray) -> Decimal:
    """Return the largest step of at most one (and a bit) that keeps values + step * changes nonnegative."""
    return min((-s / d for s, d in zip(values, changes, strict=True) if d < 0), default=Decimal(2))


def best_point(p: Problem, x: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return a nearly optimal feasible point and whether it is sharp."""
    y, sharp = reference(p, x)
    if p.ball is not None and norm(y[: p.coefficients]) > p.ball:
        y, sharp = x.copy(), False
        y[: p.coefficients] *= min(Decimal(1), p.ball / (norm(y[: p.coefficients]) or Decimal(1)))
    return y, sharp
