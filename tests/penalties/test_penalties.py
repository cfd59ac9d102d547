"""Penalties: proximal operators against their formulas, their optimality conditions and a convex solver."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adagrad_diff import Squared, minimize
from adagrad_diff.penalties import L1, Box, ElasticNet, NonNegative, Ridge, Zero
from looping import looped

INF = np.inf


def cycle(values, size):
    return np.resize(np.asarray(values, dtype=float), size)


class Case:
    """A penalty for vectors of any size, with the numbers it was made of."""

    def __init__(self, make, l1=(0.0,), l2=(0.0,), lower=(-INF,), upper=(INF,)):
        self.make, self.parts = make, (l1, l2, lower, upper)

    def __call__(self, size):
        """The penalty, and l1, l2, lower and upper for each coordinate."""
        return self.make(size), [cycle(part, size) for part in self.parts]


LAM, LOW, HIGH = (0.5, 0.0, 3.0, 1e-6), (-INF, -1.0, 0.0, 1 / 300), (0.5, INF, 0.0, 1 / 3)
CASES = {
    "Zero": Case(lambda d: Zero()),
    "L1": Case(lambda d: L1(0.7), l1=(0.7,)),
    "L1, zero": Case(lambda d: L1(0)),
    "L1, a strength each": Case(lambda d: L1(cycle(LAM, d)), l1=LAM),
    "Ridge": Case(lambda d: Ridge(2.5), l2=(2.5,)),
    "Ridge, a strength each": Case(lambda d: Ridge(cycle(LAM, d)), l2=LAM),
    "ElasticNet": Case(lambda d: ElasticNet(0.3, 1.5), l1=(0.3,), l2=(1.5,)),
    "ElasticNet, one strength and one each": Case(lambda d: ElasticNet(0.3, cycle(LAM, d)), l1=(0.3,), l2=LAM),
    "Box": Case(lambda d: Box(-1.0, 2.0), lower=(-1.0,), upper=(2.0,)),
    "Box, small": Case(lambda d: Box(0.0, 1 / 300), lower=(0.0,), upper=(1 / 300,)),
    "Box, infinite": Case(lambda d: Box(-INF, INF)),
    "Box, half infinite": Case(lambda d: Box(-INF, 1 / 3), upper=(1 / 3,)),
    "Box, bounds each": Case(lambda d: Box(cycle(LOW, d), cycle(HIGH, d)), lower=LOW, upper=HIGH),
    "Box, one bound and one each": Case(lambda d: Box(cycle(LOW, d), 1.0), lower=LOW, upper=(1.0,)),
    "NonNegative": Case(lambda d: NonNegative(), lower=(0.0,)),
}
every = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
quick = settings(deadline=None, max_examples=25)
entries = st.one_of(st.floats(-1e3, 1e3, width=32), st.sampled_from([0.0, -0.0, 1e-30, -1e-30, 1e-300, 1e30, -1e30, 1e18, 0.7]))
steps = st.floats(-8.0, 9.0).map(lambda power: 10.0**power)


@st.composite
def points(draw, count=1, values=entries):
    """`count` points z of one shape (d,) or (d, B), of one dtype, and a step of a shape that fits them."""
    size, trajectories = draw(st.integers(1, 50)), draw(st.sampled_from([None, 1, 3]))
    shape = (size,) if trajectories is None else (size, trajectories)
    fits = [(), (size,)] if trajectories is None else [(), (size,), (1, trajectories), shape]
    step = draw(arrays(np.float64, draw(st.sampled_from(fits)), elements=steps))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return *(draw(arrays(np.float64, shape, elements=values)).astype(dtype) for _ in range(count)), step


def expand(z, step, parts):
    """Step, l1, l2, lower and upper, one per entry of z, rounded to its dtype where the penalty must round them."""
    columns = lambda v: (v[:, None] if z.ndim == 2 and v.ndim == 1 else v) + np.zeros(z.shape)  # noqa: E731
    return columns(step.astype(z.dtype)).astype(float), *map(columns, parts)


@every
@quick
@given(data=points())
def test_prox_is_the_formula(case, data):
    z, step = data
    before = z.copy()
    penalty, parts = case(len(z))
    p = penalty.prox(z, step)
    s, l1, l2, lower, upper = expand(z, step, parts)
    expected = np.clip(np.sign(z) * np.maximum(np.abs(z) - s * l1, 0.0) / (1.0 + s * l2), lower, upper)
    rounding = 4 * np.finfo(z.dtype).eps * np.where(l1 > 0, np.abs(z), np.abs(expected)) + np.finfo(z.dtype).smallest_subnormal
    assert np.all(np.abs(p - expected) <= rounding)
    assert p.dtype == z.dtype
    assert p.shape == z.shape
    assert not np.shares_memory(p, z)
    np.testing.assert_array_equal(z, before)  # z is as it was,
    np.testing.assert_array_equal(np.signbit(z), np.signbit(before))
    out = np.empty_like(z)
    assert penalty.prox(z, step, out=out) is out
    assert penalty.prox(z, step, out=z) is z  # unless it is to hold the result
    np.testing.assert_array_equal(out, p)
    np.testing.assert_array_equal(z, p)


@every
@quick
@given(data=points())
def test_prox_is_optimal(case, data):
    """(z - p) / step is a subgradient of the penalty at p, up to rounding; and the penalty is finite there."""
    z, step = data
    penalty, parts = case(len(z))
    p = penalty.prox(z, step)
    s, l1, l2, lower, upper = expand(z, step, parts)
    lower, upper = lower.astype(z.dtype), upper.astype(z.dtype)
    assert np.all((p >= lower) & (p <= upper))
    limits = np.finfo(z.dtype)
    rounding = 8 * limits.eps * np.abs(z) + limits.smallest_subnormal * (1.0 + s * l2)
    rest = z.astype(float) - p - s * l2 * p  # must lie in step times the subdifferential of the rest at p
    least = np.where(p > 0, s * l1, -s * l1) - np.where(p <= lower, INF, 0.0)
    most = np.where(p < 0, -s * l1, s * l1) + np.where(p >= upper, INF, 0.0)
    assert np.all((rest >= least - rounding) & (rest <= most + rounding))
    value = penalty.value(p)
    assert np.isfinite(value).all()
    assert np.shape(value) == z.shape[1:]


@every
@quick
@given(data=points(count=2, values=st.floats(-1e3, 1e3, width=32)))
def test_firmly_nonexpansive_in_the_metric(case, data):
    z, y, step = data
    penalty, parts = case(len(z))
    s = expand(z, step, parts)[0]
    change = penalty.prox(z, step).astype(float) - penalty.prox(y, step)
    rounding = 16 * np.finfo(z.dtype).eps * np.maximum(np.abs(z), np.abs(y)).astype(float) ** 2
    assert np.sum(change**2 / s) <= np.sum((change * (z.astype(float) - y) + rounding) / s)


@every
def test_value(case):
    for x in (np.array([0.5, -2.0, 0.0, 0.25, 1.0]), np.array([[0.25, 0.0], [3.0, -1.0], [0.0, 0.0], [0.125, 0.25]])):
        penalty, parts = case(len(x))
        _, l1, l2, lower, upper = expand(x, np.ones(()), parts)
        outside = np.where((x < lower) | (x > upper), INF, 0.0)
        expected = np.sum(l1 * np.abs(x) + l2 / 2 * x**2 + outside, axis=0)
        np.testing.assert_allclose(penalty.value(x), expected, rtol=1e-14)
        np.testing.assert_allclose(penalty.value(x.astype(np.float32)), expected, rtol=1e-14)


@every
@looped("dtype", [np.float32, np.float64])
def test_extreme_numbers(case, dtype):
    """No warning (they are errors here), no overflow; NaN stays NaN."""
    largest = np.finfo(dtype).max
    z = np.array([largest, -largest, np.finfo(dtype).tiny, -0.0, 0.0, np.nan, 1.0], dtype)
    penalty, parts = case(len(z))
    _, _, l2, lower, upper = expand(z, np.ones(()), parts)
    for step in (1e-8, 1e9, np.logspace(-8, 9, len(z))):
        p = penalty.prox(z, step)
        np.testing.assert_array_equal(np.isnan(p), np.isnan(z))
        free = (l2 == 0) & (lower < -largest) & (upper > largest)
        np.testing.assert_array_equal(p[:2][free[:2]], z[:2][free[:2]])
        np.testing.assert_array_equal(p[3:5], np.clip(0.0, lower, upper)[3:5].astype(dtype))
    assert np.isnan(penalty.prox(np.full((len(z), 2), np.nan, dtype), 1.0)).all()


@pytest.mark.parametrize("penalty", [L1(0.5), Ridge(0.5), ElasticNet(0.5, 0.5), L1([0.5, 0.0, 1.0])], ids=repr)
def test_the_value_at_infinity_is_infinite(penalty):
    for x in ([INF, 0.0, 1.0], [INF, -INF, 1.0], [[INF], [0.0], [0.0]]):
        assert penalty.value(x) == INF
    assert np.isnan(penalty.value([INF, 1.0, np.nan]))


@pytest.mark.parametrize("bound", [1e300, np.finfo(np.float64).max])
def test_bounds_beyond_the_numbers(bound):
    for dtype in (np.float32, np.float64):
        z = np.array([1.0, -np.finfo(dtype).max], dtype)
        np.testing.assert_array_equal(Box(0.0, bound).prox(z, 1.0), [1.0, 0.0])
        assert Box(-bound, bound).value(z[:1]) == 0.0


def test_a_box_has_walls():
    assert Box(0.0, 1.0).value([0.5, 1.0 + 1e-6]) == INF
    assert Box(0.0, 1e-3).value([-1e-9]) == INF
    assert NonNegative().value([[1.0, 1.0], [0.0, -1e-6]]).tolist() == [0.0, INF]
    assert Box(0.0, 1.0).value([np.nan]) == INF


@pytest.mark.peer
@every
def test_prox_equals_the_solver(case):
    import cvxpy as cp

    rng = np.random.default_rng(0)
    for size in (1, 4, 7):
        penalty, (l1, l2, lower, upper) = case(size)
        z, step = 2 * rng.standard_normal(size), 10.0 ** rng.uniform(-1, 1, size)
        x = cp.Variable(size)
        objective = cp.sum_squares(cp.multiply(x - z, step**-0.5)) / 2 + l1 @ cp.abs(x) + l2 @ cp.square(x) / 2
        bounds = [x[i] >= lower[i] for i in range(size) if lower[i] > -INF] + [
            x[i] <= upper[i] for i in range(size) if upper[i] < INF
        ]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="cvxpy")
            cp.Problem(cp.Minimize(objective), bounds).solve(solver="CLARABEL")
        np.testing.assert_allclose(penalty.prox(z, step), x.value, atol=1e-5)


STRENGTH = r"must be a number >= 0, or one per coordinate. Got .*"
ERRORS = [
    *(
        (lambda v=v: L1(v), r"The 'lam' parameter of L1 " + STRENGTH)
        for v in (-1.0, np.nan, INF, [1.0, -1.0], [[1.0]], [], "a")
    ),
    *(
        (lambda v=v: Ridge(v), r"The 'lam' parameter of Ridge " + STRENGTH)
        for v in (-1.0, np.nan, INF, [1.0, np.nan], [[1.0]], [])
    ),
    *((lambda v=v: ElasticNet(v, 1.0), r"The 'l1' parameter of ElasticNet " + STRENGTH) for v in (-1.0, np.nan)),
    *((lambda v=v: ElasticNet(1.0, v), r"The 'l2' parameter of ElasticNet " + STRENGTH) for v in (-1.0, np.nan)),
    (lambda: L1([1.0, 2.0]).check_size(3), r"L1\(.*2 strengths, but there are 3 penalised coordinates"),
    (lambda: Ridge([1.0, 2.0]).check_size(3), r"Ridge\(.*2 strengths, but there are 3 penalised coordinates"),
    (lambda: ElasticNet(1.0, [1.0, 2.0]).check_size(3), r"ElasticNet\(.*2 strengths, but there are 3 penalised coordinates"),
    (lambda: Box([0.0, 0.0], 1.0).check_size(3), r"Box has 2 bounds, but there are 3 penalised coordinates"),
    (lambda: Box(0.0, [1.0, 1.0]).check_size(3), r"Box has 2 bounds, but there are 3 penalised coordinates"),
    (lambda: minimize(Squared(np.eye(3), [1, 2, 3]), penalty=L1([1.0, 2.0]), eta=1.0), r"2 strengths, but there are 3"),
    (lambda: minimize(Squared(np.eye(3), [1, 2, 3], intercept=True), penalty=Box([0] * 4, 1), eta=1.0), r"4 bounds, .* are 3"),
    (lambda: L1([1.0, 2.0, 3.0]).prox(np.ones(5), 1.0), r"3 strengths, but there are 5"),
    (lambda: L1([1.0, 2.0, 3.0]).value(np.ones(5)), r"3 strengths, but there are 5"),
    (lambda: Box(1.0, 0.0), r"Box is empty: lower must not exceed upper. It does at coordinate 0"),
    (lambda: Box([0.0, 2.0], [1.0, 1.0]), r"Box is empty: lower must not exceed upper. It does at coordinate 1"),
    (lambda: Box(INF, INF), r"Box is empty"),
    (lambda: Box(-INF, -INF), r"Box is empty"),
    (lambda: Box(np.nan, 1.0), r"bounds of Box must be numbers .* without NaN"),
    (lambda: Box(0.0, [1.0, np.nan]), r"bounds of Box must be numbers .* without NaN"),
    (lambda: Box([[0.0]], 1.0), r"bounds of Box must be numbers or one-dimensional arrays"),
    (lambda: Box([0.0, 0.0], [1.0, 1.0, 1.0]), r"bounds of Box must have the same length. Got 2 and 3"),
    *(
        (lambda p=p: p.prox(np.ones(3), np.ones(2)), r"'step' must have shape .* Got \(2,\)")
        for p in (L1(1), Ridge(1), ElasticNet(1, 1))
    ),
    *(
        (lambda s=s: L1(1.0).prox(np.ones((3, 2)), np.ones(s)), r"'step' must have shape .* Got \(")
        for s in [(2,), (2, 3), (3, 3)]
    ),
]


@looped(("call", "sentence"), ERRORS)
def test_errors(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
