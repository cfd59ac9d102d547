"""Odd data for the losses: the answer of plain arrays, or a ValueError or TypeError that is a sentence.

Never a crash, a leaked warning (they are errors here) or a changed argument. Hypothesis prints the
seed of what fails.
"""

import re
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from adagrad_diff import (
    LAD,
    Hinge,
    KernelSVMDual,
    Multinomial,
    Quadratic,
    Quantile,
)
from loss_zoo import EVERY, PARAMETER, named

bounded = settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
SENTENCE = r"[^\n]{12,}[.?]\)?"
DTYPES = ["f8", "f8", "f4", ">f8", ">f4", "f2", "i1", "u1", "i8", "u8", "?", "O", "g", "c16", "U5"]
MAGNITUDES = [0, 0, 0, 0, 1, -1, 3, -8, 18, 38, 150, 300, -30, -320]
FORMATS = ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"]
KINKED = {LAD, Quantile, Hinge}


def odd_numbers(draw, shape):
    """Small integers times a power of ten, sometimes with NaN or infinity, in some dtype; the same in double precision."""
    values = np.array(
        draw(
            st.lists(st.integers(-4, 4), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
        ),
        float,
    )
    values = values.reshape(shape) * 10.0 ** draw(st.sampled_from(MAGNITUDES))
    if values.size and draw(st.integers(0, 11)) == 0:
        values.flat[draw(st.integers(0, values.size - 1))] = draw(
            st.sampled_from([np.nan, np.inf, -np.inf])
        )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(values.astype(draw(st.sampled_from(DTYPES))))


def odd_strides(draw, array, *more):
    """The same entries, elsewhere in memory."""
    kind = draw(
        st.sampled_from(["C", "F", "backwards", "apart", "broadcast", "list", "masked", *more])
    )
    if array.ndim == 0 or kind in ("C", "list"):
        return array.tolist() if kind == "list" else array
    if kind == "F":
        return np.asfortranarray(array)
    if kind == "backwards":
        return np.ascontiguousarray(array[::-1])[::-1]
    if kind == "apart":
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if kind == "broadcast":
        return np.broadcast_to(array[:1], array.shape)
    if kind == "masked":
        return np.ma.masked_array(array, mask=draw(st.booleans()))
    array = array.copy()
    array.flags.writeable = False
    return array


def odd_matrix(draw, array):
    """Dense, sparse of any format, or an operator; sometimes a sparse one that is broken."""
    if (
        array.ndim != 2
        or array.dtype.kind not in "fiub"
        or array.dtype.str[1:] in ("f2", "g")
        or draw(st.booleans())
    ):
        return odd_strides(draw, array)
    kind = draw(st.sampled_from([*FORMATS, "operator", "broken"]))
    native = array.astype(array.dtype.newbyteorder("="))
    if kind == "operator":
        return aslinearoperator(native)
    if kind != "broken":
        return (
            sparse.csr_array(native).asformat(kind)
            if 0 not in native.shape
            else sparse.csr_array(native)
        )
    matrix = draw(st.sampled_from([sparse.csr_array, sparse.csc_array]))(native)
    part = getattr(matrix, draw(st.sampled_from(["indices", "indptr"])))
    if part.size:
        part[draw(st.integers(0, part.size - 1))] = draw(
            st.sampled_from([-1, 1, 7, 2**30, -(2**31)])
        )
    return matrix


def is_sentence(error):
    return re.fullmatch(SENTENCE, str(error)) is not None


def contents(*things):
    """Return text that is the same as long as the arguments are. As text NaN is NaN."""
    parts = [vars(t).values() if sparse.issparse(t) else [np.asanyarray(t)] for t in things]
    arrays = [part for some in parts for part in some if isinstance(part, np.ndarray)]
    return str([(array.dtype, array.tolist()) for array in arrays])


def dense(matrix):
    """In double precision; None of an operator."""
    if hasattr(matrix, "matvec"):
        with np.errstate(invalid="ignore"):
            return matrix @ np.eye(matrix.shape[1])
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)


