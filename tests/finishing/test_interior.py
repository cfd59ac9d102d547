"""The interior point method and the vertex behind it: against HiGHS and Clarabel, and by the conditions of optimality."""

import numpy as np
import pytest
from scipy.optimize import linprog

from adagrad_diff.finishing.interior import Program, interior
from adagrad_diff.finishing.manifold import Pieces
from adagrad_diff.finishing.normal import Matrix, Normal
from adagrad_diff.finishing.vertex import exact
from looping import looped

SHAPES = {"tall": (60, 7), "square": (12, 12), "wide": (8, 25), "one": (5, 1)}
TERMS = ["free", "l1", "l2", "bounds", "nonnegative", "all kinds"]


def never():
    return False


def program(shape, kind, seed=0, integers=False):
    """One with a solution: q is what multipliers inside their intervals leave."""
    rng = np.random.default_rng(seed)
    rows, size = SHAPES[shape]
    A = rng.integers(-2, 3, (rows, size)).astype(float) if integers else rng.standard_normal((rows, size))
    low, high = -rng.uniform(0.2, 1.0, rows), rng.uniform(0.2, 1.0, rows)
    b = np.round(rng.standard_normal(rows)) if integers else rng.standard_normal(rows)
    terms = Pieces(np.zeros(size), np.zeros(size), np.full(size, -np.inf), np.full(size, np.inf))
    turn = np.arange(size) % 4
    if kind in ("l1", "all kinds"):
        terms.l1[(turn == 0) | (kind == "l1")] = 0.3
    if kind in ("l2", "all kinds"):
        terms.l2[(turn == 1) | (kind == "l2")] = 0.5
    if kind in ("bounds", "all kinds"):
        terms.lower[(turn == 2) | (kind == "bounds")], terms.upper[(turn == 2) | (kind == "bounds")] = -0.2, 0.3
    if kind == "nonnegative":
        terms.lower[:] = 0.0
    r = rng.uniform(0.8 * low, 0.8 * high)
    return Program(Matrix(A), b, low, high, -(r @ A) + 0.5 * terms.l1 * rng.uniform(-1, 1, size), terms)


def value(p, x):
    t = p.A.array @ x - p.b
    return float(p.q @ x + np.maximum(p.low * t, p.high * t).sum() + p.terms.l1 @ np.abs(x) + 0.5 * p.terms.l2 @ x**2)


def by_highs(p):
    """The least value, for l2 = 0: x = y - z, and t = u - v."""
    (rows, size), eye = p.A.shape, np.eye(len(p.b))
    bounds = [*zip(p.terms.lower, p.terms.upper, strict=True), *[(0, None)] * (size + 2 * rows)]
    plane = np.hstack([p.A.array, np.zeros((rows, size)), -eye, eye])
    above = np.vstack([np.hstack([s * np.eye(size), -np.eye(size), np.zeros((size, 2 * rows))]) for s in (1, -1)])
    cost = np.concatenate([p.q, p.terms.l1, p.high, -p.low])
    equal = {"A_eq": plane, "b_eq": p.b} if rows else {}
    return linprog(cost, A_ub=above, b_ub=np.zeros(2 * size), bounds=bounds, **equal).fun


def by_clarabel(p):
    cp = pytest.importorskip("cvxpy")
    x = cp.Variable(p.A.shape[1])
    total = p.q @ x + p.terms.l1 @ cp.abs(x) + 0.5 * cp.sum(cp.multiply(p.terms.l2, cp.square(x)))
    if len(p.b):
        t = p.A.array @ x - p.b
        total += cp.sum(cp.maximum(cp.multiply(p.low, t), cp.multiply(p.high, t)))
    inside = [x[i] >= low for i, low in enumerate(p.terms.lower) if low > -np.inf]
    inside += [x[i] <= high for i, high in enumerate(p.terms.upper) if high < np.inf]
    return cp.Problem(cp.Minimize(total), inside).solve(solver=cp.CLARABEL)


def size_of(p):
    return float(np.abs(p.b).sum() + 1.0)


