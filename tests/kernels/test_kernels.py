"""Every compiled kernel computes the NumPy statement of its docstring, in both precisions and for one vector or several."""

import inspect

import numpy as np
import pytest
from scipy import sparse

import adagrad_diff
import naive
from adagrad_diff import kernels
from looping import looped

D, B = 11, 3
SCALAR = {"Logistic": {}, "Hinge": {}, "SquaredHinge": {}, "LAD": {}, "Quantile": {"tau": 0.3}, "Squared": {}}
SCALAR |= {"Huber": {"delta": 0.7}, "Poisson": {}}
FACTORS = {"one": lambda d: np.array([0.3]), "per row": lambda d: np.linspace(0.0, 1.0, d)}

dtypes = looped("dtype", [np.float64, np.float32])
batches = looped("batch", [(), (B,)])
losses = pytest.mark.parametrize("loss", SCALAR)
# In single precision some are enough: kernels differ in the scalar function only, and each takes seconds to compile.
cases = [(loss, np.float64) for loss in SCALAR] + [(loss, np.float32) for loss in ("Logistic", "Hinge", "Quantile")]
losses_and_dtypes = pytest.mark.parametrize(("loss", "dtype"), cases, ids=lambda part: getattr(part, "__name__", part))


def arrays(count, shape, dtype, seed=0):
    """Arrays of normal entries in the given precision."""
    return np.random.default_rng(seed).standard_normal((count, *shape)).astype(dtype)


def column(factor, batch):
    """A factor per row, beside the trajectories if there are any."""
    return factor.reshape(-1, *(1 for _ in batch))


