"""What makes many steps at once makes the same ones as a loop; rows of a batch are taken where they are."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import adagrad_diff
from adagrad_diff import kernels
from looping import looped

EPS = np.finfo(np.float64).eps
LARGE = np.longdouble


def loop(x, steps, step, g, l1, l2, low, high):
    """The proximal steps one by one, of many coordinates, in extended precision; and what rounding may do on the way."""
    x, step, g, l1, l2 = (np.asarray(part, LARGE) for part in (x, step, g, l1, l2))
    steps, largest = np.asarray(steps), np.abs(x)
    for k in range(int(np.max(steps))):
        z = x - step * g
        new = np.clip(np.sign(z) * np.maximum(np.abs(z) - step * l1, 0) / (1 + step * l2), low, high)
        x = np.where(k < steps, new, x)
        largest = np.maximum(largest, np.abs(x))
    # Errors of a step are not made larger by those after it, which shrink them by 1 + step * l2.
    with np.errstate(divide="ignore"):
        lasting = np.minimum(steps, 1 + 1 / (step * l2))
    return x, 8 * EPS * (largest * (1 + lasting) + lasting * step * (l1 + np.abs(g)))


def idle(x, steps, *parts):
    """The kernel, coordinate by coordinate."""
    return np.array([kernels.idle(float(a), int(n), *map(float, rest)) for a, n, *rest in np.broadcast(x, steps, *parts)])


@looped("kind", ["none", "l1", "l2", "both", "box"])
def test_idle_is_the_loop(kind):
    rng, count = np.random.default_rng(0), 400
    x = rng.choice([-1, 0, 1], count) * 10.0 ** rng.uniform(-3, 3, count)
    steps, step = np.floor(10 ** rng.uniform(0, 3.5, count)).astype(int), 10.0 ** rng.uniform(-6, 2, count)
    g = rng.choice([-1, 0, 1], count) * 10.0 ** rng.uniform(-3, 2, count)
    l1 = 10.0 ** rng.uniform(-3, 2, count) if kind in ("l1", "both") else np.zeros(count)
    l1 = np.where(rng.random(count) < 0.2, np.abs(g), l1) if l1.any() else l1  # where nothing moves, on one side
    l2 = 10.0 ** rng.uniform(-6, 2, count) if kind in ("l2", "both") else np.zeros(count)
    low, high = (np.minimum(x, -0.5), np.maximum(x, 1.5)) if kind == "box" else (-np.inf, np.inf)
    expected, rounding = loop(x, steps, step, g, l1, l2, low, high)
    found = idle(x, steps, step, g, l1, l2, low, high)
    assert (np.abs(found - expected) <= rounding).all()
    assert np.mean(found != x) > 0.5
    held = l1 >= np.abs(g)  # there x goes to zero, and stays
    assert (found * x >= 0)[held].all()
    assert (np.abs(found) <= np.abs(x) + rounding)[held].all()


sizes = st.floats(-12, 9).map(lambda power: 10.0**power)
signed = st.builds(lambda sign, size: sign * size, st.sampled_from([-1, 0, 1]), sizes)
zero_or = st.one_of(st.just(0.0), sizes)


@settings(deadline=None, max_examples=300)
@given(x=signed, steps=st.integers(0, 60), step=sizes, g=signed, l1=zero_or, l2=zero_or, equal=st.booleans())
def test_idle_of_extreme_numbers(x, steps, step, g, l1, l2, equal):
    l1 = abs(g) if equal else l1
    expected, rounding = loop(x, steps, step, g, l1, l2, -np.inf, np.inf)
    found = kernels.idle(x, steps, step, g, l1, l2, -np.inf, np.inf)
    assert abs(found - expected) <= rounding
    if l1 >= abs(g):
        assert found * x >= 0.0
        assert abs(found) <= abs(x) + rounding


@settings(deadline=None, max_examples=100)
@given(x=st.floats(-1, 1), steps=st.integers(0, 10_000), step=sizes, g=signed, low=st.floats(-9, -1), high=st.floats(1, 9))
def test_idle_stops_at_bounds(x, steps, step, g, low, high):
    found = kernels.idle(x, steps, step, g, 0.0, 0.0, low, high)
    assert found == pytest.approx(np.clip(x - steps * step * g, low, high), rel=1e-12)
    assert low <= found <= high


@looped("x", [np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, 1.0])
@looped("g", [0.0, 1e308, -1e308, np.inf, np.nan, 1e-320])
@looped("step", [1e-300, 1.0, 1e300])
@looped("l1, l2", [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1e300, 1e300), (1e-320, 1e-320)])
def test_idle_ends_whatever_it_is_given(x, g, step, l1, l2):
    """In no time: it is one number, and steps are as many as there are samples."""
    found = kernels.idle(x, 10**9, step, g, l1, l2, -np.inf, np.inf)
    assert isinstance(found, float)
    if l1 >= abs(g) and np.isfinite(x):
        assert abs(found) <= abs(x)


def test_a_step_costs_what_its_nonzeros_cost():
    """A hundred times the steps are not a hundred times the work: most of it is to look at all coordinates, once."""
    samples, features, filled, empty = 1000, 200_000, 5, np.empty(0)
    rng, loss = np.random.default_rng(0), adagrad_diff.Logistic
    A = (np.arange(0, filled * samples + 1, filled), rng.integers(0, features, filled * samples), np.ones(filled * samples))
    about = (rng.choice([-1.0, 1.0], samples), np.full(samples, 1 / samples), 0.0, 0, empty, 0.0)
    l1, bound = np.full(features, 1e-3), np.full(features, np.inf)
    order, rows, held = np.arange(samples), np.empty(2, np.int64), np.zeros(samples)

    def seconds(steps):
        """Of this process alone."""
        taken = []
        for _ in range(4):  # the first one compiles
            x, v, total, base, y = np.zeros((5, features))
            begin = time.process_time()
            batches, metric, terms = (0, 0, order, rows), (0.1, 1e-8, np.ones(1)), (l1, np.zeros(features), -bound, bound)
            kernels.rows_walk(loss.scalar)(A, about, batches, x, v, total, (base, held, y), metric, terms, steps)
            taken.append(time.process_time() - begin)
            assert np.count_nonzero(total) > filled
        return min(taken)

    assert seconds(2000) < 20 * seconds(20)


# ------------------------------------------------------------ rows of a batch


@looped("dtype", [np.float64, np.float32])
@looped("columns", [1, 3])
@looped("index", [np.int32, np.int64])
def test_products_with_some_rows(dtype, columns, index):
    rng = np.random.default_rng(0)
    A = (rng.standard_normal((9, 5)) * (rng.random((9, 5)) < 0.6)).astype(dtype)
    rows, S = np.array([7, 0, 8, 3]), sparse.csr_array(A)
    parts = (S.indptr.astype(index), S.indices.astype(index), S.data)
    x, r, g = (rng.standard_normal((n, columns)).astype(dtype) for n in (5, 4, 5))
    for dot, tdot, entries in (
        (kernels.picked_dense_dot, kernels.picked_dense_tdot, (A,)),
        (kernels.picked_rows_dot, kernels.picked_rows_tdot, parts),
    ):
        dot(*entries, rows, x, z := np.full((4, columns), np.nan, dtype))
        np.testing.assert_allclose(z, A[rows] @ x, atol=10 * np.finfo(dtype).eps)
        tdot(*entries, rows, r, found := g.copy())
        np.testing.assert_allclose(found, g + A[rows].T @ r, atol=10 * np.finfo(dtype).eps)


def test_a_batch_goes_round_the_end():
    order, rows = np.random.default_rng(0).permutation(10), np.empty(4, np.int64)
    firsts = set()
    for n in range(200):
        kernels.batch(3, n, order, rows)
        first = int(kernels.uniform(3, n) * 10)
        firsts.add(first)
        np.testing.assert_array_equal(rows, np.take(order, first + np.arange(4), mode="wrap"))
    assert firsts == set(range(10))