def construct(kind, A, b, options):
    if kind is Quadratic:
        return Quadratic(A, b)
    if kind is KernelSVMDual:
        return KernelSVMDual(A, b, lam=0.5)
    return kind(A, b, **PARAMETER.get(kind, {}), **options)


def tame(kind, A, b, x):
    """Whether neither overflow nor a kink hit by rounding explains a difference."""
    A, b, x = dense(A), np.asarray(b, np.float64), np.asarray(x, np.float64)
    large = max(np.abs(A).max(), np.abs(b).max(), np.abs(x).max(initial=0.0))
    return large < 1e4 and (kind not in KINKED or (np.round(A) == A).all())


@pytest.mark.parametrize("kind", EVERY, ids=named)
@bounded
@given(data=st.data())
def test_any_data(kind, data):
    draw = data.draw
    square = kind in (Quadratic, KernelSVMDual)
    samples, features = draw(st.integers(0, 5)), draw(st.integers(0, 4))
    shape = draw(
        st.sampled_from([(samples, features)] * 9 + [(samples,), (samples, features, 1), ()])
    )
    array = odd_numbers(draw, shape)
    if square and array.ndim == 2 and array.dtype.kind in "fi" and draw(st.integers(0, 5)):
        with np.errstate(all="ignore"):
            array = array.T @ array  # symmetric, as it has to be
    A = odd_matrix(draw, array)
    count = (np.shape(A) or (1,))[0] + draw(st.sampled_from([0] * 11 + [1]))
    if draw(st.integers(0, 3)):
        codes = np.array(draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)), int)
        b = (
            codes
            if kind in (Multinomial,)
            else np.where(codes == 0, -1.0, 1.0)
            if kind.__name__ != "Poisson"
            else codes * 1.0
        )
    else:
        b = odd_numbers(draw, (count,))
    b = odd_strides(draw, b, "read-only")
    options = {}
    if not square:
        if draw(st.booleans()):
            options["intercept"] = draw(st.booleans())
        if draw(st.booleans()):
            options["l2"] = draw(st.sampled_from([0.0, 0.5, 1e-320, 1e300, -1.0, np.nan, "a"]))
        if draw(st.booleans()):
            weight = odd_numbers(draw, (count,))
            options["sample_weight"] = odd_strides(
                draw, np.abs(weight) if weight.dtype.kind in "fi" else weight, "read-only"
            )
    before = contents(A, b, options.get("sample_weight"))
    x = None
    try:
        loss = construct(kind, A, b, options)
        width = draw(st.sampled_from([(), (), (1,), (3,), (9,)]))
        wrong = draw(st.integers(0, 11)) == 0
        x = odd_strides(
            draw, odd_numbers(draw, (*loss.shape, *width, *[2, 2] * wrong)), "read-only"
        )
        x_before = contents(x)
        value, g = loss.value_and_grad(x)
        assert contents(x) == x_before
        constant = (
            loss.lipschitz() if loss.dtype == np.float64 and not hasattr(A, "matvec") else 0.0
        )
        assert constant >= 0.0
    except (ValueError, TypeError) as error:
        assert is_sentence(error), error  # noqa: PT017
        return
    finally:
        assert contents(A, b, options.get("sample_weight")) == before
    assert g.shape == np.shape(x)
    assert g.dtype == loss.dtype
    assert np.shape(value) == width
    if tame(kind, A, b, x) and options.get("l2", 0.0) < 1e4:
        if options.get("sample_weight") is not None:
            options["sample_weight"] = np.array(options["sample_weight"], float)
        plain = construct(kind, dense(A).astype(loss.dtype), np.array(b, float), options)
        with np.errstate(all="ignore"):
            f, slopes = plain.value_and_grad(np.array(x, float))
        tolerance = 1e-9 if loss.dtype == np.float64 else 1e-4
        largest = np.abs(np.asarray(x, float)).max()
        size = 1.0 + np.abs(f).max() + np.abs(slopes).max() * (1.0 + largest)
        if size < np.finfo(loss.dtype).max / 10:  # beyond that, infinite is right
            np.testing.assert_allclose(value, f, rtol=tolerance, atol=tolerance * size)
            np.testing.assert_allclose(g, slopes, rtol=tolerance, atol=tolerance * size)
