"""One problem, many ways to hand it over: kinds of matrices, dtypes, trajectories, weights and intercepts."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from adagrad_diff.losses import LAD, KernelSVMDual, LinearModel, Logistic, Multinomial, Poisson, Quadratic, Squared
from looping import looped
from loss_zoo import EVERY, LINEAR, TERMS, make, named, problem, same, targets, weights


def spread(A, rows, columns):
    """A view with A's entries, `rows` and `columns` apart in a larger array of other numbers."""
    larger = np.full((A.shape[0] * abs(rows), A.shape[1] * abs(columns)), 7.0, A.dtype)
    view = larger[::rows, ::columns]
    view[...] = A
    return view


def readonly(A):
    A = A.copy()
    A.flags.writeable = False
    return A


def wide_indices(A):
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


def unsorted_duplicates(A):
    """Every row backwards, and every entry in two halves."""
    values, columns = np.repeat(A[:, ::-1] / 2, 2, axis=1), np.tile(np.repeat(np.arange(A.shape[1])[::-1], 2), len(A))
    return sparse.csr_array((values.ravel(), columns, np.arange(0, values.size + 1, values.shape[1])), shape=A.shape)


def operator(A):
    """One that can multiply single vectors only."""
    return LinearOperator(A.shape, matvec=lambda v: A @ v, rmatvec=lambda v: A.T @ v, dtype=A.dtype)


def batched_operator(A):
    """One that refuses to go through columns one by one."""
    times = lambda M: lambda v: pytest.fail("column by column") if v.ndim == 2 else M @ v  # noqa: E731
    return LinearOperator(A.shape, times(A), times(A.T), lambda V: A @ V, A.dtype, lambda V: A.T @ V)


KINDS = {
    "C order": lambda A: A,
    "Fortran order": np.asfortranarray,
    "every second row": lambda A: spread(A, 2, 1),
    "every second column": lambda A: spread(A, 1, 2),
    "every second column of Fortran order": lambda A: spread(A.T, 2, 1).T,
    "rows backwards": lambda A: spread(A, -1, 1),
    "backwards and apart": lambda A: spread(A, -2, -3),
    "read-only": readonly,
    "list": lambda A: A.tolist(),
    "big-endian": lambda A: A.astype(">f8"),
    "csr_matrix": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
    "csc_matrix": sparse.csc_matrix,
    "csc_array": sparse.csc_array,
    "csr, int64 indices": lambda A: wide_indices(sparse.csr_array(A)),
    "csc, int64 indices": lambda A: wide_indices(sparse.csc_array(A)),
    "csr, unsorted with duplicates": unsorted_duplicates,
    "coo": sparse.coo_array,
    "LinearOperator": operator,
    "LinearOperator with matmat": batched_operator,
}
SEVERAL = (Logistic, LAD, Multinomial)
EVERY_MATRIX = [(kind, layout) for kind in SEVERAL for layout in KINDS]
IN_PLACE = ["C order", "Fortran order", "every second row", "every second column of Fortran order", "read-only"]


def points(loss, rng, trajectories):
    """One x, and one x with a trajectory axis for each number of trajectories."""
    return [rng.standard_normal(loss.shape), *(rng.standard_normal((*loss.shape, B)) for B in trajectories)]


@pytest.mark.parametrize(("kind", "layout"), EVERY_MATRIX)
def test_every_matrix_gives_the_same_numbers(kind, layout):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((37, 6)) * (rng.random((37, 6)) < 0.6)
    for options in TERMS[0], TERMS[-1]:
        reference, loss = (make(kind, M, np.arange(37), **options) for M in (A, KINDS[layout](A)))
        for x in points(reference, rng, (1, 3)):
            value, gradient = loss.value_and_grad(x)
            same((value, gradient), reference.value_and_grad(x))
            assert gradient.shape == x.shape
            assert np.shape(value) == x.shape[len(loss.shape) :]


@looped("layout", KINDS)
def test_every_matrix_in_a_quadratic(layout):
    rng = np.random.default_rng(0)
    Q, b = np.cov(rng.standard_normal((9, 20))), np.where(np.arange(9) % 2, 1, -1)
    for x in points(Quadratic(Q, b), rng, (1, 3)):
        same(Quadratic(KINDS[layout](Q), b).value_and_grad(x), Quadratic(Q, b).value_and_grad(x))
        same(KernelSVMDual(KINDS[layout](Q), b, 0.1).value_and_grad(x), KernelSVMDual(Q, b, 0.1).value_and_grad(x))


