"""Penalties under fire: numbers from 1e-320 to 1e300, odd shapes, dtypes and strides. Hypothesis prints what fails.

A prox is the one of the twin, in extended or exact arithmetic; value, polar and conjugate fulfil the inequalities that define
them. Nothing warns (warnings are errors here), nothing is changed, nothing is NaN.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prox_calculus
import prox_chains
import prox_norms
import prox_planes
from adagrad_diff import penalties as p
from looping import looped
from prox_harness import STEPS, draw_step

LONG = np.longdouble
CASES = [case for module in (prox_norms, prox_chains, prox_planes, prox_calculus) for case in module.CASES]
every = pytest.mark.parametrize("case", CASES, ids=str)
seeds = st.integers(0, 2**32 - 1)
exponents = st.one_of(st.integers(-320, 300), st.sampled_from([-320, -308, -160, -150, 0, 0, 18, 38, 150, 160, 300]))
spreads = st.sampled_from([0, 3, 30])


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


layouts = {
    "C": lambda a: a,
    "Fortran": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 3, axis=0)[::3],
    "backwards": lambda a: a[::-1].copy()[::-1],
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "read-only": frozen,
}


@st.composite
def numbers(draw, shape, dtype):
    """Normal numbers times powers of ten, some of them zeros."""
    rng = np.random.default_rng(draw(seeds))
    low, high = (-320, 300) if dtype == np.float64 else (-44, 37)
    power = np.clip(draw(exponents) + rng.uniform(-1, 1, shape) * draw(spreads), low, high)
    with np.errstate(all="ignore"):
        z = (rng.standard_normal(shape) * 10.0**power).astype(dtype)
    z[rng.random(shape) < draw(st.sampled_from([0.0, 0.3]))] = 0.0
    return z


def distance(v, step):
    """In the metric of the prox, in a precision that has room for the squares: a prox does not expand it."""
    return np.sqrt(np.sum(np.asarray(v, LONG) ** 2 / np.asarray(step, LONG)))


def shifts(penalty):
    """The numbers that z is added to: relative to them it is rounded."""
    if isinstance(penalty, p.Affine):
        return 1e-19  # where b = 0, what is less than 1e-30 is as good as zero
    inner = getattr(penalty, "penalty", None)
    return float(np.max(np.abs(getattr(penalty, "shift", 0.0)))) + (0.0 if inner is None else 10 * shifts(inner))


@every
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_the_prox_of_any_numbers(case, data):
    d, dtype = case.size(data.draw(st.integers(1, 9))), data.draw(st.sampled_from([np.float64, np.float64, np.float32]))
    rng = np.random.default_rng(data.draw(seeds))
    penalty = case.make(d, rng)
    z = data.draw(numbers(d, dtype))
    kind = data.draw(st.sampled_from(STEPS)) if penalty.accepts == "diagonal" else "one"
    power = data.draw(st.sampled_from([0, 0, 0, -290, -100, 100, 290])) if dtype == np.float64 else 0
    step = (draw_step(kind, d, rng) * 10.0**power).astype(dtype)
    x = penalty.prox(z, step)
    assert (x.dtype, x.shape) == (dtype, z.shape)

    exact_z, exact_step = z.astype(np.float64), step.astype(np.float64)
    with np.errstate(all="ignore"):
        twin = case.naive(penalty, exact_z, exact_step)
    finite, limits = np.abs(twin) < np.finfo(dtype).max, np.finfo(dtype)
    np.testing.assert_array_equal(np.isfinite(x), finite)
    if finite.all():
        sizes = distance(exact_z, exact_step) + distance(twin, exact_step) + distance(np.full(d, shifts(penalty)), exact_step)
        smallest = distance(np.full(d, 4 * float(limits.smallest_subnormal)), exact_step)
        assert distance(x.astype(LONG) - twin, exact_step) <= (1e-10 if dtype == np.float64 else 1e-5) * sizes + smallest

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
        slack_of_sets = 1e-8 * np.abs(x).max() * np.abs(np.asarray(y, LONG)).sum()  # x may be outside by that much
        assert product.sum() <= value + conjugate + slack + slack_of_sets + 1e-9 * abs(conjugate)
    if {"norm", "seminorm"} & penalty.properties:
        polar = LONG(penalty.polar(y))
        assert polar >= 0
        if value > 0:
            assert product.sum() <= value * (polar * LONG(1 + 1e-9) + LONG(1e-322)) + slack  # the last of a small one's digits


@every
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_any_form_of_the_arguments(case, data):
    """Bit for bit what contiguous vectors of native floats give, one by one; the arguments stay as they were."""
    d, trajectories = case.size(data.draw(st.integers(1, 6))), data.draw(st.sampled_from([None, 1, 3]))
    dtype = data.draw(st.sampled_from([np.float64, np.float32]))
    shape = (d,) if trajectories is None else (d, trajectories)
    rng = np.random.default_rng(data.draw(seeds))
    penalty, z = case.make(d, rng), data.draw(numbers(shape, dtype))
    shapes = [(), (1,)] if trajectories is None else [(), (1,), (1, trajectories)]
    if penalty.accepts == "diagonal":
        shapes += [(d,), shape]
    step = 10.0 ** rng.uniform(-2, 2, data.draw(st.sampled_from(shapes)))
    full = np.broadcast_to(step[:, None] if step.ndim == 1 and z.ndim == 2 else step, shape)
    columns = [penalty.prox(a.copy(), s.copy()) for a, s in zip(z.reshape(d, -1).T, full.reshape(d, -1).T, strict=True)]
    expected = np.stack(columns, axis=1).reshape(shape)

    given_z, given_step = (layouts[data.draw(st.sampled_from([*layouts]))](a) for a in (z, np.atleast_1d(step)))
    before = given_z.tobytes(), given_step.tobytes()
    np.testing.assert_array_equal(penalty.prox(given_z, given_step), expected)
    out = layouts[data.draw(st.sampled_from(["C", "Fortran", "strided", "backwards"]))](np.full(shape, np.nan, dtype))
    assert penalty.prox(given_z, given_step, out) is out
    np.testing.assert_array_equal(out, expected)
    assert np.shape(penalty.value(given_z)) == shape[1:]
    assert (given_z.tobytes(), given_step.tobytes()) == before


EXTREMES = [5e-324, 1e-320, 1e-300, 1e-160, 1.0, 1e160, 1e300, 1e307]
PARAMETERS = {
    "L1": p.L1,
    "Ridge": p.Ridge,
    "ElasticNet": lambda v: p.ElasticNet(v, v),
    "GroupL2": lambda v: p.GroupL2(v, [0, 1, 0]),
    "SparseGroupL2": lambda v: p.SparseGroupL2(v, v, [0, 1, 0]),
    "L2": p.L2,
    "LInf": p.LInf,
    "HuberPenalty": lambda v: p.HuberPenalty(v, v),
    "HuberPenalty, lam": lambda v: p.HuberPenalty(v, 1.0),
    "TotalVariation1D": p.TotalVariation1D,
    "FusedLasso": lambda v: p.FusedLasso(v, v),
    "FusedLasso, l1": lambda v: p.FusedLasso(v, 1.0),
    "SLOPE": lambda v: p.SLOPE([v, v, 0.0]),
    "Nuclear": lambda v: p.Nuclear(v, (1, 3)),
    "Box": lambda v: p.Box(-v, v),
    "Simplex": p.Simplex,
    "L1Ball": p.L1Ball,
    "L2Ball": p.L2Ball,
    "LInfBall": p.LInfBall,
    "Monotone": lambda v: p.Monotone(),
    "Hyperplane": lambda v: p.Hyperplane([1.0, -1.0, 0.5], v),
    "HalfSpace": lambda v: p.HalfSpace([1.0, -1.0, 0.5], -v),
    "Affine": lambda v: p.Affine([[1.0, -1.0, 0.5]], [v]),
    "BoxHyperplane": lambda v: p.BoxHyperplane(-v, np.inf, [1.0, -1.0, 0.5], v),
    "Scaled": lambda v: p.Scaled(p.L2(1.0), v),
    "Translated": lambda v: p.Translated(p.L2(1.0), v),
    "Separable": lambda v: p.Separable([(slice(0, 2), p.L2(v)), ([2], p.L1(v))]),
    "Unpenalised": lambda v: p.Unpenalised(p.L2Ball(v), [1]),
}


@pytest.mark.parametrize("which", PARAMETERS)
@looped("parameter", EXTREMES)
def test_parameters_of_any_size(which, parameter):
    """No warning, and a prox that is a number, with strengths, radii, steps and points up to the ends of the range."""
    penalty = PARAMETERS[which](parameter)
    for dtype in (np.float64, np.float32):
        least, most = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
        extremes = sorted({min(max(size, float(least)), float(most)) for size in EXTREMES})
        for size in extremes:
            z = np.array([1.0, -0.5, 0.25]) * size
            for s in (*extremes, [1e-300, 1.0, 1e300]):
                step = np.clip(s, least, most).astype(dtype)
                step = float(np.max(step)) if penalty.accepts == "scalar" else step
                x = penalty.prox(z.astype(dtype), step)
                assert not np.isnan(x).any(), (dtype, size, s)
            for name in ("value", "conjugate", "polar"):
                try:
                    result = getattr(penalty, name)(z.astype(dtype))
                except ValueError as error:
                    assert "is not known" in str(error) or "no polar" in str(error)  # noqa: PT017
                else:
                    assert not np.isnan(result), (name, dtype, size)