def follows_the_conditions(p, x, r, error):
    """Slopes in their intervals, at an end unless at the kink; the gradient held by norms, bounds or nothing."""
    scale, (lower, upper) = size_of(p), (p.terms.lower, p.terms.upper)
    assert ((r >= p.low) & (r <= p.high)).all()
    assert ((x >= lower) & (x <= upper)).all()
    t = p.A.array @ x - p.b
    np.testing.assert_allclose(np.maximum(p.low * t, p.high * t), r * t, atol=error * scale)
    pull = -(p.q + p.terms.l2 * x + r @ p.A.array)
    held = np.where(np.abs(x) <= error, np.clip(pull, -p.terms.l1, p.terms.l1), p.terms.l1 * np.sign(x))
    rest = pull - held
    rest = np.where((x >= upper - error) & (rest > 0) | (x <= lower + error) & (rest < 0), 0.0, rest)
    np.testing.assert_allclose(rest, 0.0, atol=error * scale)


@pytest.mark.parametrize("kind", TERMS)
@pytest.mark.parametrize("shape", SHAPES)
@looped("seed, integers, far", [(0, False, 0.0), (1, True, 0.0), (2, True, 100.0)])
def test_against_the_conditions_and_highs(shape, kind, seed, integers, far):
    p = program(shape, kind, seed, integers)
    start = np.clip(np.full(p.A.shape[1], far), p.terms.lower, p.terms.upper)
    x, r, error = exact(p, start, size_of(p), never)
    if error > 1e-10:  # a known limit: many more coordinates than rows, and ties; it is said, and never much
        assert shape == "wide"
        assert integers
        assert error <= 1e-7
    else:
        follows_the_conditions(p, x, r, 1e-9)
    near = interior(p, start, size_of(p), never)
    if not p.terms.l2.any():
        best = by_highs(p)
        assert value(p, x) == pytest.approx(best, rel=1e-8, abs=1e-8)
        assert value(p, np.clip(near.x, p.terms.lower, p.terms.upper)) == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert (near.at_kink <= (np.abs(p.A.array @ x - p.b) <= 1e-7)).all()  # who is said to be at the kink is


@pytest.mark.peer
@pytest.mark.parametrize("kind", ["l2", "all kinds", "bounds"])
@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_against_clarabel(shape, kind):
    p = program(shape, kind, 5)
    x, _, _ = exact(p, np.zeros(p.A.shape[1]), size_of(p), never)
    assert value(p, x) == pytest.approx(by_clarabel(p), rel=1e-7, abs=1e-7)


def test_it_stops_when_told_to():
    p, calls = program("tall", "l1"), []

    def stop():
        calls.append(1)
        return len(calls) >= 3

    early, late = (interior(p, np.zeros(7), size_of(p), one) for one in (stop, never))
    assert len(calls) == 3
    assert early.error > 1e3 * late.error


def test_a_problem_without_a_minimum():
    """A slope that nothing holds: no answer, and no error."""
    p = program("tall", "free")
    p.q += 1e3
    assert exact(p, np.zeros(7), size_of(p), never) is None


@pytest.mark.parametrize("shape", [(40, 6), (6, 40), (10, 14)])
@looped("share", [0.0, 0.2, 1.0])  # of coordinates without a diagonal
def test_normal_equations(shape, share):
    rng = np.random.default_rng(0)
    A, D = rng.standard_normal(shape), rng.uniform(0.5, 2.0, shape[0])
    E = np.where(np.arange(shape[1]) < share * min(shape[1], shape[0] - 1), 0.0, rng.uniform(0.5, 2.0, shape[1]))
    normal, h = Normal(Matrix(A)), rng.standard_normal(shape[1])
    assert normal.factorise(D, E)
    x, y = normal.solve(h)
    np.testing.assert_allclose((A.T * D) @ A @ x + E * x, h, atol=1e-10)
    np.testing.assert_allclose(y, D * (A @ x), atol=1e-10)
    assert not Normal(Matrix(A * np.nan)).factorise(D, E)