def assert_same(found, expected, dtype):
    """Equal up to the rounding errors of sums of a few dozen terms."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=100 * np.finfo(dtype).eps * max(1.0, np.max(np.abs(expected))))


# ---------------------------------------------------------------- the metric


@dtypes
@looped("size", [1.0, 1e20, 1e-25])
@pytest.mark.parametrize("name", ["add_squares", "add_squared_differences"])
def test_squares(name, size, dtype):
    """In double precision, where the squares of single precision neither overflow nor vanish."""
    g, g_prev = dtype(size) * arrays(2, (D,), dtype)
    total = size**2 * arrays(1, (D,), np.float64)[0] ** 2
    expected = total + ((g.astype(float) - g_prev) ** 2 if "differences" in name else g.astype(float) ** 2)
    getattr(kernels, name)(total, *((g, g_prev) if "differences" in name else (g,)))
    np.testing.assert_allclose(total, expected, rtol=1e-14)


@dtypes
@pytest.mark.parametrize("width", [1, B])
@looped("size", [1.0, 1e20, 1e-25])
@pytest.mark.parametrize("name", ["add_block_squares", "add_block_squared_differences"])
def test_block_squares(name, size, width, dtype):
    (g, g_prev), labels = dtype(size) * arrays(2, (D, width), dtype), np.arange(D) * 5 % 4
    total = size**2 * arrays(1, (4, width), np.float64, seed=1)[0] ** 2
    expected = total.copy()
    np.add.at(expected, labels, (g.astype(float) - g_prev) ** 2 if "differences" in name else g.astype(float) ** 2)
    getattr(kernels, name)(total, labels, *((g, g_prev) if "differences" in name else (g,)))
    np.testing.assert_allclose(total, expected, rtol=1e-14)


@dtypes
@looped("entry", [1.0, 1e30, 1e200, np.inf, -np.inf, np.nan])
def test_overflow(entry, dtype):
    """Zero, and NaN if there is an entry whose square, in double precision, is not finite."""
    (g,) = arrays(1, (D,), dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        g[4] = entry
        np.testing.assert_array_equal(kernels.overflow(g), np.sum(0 * g.astype(float) ** 2))


@dtypes
@pytest.mark.parametrize("averages", [True, False], ids=["averages", "none"])
@pytest.mark.parametrize("bad", ["nothing", "f", "phi", "g", "the square of g", "all", "one before"])
def test_advance(bad, averages, dtype):
    """Trajectory 1 fails, or all do: these keep everything old, the others take everything new."""
    (x_new, g_new, x, g, x_best), x_sum = arrays(5, (D, B), dtype), arrays(1, (D, B), np.float64, seed=1)[0]
    f, phi, f_old, phi_old = arrays(4, (B,), np.float64, seed=2)
    failed, n, norm = np.zeros(B, bool), np.array([4, 5, 6]), np.array([1.0, 2.0, 3.0])
    fun_best = np.array([-9.0, 9.0, 9.0])  # the first trajectory has been better
    if bad == "one before":
        failed[1] = True
    with np.errstate(over="ignore"):
        numbers = {"f": (f, 1), "phi": (phi, 1), "g": (g_new, (4, 1)), "the square of g": (g_new, (4, 1)), "all": (f, slice(3))}
        if bad in numbers:
            array, index = numbers[bad]
            array[index] = 1e200 if bad == "the square of g" else np.nan  # infinite in single precision

    with np.errstate(over="ignore", invalid="ignore"):
        stays = failed | ~np.isfinite(f + phi + np.sum(0 * g_new.astype(float) ** 2, axis=0))
    better = ~stays & (f + phi < fun_best)
    expected = [np.where(stays, old, new) for new, old in ((f, f_old), (phi, phi_old), (x_new, x), (g_new, g))]
    expected += [n + ~stays, stays, np.where(stays, norm, np.nan), np.where(better, f + phi, fun_best)]
    expected += [x_sum + np.where(stays, 0.0, x_new), np.where(better, x_new, x_best)] if averages else []
    kept = (x_sum, x_best) if averages else (None, None)
    kernels.advance(f, phi, x_new, g_new, f_old, phi_old, x, g, n, failed, norm, fun_best, *kept)
    for found, wanted in zip((f, phi, x_new, g_new, n, failed, norm, fun_best, *kept), expected, strict=averages):
        np.testing.assert_array_equal(found, wanted)
    assert stays.sum() == {"nothing": 0, "all": B}.get(bad, 1)


@dtypes
@batches
@pytest.mark.parametrize("scale", FACTORS)
def test_forward(scale, batch, dtype):
    x, g, step, out = arrays(4, (D, *batch), dtype)
    total, eta = arrays(1, (D, *batch), np.float64)[0] ** 2, np.geomspace(0.1, 1.0, *(batch or (1,))).astype(dtype)
    scale = (1 + FACTORS[scale](D)).astype(dtype)
    kernels.forward(total, 1e-2, eta, scale, x, g, step, out)
    expected = eta * column(scale, batch) / (1e-2 + np.sqrt(total))
    assert_same(step, expected, dtype)
    assert_same(out, x - expected * g, dtype)


@dtypes
@pytest.mark.parametrize("width", [1, B])
@pytest.mark.parametrize("scale", FACTORS)
def test_block_forward(scale, width, dtype):
    (x, g, step, out), labels = arrays(4, (D, width), dtype), np.arange(D) * 5 % 4
    total, eta = arrays(1, (4, width), np.float64, seed=1)[0] ** 2, np.geomspace(0.1, 1.0, width).astype(dtype)
    scale = (1 + FACTORS[scale](D)).astype(dtype)
    kernels.block_forward(total, labels, 1e-2, eta, scale, x, g, step, out)
    expected = eta * scale[:, None] / (1e-2 + np.sqrt(total[labels]))
    assert_same(step, expected, dtype)
    assert_same(out, x - expected * g, dtype)


@dtypes
@batches
@pytest.mark.parametrize("scale", FACTORS)
def test_diagnose(scale, batch, dtype):
    x_prev, x, step, g_prev, g = arrays(5, (D, *batch), dtype)
    step, out = np.abs(step) + dtype(0.1), np.full((2, *(batch or (1,))), np.nan)
    scale = 1 + FACTORS[scale](D)
    kernels.diagnose(x_prev, x, step, g_prev, g, scale, out)
    u = scale.reshape(-1, *[1] * len(batch)) * ((x_prev - x) / step + g - g_prev)
    squares = np.sum(u**2, axis=0)
    assert_same(out, np.reshape([squares, np.mean(step, axis=0)], out.shape), dtype)


# ---------------------------------------------------------------- penalties


@dtypes
@batches
@looped("l2", FACTORS)
@pytest.mark.parametrize("l1", FACTORS)
def test_shrink(l1, l2, batch, dtype):
    z, step, out = arrays(3, (D, *batch), dtype)
    step, l1, l2 = np.abs(step), FACTORS[l1](D), FACTORS[l2](D)
    kernels.shrink(z, step, l1, l2, out)
    expected = np.sign(z) * np.maximum(np.abs(z) - step * column(l1, batch), 0) / (1 + step * column(l2, batch))
    assert np.any(expected == 0)
    assert np.any(expected != 0)
    assert_same(out, expected, dtype)
    np.testing.assert_array_equal(out == 0, expected == 0)
    kernels.shrink(z, step, l1, l2, z)  # in place
    np.testing.assert_array_equal(z, out)


@dtypes
@batches
@looped("l2", FACTORS)
@pytest.mark.parametrize("l1", FACTORS)
def test_elastic_value(l1, l2, batch, dtype):
    (x,), l1, l2 = arrays(1, (D, *batch), dtype), FACTORS[l1](D), FACTORS[l2](D)
    out = np.full(batch or (1,), np.nan)
    kernels.elastic_value(x, l1, l2, out)
    expected = np.sum(column(l1, batch) * np.abs(x) + column(l2, batch) / 2 * x.astype(float) ** 2, axis=0)
    assert_same(out, np.reshape(expected, out.shape), dtype)


# ---------------------------------------------------------------- the linear model


@dtypes
@batches
def test_ridge(batch, dtype):
    x, g = arrays(2, (D, *batch), dtype)
    out = np.linspace(1.0, 2.0, *(batch or (1,)))
    expected = out + 0.3 / 2 * np.sum(x.astype(float) ** 2, axis=0), 0.3 * x
    kernels.ridge(x, 0.3, g, out)
    assert_same(out, expected[0], dtype)
    assert_same(g, expected[1], dtype)


def some_rows(dtype, index=np.int32):
    """A sparse matrix with an empty row, its arrays, and a range of its rows."""
    dense = arrays(1, (9, D), dtype)[0] * (arrays(1, (9, D), dtype, seed=1)[0] > 0)
    dense[4] = 0
    A = sparse.csr_array(dense)
    return dense[2:8], (A.indptr.astype(index), A.indices.astype(index), A.data)


@dtypes
@batches
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_products(index, batch, dtype):
    rows, parts = some_rows(dtype, index)
    (x, g), (z, r) = arrays(2, (D, *batch), dtype, seed=2), arrays(2, (6, *batch), dtype, seed=3)
    expected = z + rows @ x, g + rows.T @ r
    kernels.add_rows_dot(*parts, x, 2, 8, z)
    kernels.add_rows_tdot(*parts, r, 2, 8, g)
    assert_same(z, expected[0], dtype)
    assert_same(g, expected[1], dtype)


@dtypes
@pytest.mark.parametrize("width", [1, B])
@pytest.mark.parametrize("spread", [1.0, 1000.0], ids=["moderate", "large"])
def test_softmax_residuals(spread, width, dtype):
    """Also for scores whose exponentials overflow."""
    samples, classes, lo, hi = 9, 4, 2, 8
    z, b = spread * arrays(1, (samples, classes, width), dtype)[0], np.arange(samples) % classes
    weight, out = np.linspace(0.0, 1.0, samples).astype(dtype), np.linspace(1.0, 2.0, width)
    found, value = z.copy(), out.copy()
    kernels.softmax_residuals(found, b, weight, lo, hi, value)
    for k in range(width):
        losses, derivatives = naive.Multinomial.__wrapped__(z[lo:hi, :, k].astype(float), b[lo:hi])
        out[k] += weight[lo:hi] @ losses
        z[lo:hi, :, k] = weight[lo:hi, None] * derivatives
    assert_same(value, out, dtype)
    assert_same(found, z, dtype)  # the other samples are untouched


def scalar_case(loss, dtype, samples):
    """The compiled scalar function with its parameter, the naive one, and targets and weights."""
    rng, theta = np.random.default_rng(1), SCALAR[loss]
    b = rng.poisson(2.0, samples) if loss == "Poisson" else rng.choice([-1.0, 1.0], samples)
    parameter = next(iter(theta.values()), 0.0)

    def naively(z, b):
        return getattr(naive, loss).__wrapped__(z.astype(float), b.astype(float), **theta)

    return getattr(adagrad_diff, loss).scalar, parameter, naively, b.astype(dtype), rng.random(samples).astype(dtype)


@dtypes
@pytest.mark.parametrize("width", [1, B])
@pytest.mark.parametrize("centered", [True, False])
def test_intercept(centered, width, dtype):
    """Sums over many samples are made in double precision."""
    samples, center = 100_000, arrays(1, (D - 1,), dtype, seed=3)[0] if centered else np.empty(0, dtype)
    (x, g), r = arrays(2, (D, width), dtype), arrays(1, (samples, width), dtype, seed=2)[0] + dtype(1)
    out, moved = np.empty(width, dtype), center.astype(float)[:, None]
    kernels.intercept_offset(x, center, out)
    np.testing.assert_allclose(out, x[-1] - (moved * x[: moved.size]).sum(axis=0), rtol=4 * np.finfo(dtype).eps, atol=1e-7)
    sums, expected = r.sum(axis=0, dtype=float), g.astype(float)
    expected[-1] = sums
    expected[: moved.size] -= moved * sums
    kernels.intercept_gradient(r, center, g)
    np.testing.assert_allclose(g, expected, rtol=1e-12 if dtype is np.float64 else 1e-6)


@losses_and_dtypes
@looped("batch", [(), (3,), (9,)])
def test_residuals(loss, batch, dtype):
    samples, lo, hi = 150, 3, 147
    scalar, theta, naively, b, weight = scalar_case(loss, dtype, samples)
    z, out = 2 * arrays(1, (samples, *batch), dtype)[0], np.linspace(1.0, 2.0, *(batch or (1,)))
    found, value = z.copy(), out.copy()
    kernels.residuals(scalar)(found, b, weight, theta, lo, hi, value)
    values, derivatives = naively(z[lo:hi], column(b[lo:hi], batch))
    z[lo:hi] = column(weight[lo:hi], batch) * derivatives
    assert_same(value, out + np.sum(column(weight[lo:hi], batch) * values, axis=0), dtype)
    assert_same(found, z, dtype)


ranges = looped("rows", [(0, 100), (3, 97), (40, 41)])


@dtypes
@pytest.mark.parametrize("loss", ["Logistic", "Hinge", "Poisson"])
@ranges
@looped("few", [1, 3, 8])
def test_dense_pass_few(few, rows, loss, dtype):
    """The same, trajectory by trajectory: in threes, and what is left over one by one."""
    samples, (lo, hi) = 100, rows
    scalar, theta, naively, b, weight = scalar_case(loss, dtype, samples)
    A, (x, g) = arrays(1, (samples, D), dtype)[0], arrays(2, (D, few), dtype, seed=2) / dtype(2)
    r, out, offset = np.full((samples, few), 7, dtype), np.linspace(1.0, 2.0, few), arrays(1, (few,), dtype, seed=3)[0] / 4
    values, derivatives = naively(A[lo:hi].astype(float) @ x + offset, b[lo:hi, None])
    residuals = weight[lo:hi, None] * derivatives
    expected, value = g + A[lo:hi].T @ residuals, out + weight[lo:hi] @ values
    kernels.dense_pass_few(scalar)(A, x, offset, b, weight, theta, lo, hi, np.empty((2, few, D), dtype), r, g, out)
    assert_same(r[lo:hi], residuals, dtype)
    np.testing.assert_array_equal(np.delete(r, slice(lo, hi), axis=0), 7)
    assert_same(g, expected, dtype)
    assert_same(out, value, dtype)


@losses_and_dtypes
@ranges
def test_dense_pass(rows, loss, dtype):
    """For whole tiles, for ranges that end inside one, and for a single row."""
    samples, (lo, hi) = 100, rows
    scalar, theta, naively, b, weight = scalar_case(loss, dtype, samples)
    A, (x, g) = arrays(1, (samples, D), dtype)[0], arrays(2, (D,), dtype, seed=2) / dtype(2)
    r, out, offset = np.full(samples, 7, dtype), np.array([1.5]), dtype(0.25)
    values, derivatives = naively(A[lo:hi].astype(float) @ x + offset, b[lo:hi])
    residuals = weight[lo:hi] * derivatives
    expected = g + A[lo:hi].T @ residuals
    kernels.dense_pass(scalar)(A, x, offset, b, weight, theta, lo, hi, r, g, out)
    assert_same(r[lo:hi], residuals, dtype)
    np.testing.assert_array_equal(np.delete(r, slice(lo, hi)), 7)
    assert_same(g, expected, dtype)
    assert_same(out, 1.5 + weight[lo:hi] @ values, dtype)


@pytest.mark.parametrize("name", ["residuals", "dense_pass", "dense_pass_few"])
def test_no_two_losses_share_a_symbol(name):
    """Numba makes a symbol of a function's name and a number that depends on what a process compiled before.

    Kernels that different processes put on disk may so get one number. If they or their inner functions also had one name, a
    process that loads both would call one loss for the other. (That was seen: Poisson's residuals were those of the hinge.)
    """
    functions = [getattr(kernels, name)(getattr(adagrad_diff, loss).scalar).py_func for loss in SCALAR]
    inner = [inspect.getclosurevars(function).nonlocals for function in functions]
    names = [f.__qualname__ for f in functions]
    names += [
        f.__qualname__
        for cells in inner
        for f in cells.values()
        if callable(f) and f.__module__ == "adagrad_diff.kernels._compile"
    ]
    assert len(set(names)) == len(names) == 2 * len(SCALAR)


def test_no_two_processes_write_to_one_file():
    """Two that compile a function for two dtypes at the same time would mix up what is whose."""
    first, second = (kernels.compiled(kernels.forward.py_func)._cache._cache_file for _ in range(2))
    assert first._index_path == second._index_path
    assert first._data_name(1) != second._data_name(1)


# ---------------------------------------------------------------- kinks and numbers that are not finite


@pytest.mark.parametrize(("loss", "z"), [("Hinge", 1.0), ("SquaredHinge", 1.0), ("LAD", 1.0), ("Quantile", 1.0)])
def test_the_smallest_subgradient_at_a_kink(loss, z):
    value, derivative = getattr(adagrad_diff, loss).scalar(z, 1.0, 0.3)
    assert (value, derivative) == (0.0, 0.0)


@losses
@looped("bad", [np.nan, np.inf, -np.inf])
def test_a_bad_score_is_not_hidden(loss, bad):
    """The value at z = NaN is NaN; at an infinite z it is what the formula says, never a wrong finite number."""
    scalar, theta, *_ = scalar_case(loss, np.float64, 1)
    out, z = np.zeros(1), np.array([0.5, bad, 0.5])
    kernels.residuals(scalar)(z, np.ones(3), np.ones(3), theta, 0, 3, out)
    falls = bad == np.inf and loss in ("Logistic", "Hinge", "SquaredHinge")  # towards zero: the sample is on the right side
    if np.isnan(bad):
        assert np.isnan(out[0])
    elif not falls:
        assert not np.isfinite(out[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf], ids=str)
@batches
def test_bad_entries_survive(bad, batch):
    """NaN and inf come out of the metric, the step and the penalty where they came in, and nowhere else."""
    x, g, step, out = arrays(4, (D, *batch), np.float64)
    one, at = np.ones(1), (4, *(1 for _ in batch))
    g[at] = bad
    total = np.ones((D, *batch))
    kernels.add_squared_differences(total.reshape(-1), g.reshape(-1), x.reshape(-1))
    np.testing.assert_array_equal(np.isfinite(total), np.isfinite(g))
    kernels.forward(total, 1e-8, np.ones(batch or (1,)), np.ones(D), x, g, step, out)
    assert np.isnan(out[at])
    assert np.isfinite(out).sum() == out.size - 1
    kernels.shrink(out.copy(), np.ones_like(out), one, one, out)
    assert np.isnan(out[at])
    value = np.zeros(batch or (1,))
    kernels.elastic_value(out, one, one, value)
    assert np.isnan(value).sum() == 1


@pytest.mark.parametrize("size", [4, 6, 9, 15])
def test_sums_do_not_depend_on_where_arrays_lie(size):
    """A run that is continued gives the same bits although its arrays lie elsewhere."""
    rng = np.random.default_rng(size)
    for _ in range(20):
        x0, seen = rng.standard_normal(size), set()
        for distance in (size, size + 1, size + 2, 2 * size, 60):
            memory, out = np.zeros(100), np.zeros(1)
            x, g = memory[:size], memory[distance : distance + size]
            x[:] = x0
            kernels.ridge(x, 0.1, g, out)
            seen.add(float(out[0]))
        assert len(seen) == 1
