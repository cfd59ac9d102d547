"""Penalties on numbers from 1e-100 to 1e100, of any dtype and spread.

A prox is compared with the naive one in extended or exact arithmetic; value, polar and conjugate fulfill the inequalities
that define them. Nothing warns (warnings are errors here) and nothing is NaN.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adagrad_diff import penalties as p
from prox_cases import CASES
from prox_harness import STEPS, distance, draw_step, shifts

LONG = np.longdouble
every = pytest.mark.parametrize("case", CASES, ids=str)
seeds = st.integers(0, 2**32 - 1)
exponents = st.one_of(st.integers(-90, 90), st.sampled_from([-90, -38, 0, 0, 18, 38, 90]))
spreads = st.sampled_from([0, 3, 30])


@st.composite
def numbers(draw, shape, dtype):
    """Normal numbers times powers of ten, some of them zeros."""
    rng = np.random.default_rng(draw(seeds))
    low, high = (-100, 100) if dtype == np.float64 else (-44, 37)
    power = np.clip(draw(exponents) + rng.uniform(-1, 1, shape) * draw(spreads), low, high)
    with np.errstate(all="ignore"):
        z = (rng.standard_normal(shape) * 10.0**power).astype(dtype)
    z[rng.random(shape) < draw(st.sampled_from([0.0, 0.3]))] = 0.0
    return z


@every
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_the_prox_of_any_numbers(case, data):
    d, dtype = (
        case.size(data.draw(st.integers(1, 9))),
        data.draw(st.sampled_from([np.float64, np.float64, np.float32])),
    )
    rng = np.random.default_rng(data.draw(seeds))
    penalty = case.make(d, rng)
    z = data.draw(numbers(d, dtype))
    kind = data.draw(st.sampled_from(STEPS)) if penalty.accepts == "diagonal" else "one"
    power = data.draw(st.sampled_from([0, 0, 0, -30, 30])) if dtype == np.float64 else 0
    step = (draw_step(kind, d, rng) * 10.0**power).astype(dtype)
    x = penalty.prox(z, step)
    assert (x.dtype, x.shape) == (dtype, z.shape)

    exact_z, exact_step = z.astype(np.float64), step.astype(np.float64)
    with np.errstate(all="ignore"):
        expected = case.naive(penalty, exact_z, exact_step)
    limits = np.finfo(dtype)
    finite = np.abs(expected) < limits.max
    np.testing.assert_array_equal(np.isfinite(x), finite)
    if finite.all():
        # Affine treats what is less than 1e-30 as zero where b = 0.
        added = 1e-19 if isinstance(penalty, p.Affine) else shifts(penalty)
        sizes = sum(distance(v, exact_step) for v in (exact_z, expected, np.full(d, added)))
        smallest = distance(np.full(d, 4 * float(limits.smallest_subnormal)), exact_step)
        assert (
            distance(x.astype(LONG) - expected, exact_step)
            <= (1e-10 if dtype == np.float64 else 1e-5) * sizes + smallest
        )

    value = penalty.value(x)
    if "set" not in penalty.properties:
        assert value >= 0.0
    elif not x.any() or 1e6 * limits.tiny < np.abs(x).max() < np.inf:  # rounding is relative
        # Equations that are solved together have rounding errors relative to the largest terms of all.
        assert value == 0.0 or (case.name == "Affine" and np.abs(z).max() > 1e20)


@every
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_the_inequalities_that_define_polar_and_conjugate(case, data):
    """<x, y> <= phi(x) + phi*(y), and <x, y> <= phi(x) polar(y) for a norm, for numbers of any size."""
    d = case.size(data.draw(st.integers(1, 9)))
    penalty = case.make(d, np.random.default_rng(data.draw(seeds)))
    x, y = penalty.prox(data.draw(numbers(d, np.float64)), 1.0), data.draw(numbers(d, np.float64))
    value, product = LONG(penalty.value(x)), np.asarray(x, LONG) * np.asarray(y, LONG)
    slack = 1e-8 * np.abs(product).sum() + LONG(1e-300)
    try:
        conjugate = LONG(penalty.conjugate(y))
    except ValueError as error:
        assert "not known" in str(error)  # noqa: PT017
    else:
        slack_of_sets = (
            1e-8 * np.abs(x).max() * np.abs(np.asarray(y, LONG)).sum()
        )  # x may be outside by that much
        assert product.sum() <= value + conjugate + slack + slack_of_sets + 1e-9 * abs(conjugate)
    if {"norm", "seminorm"} & penalty.properties:
        polar = LONG(penalty.polar(y))
        assert polar >= 0
        if value > 0:
            assert (
                product.sum() <= value * (polar * LONG(1 + 1e-9) + LONG(1e-322)) + slack
            )  # the last of a small one's digits
