"""Every kind of matrix gives the same numbers, in place where that is possible; weights of samples."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from adagrad_diff import L1, critical_lam, duality_gap
from adagrad_diff.losses import (
    LAD,
    KernelSVMDual,
    Logistic,
    Multinomial,
    Poisson,
    Quadratic,
    Squared,
)
from looping import looped
from loss_zoo import LINEAR, TERMS, make, same, weights
from own_sources import Remote, Stored
from pairwise import pairwise


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
    values, columns = (
        np.repeat(A[:, ::-1] / 2, 2, axis=1),
        np.tile(np.repeat(np.arange(A.shape[1])[::-1], 2), len(A)),
    )
    return sparse.csr_array(
        (values.ravel(), columns, np.arange(0, values.size + 1, values.shape[1])), shape=A.shape
    )


def unaligned(array):
    """Return the same numbers one byte further on, as they may arrive from a network."""
    memory = np.empty(array.nbytes + 1, np.uint8)[1:]
    found = np.ndarray(array.shape, array.dtype, memory.data)
    found[...] = array
    assert not found.flags.aligned
    return found


def unaligned_rows(A):
    rows = sparse.csr_array(A)
    rows.data, rows.indices, rows.indptr = map(unaligned, (rows.data, rows.indices, rows.indptr))
    return rows


def readonly_rows(A):
    rows = sparse.csr_array(A)
    for part in (rows.data, rows.indices, rows.indptr):
        part.flags.writeable = False
    return rows


def operator(A):
    """One that can multiply single vectors only."""
    return LinearOperator(A.shape, matvec=lambda v: A @ v, rmatvec=lambda v: A.T @ v, dtype=A.dtype)


def batched_operator(A):
    """One that refuses to go through columns one by one."""
    times = lambda M: lambda v: pytest.fail("column by column") if v.ndim == 2 else M @ v
    return LinearOperator(
        A.shape, times(A), times(A.T), lambda V: A @ V, A.dtype, lambda V: A.T @ V
    )


KINDS = {
    "C order": lambda A: A,
    "Fortran order": np.asfortranarray,
    "every second row": lambda A: spread(A, 2, 1),
    "every second column of Fortran order": lambda A: spread(A.T, 2, 1).T,
    "backwards and apart": lambda A: spread(A, -2, -3),
    "read-only": readonly,
    "list": lambda A: A.tolist(),
    "big-endian": lambda A: A.astype(">f8"),
    "csr_matrix": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
    "csc_array": sparse.csc_array,
    "csr, int64 indices": lambda A: wide_indices(sparse.csr_array(A)),
    "csc, int64 indices": lambda A: wide_indices(sparse.csc_array(A)),
    "csr, unsorted with duplicates": unsorted_duplicates,
    "csr, read-only": readonly_rows,
    "unaligned": unaligned,
    "csr, unaligned": unaligned_rows,
    "coo": sparse.coo_array,
    "source": Stored,
    "remote source": Remote,
    "LinearOperator": operator,
    "LinearOperator with matmat": batched_operator,
}
IN_PLACE = [
    "C order",
    "Fortran order",
    "every second row",
    "every second column of Fortran order",
    "read-only",
]


@pairwise(
    layout=KINDS,
    kind=[Logistic, LAD, Multinomial],
    terms=[TERMS[0], TERMS[-1]],
    trajectories=[None, 1, 3, 12],
)
def test_every_matrix_gives_the_same_numbers(layout, kind, terms, trajectories):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((37, 6)) * (rng.random((37, 6)) < 0.6)
    reference, loss = (make(kind, M, np.arange(37), **terms) for M in (A, KINDS[layout](A)))
    x = rng.standard_normal((*reference.shape, *([trajectories] if trajectories else [])))
    value, gradient = loss.value_and_grad(x)
    same((value, gradient), reference.value_and_grad(x))
    assert gradient.shape == x.shape
    assert np.shape(value) == x.shape[len(loss.shape) :]


@looped("layout", KINDS)
def test_every_matrix_in_a_quadratic(layout):
    rng = np.random.default_rng(0)
    Q, b = np.cov(rng.standard_normal((9, 20))), np.where(np.arange(9) % 2, 1, -1)
    for x in (rng.standard_normal(9), rng.standard_normal((9, 3))):
        same(Quadratic(KINDS[layout](Q), b).value_and_grad(x), Quadratic(Q, b).value_and_grad(x))
        same(
            KernelSVMDual(KINDS[layout](Q), b, 0.1).value_and_grad(x),
            KernelSVMDual(Q, b, 0.1).value_and_grad(x),
        )


@pairwise(
    layout=["Fortran order", "csr_array", "csc_array", "LinearOperator", "source", "remote source"],
    kind=[LAD, Squared, Logistic],
    terms=[TERMS[0], TERMS[-1]],
)
def test_every_matrix_has_the_same_certificates(layout, kind, terms):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((37, 6)) * (rng.random((37, 6)) < 0.6)
    reference, loss = (
        make(kind, M, np.arange(37) * 7 % 11, **terms) for M in (A, KINDS[layout](A))
    )
    lam = 0.1 * critical_lam(reference, L1(1.0))
    assert 0.1 * critical_lam(loss, L1(1.0)) == pytest.approx(lam, rel=1e-9)
    one, other = (duality_gap(f, L1(lam), 0.1 * np.ones(f.shape)) for f in (reference, loss))
    assert other.fun == pytest.approx(one.fun, rel=1e-12)
    assert other.bound <= one.fun
    assert layout == "LinearOperator" or other.bound == pytest.approx(
        one.bound, rel=1e-3
    )  # an operator shows no rows


@pytest.mark.parametrize(
    "layout", ["C order", "Fortran order", "csr_array", "csc_array", "LinearOperator"]
)
def test_more_rows_than_one_block_or_thread_takes(layout):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((2500, 210)), rng.standard_normal(2500)
    loss = Squared(KINDS[layout](A), b, intercept=True, l2=0.1, sample_weight=weights(2500))
    weight = weights(2500) / weights(2500).sum()
    for x in (rng.standard_normal(loss.shape), rng.standard_normal((*loss.shape, 2))):
        t = A @ x[:-1] + x[-1] - (b if x.ndim == 1 else b[:, None])
        r = (t.T * weight).T
        gradient = np.concatenate([A.T @ r + 0.1 * x[:-1], r.sum(axis=0, keepdims=True)])
        same(
            loss.value_and_grad(x),
            ((t * r).sum(axis=0) / 2 + 0.05 * np.sum(x[:-1] ** 2, axis=0), gradient),
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_is_copied_or_changed(dtype, tmp_path):
    A = np.random.default_rng(0).standard_normal((20, 3)).astype(dtype)
    np.save(tmp_path / "A.npy", A)
    expected = make(LAD, A, np.arange(20)).value_and_grad(np.ones(3))
    for given in (
        *(KINDS[layout](A) for layout in IN_PLACE),
        np.load(tmp_path / "A.npy", mmap_mode="r"),
    ):
        loss, writeable = make(LAD, given, np.arange(20)), given.flags.writeable
        same(loss.value_and_grad(np.ones(3)), expected, rtol=1e-6)
        assert np.shares_memory(loss.A.array, given)
        assert given.flags.writeable == loss.A.array.flags.writeable == writeable
        np.testing.assert_array_equal(given, A)
    for compressed in (sparse.csr_array(A), sparse.csc_array(A)):
        parts = make(Squared, compressed, np.arange(20)).A.parts
        for part, own in zip(
            parts, (compressed.indptr, compressed.indices, compressed.data), strict=True
        ):
            assert np.shares_memory(part, own)


@looped("dtype", [bool, np.int8, np.uint16, np.int64, np.float16, np.longdouble, object])
def test_other_numbers_become_float64(dtype):
    A = (np.arange(12).reshape(4, 3) % 5).astype(dtype)
    for layout in (
        [np.asarray]
        if dtype in (object, np.float16)
        else [np.asarray, sparse.csr_array, sparse.csc_array]
    ):
        value, gradient = make(Squared, layout(A), np.arange(4)).value_and_grad(np.ones(3))
        assert gradient.dtype == np.float64
        same(
            (value, gradient),
            make(Squared, A.astype(float), np.arange(4)).value_and_grad(np.ones(3)),
        )


@pairwise(kind=LINEAR, layout=["C order", "csr_array", "LinearOperator"])
def test_large_predictions_are_safe(kind, layout):
    """With |A x| = 1e4 there is no warning (warnings are errors here) and no overflow, except of e^z itself."""
    A = np.array([[1e4, 0.0], [-1e4, 0.0], [1e4, 0.0], [-1e4, 0.0]])
    loss = make(kind, KINDS[layout](A), [0, 0, 1, 1], intercept=True)
    x = np.zeros(loss.shape)
    x[0] = 1.0 if kind is not Multinomial else [1.0, -1.0, 0.0]
    for point in (x, np.stack([x, -x], axis=-1)):
        with np.errstate(all="raise"):
            value, gradient = loss.value_and_grad(point)
        assert np.all(np.isfinite(value) if kind is not Poisson else np.equal(value, np.inf))
        assert np.isfinite(gradient).all() or kind is Poisson


@pairwise(kind=LINEAR, layout=["C order", "csr_array"])
def test_a_weight_is_a_number_of_copies(kind, layout):
    rng = np.random.default_rng(0)
    A, codes, weight = rng.standard_normal((10, 3)), rng.integers(0, 5, 10), np.arange(10) % 3
    loss = lambda rows, **options: make(
        kind, KINDS[layout](A[rows]), codes[rows], l2=0.1, **options
    )
    x = rng.standard_normal(loss([0]).shape)
    expected = loss(slice(None), sample_weight=weight).value_and_grad(x)
    same(loss(slice(None), sample_weight=weight * 1e-300).value_and_grad(x), expected)
    same(
        loss(slice(None), sample_weight=weight * 8e307).value_and_grad(x), expected
    )  # the sum overflows
    same(loss(weight > 0, sample_weight=weight[weight > 0]).value_and_grad(x), expected)
    same(loss(np.repeat(np.arange(10), weight)).value_and_grad(x), expected)


@pytest.mark.parametrize("layout", ["C order", "Fortran order", "csr_array"])
def test_a_sample_of_weight_zero_may_overflow(layout):
    """Its scores are infinite, and would make exponentials infinite or NaN."""
    rows = np.array([[1e308, 1e308], [1.0, 2.0], [0.5, -1.0]])
    for kind, x in (
        (Multinomial, np.array([[5.0, -9.0, 7.0], [8.0, 1.0, 2.0]])),
        (Poisson, np.array([0.5, 0.25])),
    ):
        loss = make(kind, KINDS[layout](rows), [2, 0, 1], sample_weight=[0, 1, 3])
        alone = make(kind, rows[1:], [0, 1], sample_weight=[1, 3])
        for point in (x, np.stack([x, -x], axis=-1)):
            same(loss.value_and_grad(point), alone.value_and_grad(point))