@pytest.mark.parametrize("layout", ["C order", *IN_PLACE[1:3], "csr_array", "csc_array", "LinearOperator"])
def test_more_rows_than_one_block_or_thread_takes(layout):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((5000, 210)), rng.standard_normal(5000)
    loss = Squared(KINDS[layout](A), b, intercept=True, l2=0.1, sample_weight=weights(5000))
    weight = weights(5000) / weights(5000).sum()
    for x in points(loss, rng, (2,)):
        t = A @ x[:-1] + x[-1] - (b if x.ndim == 1 else b[:, None])
        r = (t.T * weight).T
        gradient = np.concatenate([A.T @ r + 0.1 * x[:-1], r.sum(axis=0, keepdims=True)])
        same(loss.value_and_grad(x), ((t * r).sum(axis=0) / 2 + 0.05 * np.sum(x[:-1] ** 2, axis=0), gradient))


def test_memory_map(tmp_path):
    A = np.random.default_rng(0).standard_normal((20, 3))
    np.save(tmp_path / "A.npy", A)
    mapped = np.load(tmp_path / "A.npy", mmap_mode="r")
    loss = make(LAD, mapped, np.arange(20))
    assert isinstance(mapped, np.memmap)
    assert np.shares_memory(loss.A.array, mapped)
    same(loss.value_and_grad(np.ones(3)), make(LAD, A, np.arange(20)).value_and_grad(np.ones(3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_is_copied_or_changed(dtype):
    A = np.random.default_rng(0).standard_normal((20, 3)).astype(dtype)
    for layout in IN_PLACE:
        given = KINDS[layout](A)
        loss = make(LAD, given, np.arange(20))
        loss.value_and_grad(np.ones(3))
        assert np.shares_memory(loss.A.array, given), layout
        np.testing.assert_array_equal(given, A)
    for compressed in (sparse.csr_array(A), sparse.csc_array(A)):
        parts = make(Squared, compressed, np.arange(20)).A.parts
        for part, own in zip(parts, (compressed.indptr, compressed.indices, compressed.data), strict=True):
            assert np.shares_memory(part, own)


@looped("layout", [*IN_PLACE[:-1], "csr_array", "csc_array", "coo", "LinearOperator"])
def test_float32_stays_float32(layout):
    A, x = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32), np.array([0.5, -0.25, 1.0])
    for kind in SEVERAL:
        loss = make(kind, KINDS[layout](A), np.arange(20), **TERMS[1])
        for point in (np.broadcast_to(x.reshape(-1, *[1] * (len(loss.shape) - 1)), loss.shape), np.ones((*loss.shape, 2))):
            value, gradient = loss.value_and_grad(point)
            assert loss.dtype == gradient.dtype == np.float32
            same((value, gradient), make(kind, A.astype(float), np.arange(20), **TERMS[1]).value_and_grad(point), rtol=2e-6)


@looped("dtype", [bool, np.int8, np.uint16, np.int64, np.float16, np.longdouble, object])
def test_other_numbers_become_float64(dtype):
    A = (np.arange(12).reshape(4, 3) % 5).astype(dtype)
    for layout in [np.asarray] if dtype in (object, np.float16) else [np.asarray, sparse.csr_array, sparse.csc_array]:
        value, gradient = make(Squared, layout(A), np.arange(4)).value_and_grad(np.ones(3))
        assert gradient.dtype == np.float64
        same((value, gradient), make(Squared, A.astype(float), np.arange(4)).value_and_grad(np.ones(3)))


@looped("options", TERMS[::4])
@pytest.mark.parametrize("kind", EVERY, ids=named)
def test_trajectories_are_columns(kind, options):
    loss, rng = problem(kind, **options)
    x = rng.standard_normal((*loss.shape, 4))
    value, gradient = loss.value_and_grad(x)
    assert value.shape == (4,)
    for k in range(4):
        same((value[k], gradient[..., k]), loss.value_and_grad(x[..., k]))


@looped("layout", ["C order", "Fortran order", "csr_array", "csc_array"])
@pytest.mark.parametrize("kind", LINEAR, ids=named)
def test_large_predictions_are_safe(kind, layout):
    """|A x| = 1e4: no warning (they are errors here) and no overflow, but for e^z itself."""
    A = np.array([[1e4, 0.0], [-1e4, 0.0], [1e4, 0.0], [-1e4, 0.0]])
    loss = make(kind, KINDS[layout](A), [0, 0, 1, 1], intercept=True)
    x = np.zeros(loss.shape)
    x[0] = 1.0 if kind is not Multinomial else [1.0, -1.0, 0.0]
    for point in (x, np.stack([x, -x], axis=-1)):
        with np.errstate(all="raise"):
            value, gradient = loss.value_and_grad(point)
        assert np.all(np.isfinite(value) if kind is not Poisson else np.equal(value, np.inf))
        assert np.isfinite(gradient).all() or kind is Poisson


@looped("layout", ["C order", "Fortran order", "csr_array"])
@pytest.mark.parametrize("kind", LINEAR, ids=named)
def test_weights(kind, layout):
    rng = np.random.default_rng(0)
    A, codes, weight = rng.standard_normal((10, 3)), rng.integers(0, 5, 10), np.arange(10) % 3
    loss = lambda rows, **options: make(kind, KINDS[layout](A[rows]), codes[rows], l2=0.1, **options)  # noqa: E731
    x = rng.standard_normal(loss([0]).shape)
    expected = loss(slice(None), sample_weight=weight).value_and_grad(x)
    same(loss(slice(None), sample_weight=2 * weight).value_and_grad(x), expected)
    same(loss(slice(None), sample_weight=weight * 1e-300).value_and_grad(x), expected)
    same(loss(weight > 0, sample_weight=weight[weight > 0]).value_and_grad(x), expected)
    same(loss(np.repeat(np.arange(10), weight)).value_and_grad(x), expected)


def test_weights_whose_sum_overflows():
    loss, rng = problem(Squared, sample_weight=np.full(12, 1e308))
    x = rng.standard_normal(loss.shape)
    same(loss.value_and_grad(x), problem(Squared)[0].value_and_grad(x))


@pytest.mark.parametrize("layout", ["C order", "Fortran order", "csr_array"])
def test_weight_zero_hides_what_overflows(layout):
    A = KINDS[layout](np.array([[1e4], [1.0]]))
    for x in ([1.0], [[1.0, 0.5]]):
        same(Poisson(A, [2, 2], sample_weight=[0, 1]).value_and_grad(x), Poisson([[1.0]], [2]).value_and_grad(x))


@looped("layout", ["C order", "Fortran order", "csr_array", "csc_array", "LinearOperator"])
@pytest.mark.parametrize("kind", LINEAR, ids=named)
def test_intercept_is_a_column_of_ones_without_ridge(kind, layout):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((10, 3))
    loss = make(kind, KINDS[layout](A), np.arange(10), intercept=True, l2=0.7, sample_weight=True)
    appended = make(kind, np.column_stack([A, np.ones(10)]), np.arange(10), sample_weight=True)
    assert loss.shape == appended.shape
    for x in points(loss, rng, (2,)):
        value, gradient = appended.value_and_grad(x)
        gradient[:-1] += 0.7 * x[:-1]
        ridge = 0.35 * np.sum(x[:-1] ** 2, axis=tuple(range(len(loss.shape))))
        same(loss.value_and_grad(x), (value + ridge, gradient))


class LogCosh(LinearModel):
    """A loss as a user would write it."""

    smoothness = 1.0

    @staticmethod
    def scalar(z, b, theta):
        t = abs(z - b)
        return t + math.log1p(math.exp(-2.0 * t)) - math.log(2.0), math.tanh(z - b)


@pytest.mark.parametrize("layout", ["C order", "Fortran order", "csr_array", "csc_array", "LinearOperator"])
def test_a_loss_of_ones_own(layout):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((10, 3)), targets(LAD, np.arange(10))
    loss = LogCosh(KINDS[layout](A), b, l2=0.1)
    for x in points(loss, rng, (2,)):
        t = A @ x - (b if x.ndim == 1 else b[:, None])
        expected = np.log(np.cosh(t)).mean(axis=0) + 0.05 * np.sum(x**2, axis=0)
        same(loss.value_and_grad(x), (expected, A.T @ np.tanh(t) / 10 + 0.1 * x))
    assert loss.lipschitz() == pytest.approx(np.linalg.norm(A, 2) ** 2 / 10 + 0.1)
