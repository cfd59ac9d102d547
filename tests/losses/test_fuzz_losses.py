"""Odd data for the losses: the answer of plain arrays, or a ValueError or TypeError.

Never a crash, a leaked warning (they are errors here) or a changed argument. Hypothesis prints the
seed of what fails.
"""

import re
import warnings
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adagrad_diff import LAD, Hinge, KernelSVMDual, Quadratic, Quantile
from loss_zoo import EVERY, PARAMETER, named, targets

bounded = settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
SENTENCE = r"[^\n]{12,}[.?]\)?"
DTYPES = ["f8", "f8", "f4", ">f8", "f2", "i1", "u8", "?", "O", "g", "c16", "U5"]
MAGNITUDES = [0, 0, 0, 0, 1, -1, 3, -8, 38, 150, 300, -30, -320]
KINDS = ["C", "C", "F", "backwards", "apart", "list", "masked", "read-only"]
NONSMOOTH = {LAD, Quantile, Hinge}


def odd_numbers(draw, shape):
    """Return small integers times a power of ten, sometimes with NaN or infinity, in some dtype."""
    size = int(np.prod(shape))
    values = np.array(draw(st.lists(st.integers(-4, 4), min_size=size, max_size=size)), float)
    values = values.reshape(shape) * 10.0 ** draw(st.sampled_from(MAGNITUDES))
    if size and draw(st.integers(0, 11)) == 0:
        values.flat[draw(st.integers(0, size - 1))] = draw(st.sampled_from([np.nan, -np.inf]))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(values.astype(draw(st.sampled_from(DTYPES))))


def odd_layout(draw, array):
    """Return the same entries, elsewhere in memory."""
    kind = draw(st.sampled_from(KINDS))
    if kind == "list":
        return array.tolist()
    if kind == "F":
        return np.asfortranarray(array)
    if kind == "masked":
        return np.ma.masked_array(array, mask=draw(st.booleans()))
    if array.ndim and kind == "backwards":
        return np.ascontiguousarray(array[::-1])[::-1]
    if array.ndim and kind == "apart":
        return np.repeat(array, 2, axis=-1)[..., ::2]
    array = array.copy()
    array.flags.writeable = kind != "read-only"
    return array


def contents(*things):
    """Return text that is the same as long as the arguments are. As text NaN is NaN."""
    return str([(array.dtype, array.tolist()) for array in map(np.asanyarray, things)])


def construct(kind, A, b, options):
    if kind is KernelSVMDual:
        options = {"lam": 0.5}
    return kind(A, b, **PARAMETER.get(kind, {}), **options)


def tame(kind, A, b, x):
    """Return whether neither overflow nor a kink hit by rounding explains a difference."""
    arrays = [np.asarray(array, np.float64) for array in (A, b, x)]
    large = max(np.abs(array).max(initial=0.0) for array in arrays)
    return large < 1e4 and (kind not in NONSMOOTH or (np.round(arrays[0]) == arrays[0]).all())


@pytest.mark.parametrize("kind", EVERY, ids=named)
@bounded
@given(data=st.data())
def test_any_data(kind, data):
    draw, square = data.draw, kind in (Quadratic, KernelSVMDual)
    usual = draw(st.integers(0, 5)), draw(st.integers(0, 4))
    array = odd_numbers(draw, draw(st.sampled_from([usual] * 9 + [usual[:1], (*usual, 1), ()])))
    if square and array.ndim == 2 and array.dtype.kind in "fi" and draw(st.integers(0, 5)):
        with np.errstate(all="ignore"):
            array = array.T @ array  # symmetric, as it has to be
    A = odd_layout(draw, array)
    count = (np.shape(A) or (1,))[0] + draw(st.sampled_from([0] * 11 + [1]))
    b = odd_numbers(draw, (count,))
    if draw(st.integers(0, 3)):
        b = targets(kind, draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    b, options = odd_layout(draw, b), {}
    if not square:
        options["intercept"] = draw(st.booleans())
        options["l2"] = draw(st.sampled_from([0.0, 0.5, 1e-320, 1e300, -1.0, np.nan, "a"]))
        if draw(st.booleans()):
            options["sample_weight"] = odd_layout(draw, odd_numbers(draw, (count,)))
    before = contents(A, b, options.get("sample_weight"))
    try:
        loss = construct(kind, A, b, options)
        width = draw(st.sampled_from([(), (), (1,), (3,), (9,)]))
        wrong = draw(st.integers(0, 11)) == 0
        x = odd_layout(draw, odd_numbers(draw, (*loss.shape, *width, *[2, 2] * wrong)))
        x_before = contents(x)
        value, g = loss.value_and_grad(x)
        assert contents(x) == x_before
        with suppress(ValueError):  # a loss may have no Lipschitz constant
            assert loss.dtype == np.float32 or loss.lipschitz() >= 0.0
    except (ValueError, TypeError) as error:
        assert re.fullmatch(SENTENCE, str(error)), error  # noqa: PT017
        return
    finally:
        assert contents(A, b, options.get("sample_weight")) == before
    assert (g.shape, g.dtype, np.shape(value)) == (np.shape(x), loss.dtype, width)
    if tame(kind, A, b, x) and options.get("l2", 0.0) < 1e4:
        if "sample_weight" in options:
            options["sample_weight"] = np.array(options["sample_weight"], float)
        plain = construct(kind, np.asarray(A, loss.dtype), np.array(b, float), options)
        with np.errstate(all="ignore"):
            f, slopes = plain.value_and_grad(np.array(x, float))
        tolerance = 1e-9 if loss.dtype == np.float64 else 1e-4
        largest = np.abs(np.asarray(x, float)).max()
        size = 1.0 + np.abs(f).max() + np.abs(slopes).max() * (1.0 + largest)
        if size < np.finfo(loss.dtype).max / 10:  # beyond that, infinite is right
            np.testing.assert_allclose(value, f, rtol=tolerance, atol=tolerance * size)
            np.testing.assert_allclose(g, slopes, rtol=tolerance, atol=tolerance * size)
