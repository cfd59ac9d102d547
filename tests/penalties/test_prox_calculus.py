"""Penalties of single coordinates and what is made of them: twins, conditions, conjugates, and sums of parts."""

import numpy as np
import pytest

from adagrad_diff.penalties import L1, Box, ElasticNet, NonNegative, Ridge, Zero
from adagrad_diff.penalties.l2 import L2
from adagrad_diff.penalties.numerical import NumericalProx
from adagrad_diff.penalties.psd import PSD
from adagrad_diff.penalties.separable import Separable, Unpenalised
from adagrad_diff.penalties.transformed import Precomposed, Scaled, Translated
from looping import looped
from prox_calculus import CASES
from prox_harness import STEPS, draw_step, nan_in_one_trajectory, points

INF = np.inf
every = pytest.mark.parametrize("case", CASES, ids=str)


@every
@looped("d", [1, 2, 5, 40, 200])
def test_prox(case, d):
    """Against the twin and the optimality condition."""
    rng, d = np.random.default_rng(d), case.size(d)
    penalty = case.make(d, rng)
    moved = 0.0 if "Translated" not in case.name and "nested" not in case.name else 1e-15  # relative to the shift
    for kind in STEPS:
        step = draw_step(kind, d, rng)
        for z in points(d, rng):
            before = z.copy()
            x, twin = penalty.prox(z, step), case.naive(penalty, z, step)
            np.testing.assert_array_equal(z, before)
            assert np.isfinite(penalty.value(x))
            assert case.violation(penalty, z, step, x) <= 1e-14
            np.testing.assert_allclose(x, twin, rtol=1e-13, atol=max(moved, 1e-25 * np.abs(z).max()))
            if "set" in penalty.properties:
                assert penalty.prox(x, 1.0).tobytes() == x.tobytes()


@every
def test_not_a_number(case):
    assert list(nan_in_one_trajectory(case))


@every
def test_conjugate(case):
    """phi(x) + phi*(u) >= <x, u>, with equality where u is a subgradient, as (z - x) / step is."""
    rng, d = np.random.default_rng(3), case.size(9)
    penalty = case.make(d, rng)
    z, step = 3 * rng.standard_normal((d, 8)), rng.uniform(0.5, 2.0, (d, 1))
    x = penalty.prox(z, step)
    u = (z - x) / step
    inner = np.sum(x * u, axis=0)
    np.testing.assert_allclose(penalty.value(x) + penalty.conjugate(u), inner, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose([penalty.conjugate(v.copy()) for v in u.T], penalty.conjugate(u), rtol=1e-12, atol=1e-12)
    other = penalty.prox(3 * rng.standard_normal((d, 40)), step)
    gap = penalty.value(other)[:, None] + penalty.conjugate(u) - other.T @ u
    assert (gap >= -1e-8 * (1 + np.abs(inner))).all()
    if {"norm", "seminorm"} & penalty.properties:
        polar = penalty.polar(u)
        assert polar.shape == (8,)
        assert (polar <= 1 + 1e-9).all()
        np.testing.assert_array_equal(penalty.conjugate(u), 0.0)
        big = rng.standard_normal((d, 8))  # polar(y) <= t iff the prox of y with step t is 0
        t = penalty.polar(big)
        for k in np.flatnonzero((t > 0) & (t < INF)):
            assert np.abs(penalty.prox(big[:, k].copy(), t[k] * (1 + 1e-9))).max() <= 1e-8
            assert np.abs(penalty.prox(big[:, k].copy(), t[k] * (1 - 1e-3))).max() > 0
            assert penalty.conjugate(big[:, k] / t[k] * (1 + 1e-6)) == INF
    else:
        with pytest.raises(ValueError, match=r"is not a norm or seminorm"):
            penalty.polar(u)


def test_conjugates_in_numbers():
    assert L1([1.0, 0.0]).polar([0.5, 0.0]) == 0.5
    assert L1([1.0, 0.0]).polar([0.5, 1e-9]) == INF
    assert L1(2.0).conjugate([2.0 * (1 + 1e-12), -2.0]) == 0.0
    assert L1(2.0).conjugate([2.0 + 1e-6, 0.0]) == INF
    assert L1(2.0).conjugate(np.array([2.0 + 1e-6, 0.0], np.float32)) == 0.0
    assert L1(1.0).properties == {"separable", "norm"}
    assert L1([1.0, 0.0]).properties == L1(0.0).properties == {"separable", "seminorm"}
    assert Ridge(2.0).conjugate([3.0, 1.0]) == pytest.approx(2.5)
    assert Ridge([2.0, 0.0]).conjugate([3.0, 1e-3]) == INF
    assert ElasticNet(1.0, 2.0).conjugate([3.0, 0.5]) == pytest.approx(1.0)
    assert Box(-1.0, [2.0, INF]).conjugate([3.0, -2.0]) == 8.0
    assert Box(-1.0, [2.0, INF]).conjugate([3.0, 1e-3]) == INF
    assert Box(-1.0, [2.0, INF]).conjugate([3.0, 1e-12]) == 6.0
    np.testing.assert_array_equal(NonNegative().conjugate(np.array([[-1.0, 1.0], [0.0, -1.0]])), [0.0, INF])
    np.testing.assert_array_equal(Zero().polar(np.array([[0.0, 1.0]])), [0.0, INF])
    assert Scaled(L1(1.0), 4.0).polar([2.0]) == 0.5
    assert Precomposed(L1(1.0), [2.0, -4.0]).polar([2.0, 2.0]) == 1.0
    assert Translated(Box(0.0, 1.0), 10.0).conjugate([2.0, -1.0]) == 2.0 + 10.0
    assert Scaled(Box(0.0, 1.0), 10.0).conjugate([2.0, -1.0]) == 2.0
    assert Separable([([1], L1(1.0))]).conjugate([0.0, 1.0]) == 0.0
    assert Separable([([1], L1(1.0))]).conjugate([1e-3, 1.0]) == INF


def test_parts():
    penalty = Separable([([4, 0], L1([1.0, 2.0])), (slice(1, 3), Box(0.0, 1.0)), ([], Ridge(1.0))])
    z = np.array([5.0, 5.0, -5.0, 5.0, 5.0])
    np.testing.assert_array_equal(penalty.prox(z, 1.0), [3.0, 1.0, 0.0, 5.0, 4.0])
    assert penalty.value(np.array([3.0, 1.0, 0.0, 5.0, 4.0])) == 10.0
    assert penalty.value(np.array([3.0, 1.5, 0.0, 5.0, 4.0])) == INF
    for size in (5, 7, 5):  # one object for vectors of different sizes
        np.testing.assert_array_equal(penalty.prox(np.full(size, 5.0), 1.0)[3:], [5.0, 4.0, *[5.0] * (size - 5)])
    np.testing.assert_array_equal(Separable([]).prox(z, 1.0), z)
    assert Separable([(slice(None), Box(0, 1))]).properties == {"separable", "set"}
    assert Separable([([0], L1(1.0)), ([1], Box(0, 1))]).properties == {"separable"}
    assert Separable([([0], L1(1.0)), ([1], L2(1.0))]).properties == {"seminorm"}
    np.testing.assert_array_equal(Separable([(slice(None, None, -1), L1([0.0, 1.0]))]).prox([3.0, 3.0], 1.0), [2.0, 3.0])


class Lasso:
    """A user's penalty with two methods."""

    def value(self, x):
        return np.sum(np.abs(x), axis=0)

    def prox(self, z, step):
        return np.sign(z) * np.maximum(np.abs(z) - step, 0.0)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda p: Separable([(slice(0, 3), p), ([4, 3], p)]),
        lambda p: Scaled(p, 2.0),
        lambda p: Translated(p, 1.0),
        lambda p: Precomposed(p, -2.0),
        lambda p: Unpenalised(p, 0),
    ],
    ids=["Separable", "Scaled", "Translated", "Precomposed", "Unpenalised"],
)
def test_penalties_that_users_write(wrap):
    rng = np.random.default_rng(0)
    for z in (rng.standard_normal(5), rng.standard_normal((5, 3))):
        step = rng.uniform(0.1, 1.0, z.shape)
        np.testing.assert_allclose(wrap(Lasso()).prox(z, step), wrap(L1(1.0)).prox(z, step), rtol=1e-14)
        np.testing.assert_allclose(wrap(Lasso()).value(z), wrap(L1(1.0)).value(z), rtol=1e-14)


def test_free_coordinates():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(6)
    soft = np.sign(z) * np.maximum(np.abs(z) - 0.2, 0.0)
    for free in (2, [2, -1], slice(1, 4), slice(None), [], slice(4, None)):
        expected = soft.copy()
        expected[free] = z[free]
        np.testing.assert_array_equal(Unpenalised(L1(0.2), free).prox(z, 1.0), expected)
    assert Unpenalised(L1([1.0, 2.0]), 0).value([9.0, 1.0, 1.0]) == 3.0
    with pytest.raises(ValueError, match=r"2 strengths, but there are 3"):
        Unpenalised(L1([1.0, 2.0]), 0).check_size(4)


def test_zero_times_a_penalty():
    z = np.array([3.0, -4.0])
    for penalty in (Scaled(L1(1.0), 0.0), Scaled(L2(1.0), 0), Scaled(Zero(), 0)):
        np.testing.assert_array_equal(penalty.prox(z, 1.0), z)
        assert penalty.value(z) == 0.0
        assert penalty.conjugate(z) == penalty.polar(z) == INF
        assert penalty.conjugate(0 * z) == penalty.polar(0 * z) == 0.0
        assert "norm" not in penalty.properties
    np.testing.assert_array_equal(Scaled(Box(0.0, 1.0), 0.0).prox(z, 1.0), [1.0, 0.0])
    assert Scaled(Box(0.0, 1.0), 0.0).value(z) == INF


def test_sets_far_from_zero():
    """What rounding of the shift leaves outside a small set counts as inside; what is outside does not."""
    penalty = Translated(Box(0.0, 1e-3), 1e10)
    x = penalty.prox(np.array([0.0, 2e10]), 1.0)
    assert penalty.value(x) == 0.0
    assert penalty.value(x + 100.0) == INF
    assert penalty.value(np.array([np.nan, 1e10])) == INF
    inside = np.random.default_rng(0).uniform(0.0, 1e-3, 50)
    assert np.any(inside - 1.0 + 1.0 != inside)
    assert Translated(Box(-2.0, 2.0), 1.0).prox(inside, 1.0).tobytes() == inside.tobytes()
    assert Precomposed(Box(-1.0, 1.0), 3.0).value(np.array([1 / 3], np.float32)) == 0.0
    assert Precomposed(Box(-1.0, 1.0), 3.0).value(np.array([0.334], np.float32)) == INF


ERRORS = [
    (lambda: Separable([(slice(0, 3), L1(1)), ([2], L1(1))]), r"Part 1 of Separable names coordinates a second time"),
    (lambda: Separable([(slice(3, None), L1(1)), ([4], L1(1))]), r"Part 1 of Separable names coordinates a second time"),
    (lambda: Separable([([1, 1], L1(1))]), r"Part 0 of Separable names coordinates a second time"),
    (lambda: Separable([([0], L1(1)), ([-3], L1(1))]).check_size(3), r"Part 1 of Separable names coordinates a second time"),
    (lambda: Separable([([5], L1(1))]).check_size(5), r"Part 0 of Separable names 5, but there are 5 penalised coordinates"),
    (lambda: Separable([(slice(0, 6), L1(1))]).check_size(5), r"Part 0 of Separable names 6, but there are 5"),
    (lambda: Separable([([-6], L1(1))]).prox(np.ones(5), 1.0), r"Part 0 of Separable names -6, but there are 5"),
    (lambda: Separable([(slice(0, 3), L1([1, 2]))]).check_size(5), r"2 strengths, but there are 3"),
    (lambda: Separable([([0.5], L1(1))]), r"coordinates of part 0 of Separable must be a slice or integers"),
    (lambda: Separable([([[0]], L1(1))]), r"coordinates of part 0 of Separable must be a slice or integers"),
    (lambda: Separable([("a", L1(1))]), r"coordinates of part 0 of Separable must be a slice or integers"),
    (lambda: Separable([(1, 2, 3)]), r"'parts' parameter of Separable must be a list of pairs"),
    *(
        (lambda v=v: Scaled(L1(1), v), r"The 'factor' parameter of Scaled must be a number >= 0")
        for v in (-1, np.nan, INF, "a")
    ),
    (lambda: Scaled(Ridge(1.0), 0.0), r"The 'factor' parameter of Scaled is 0, but 0 times Ridge .* Use Zero\(\)"),
    (lambda: Translated(L1(1), [1.0, np.nan]), r"The 'shift' parameter of Translated must be a finite number"),
    (lambda: Translated(L1(1), [[1.0]]), r"The 'shift' parameter of Translated must be a finite number"),
    (lambda: Translated(L1(1), [1.0, 2.0]).check_size(3), r"The 'shift' of Translated has 2 entries, but there are 3"),
    (lambda: Translated(L1(1), [1.0, 2.0]).prox(np.ones(3), 1.0), r"has 2 entries, but there are 3"),
    (lambda: Precomposed(L1(1), [1.0, 0.0]), r"The 'diagonal' parameter of Precomposed has a zero"),
    (lambda: Precomposed(L1(1), [1.0, 2.0]).check_size(3), r"The 'diagonal' of Precomposed has 2 entries, but there are 3"),
    (lambda: Precomposed(PSD(2), [1.0, 2.0, 2.0, 1.0]), r"PSD needs one step .* Use NumericalProx\(penalty\) inside"),
    (lambda: NumericalProx(L1(1), accuracy=0.0), r"The 'accuracy' parameter of NumericalProx must be a positive number"),
    *((lambda n=n: NumericalProx(L1(1), max_iter=n), r"The 'max_iter' parameter of NumericalProx") for n in (0, 1.5, True)),
]


@looped(("call", "sentence"), ERRORS)
def test_errors(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize("call", [lambda: Separable([(0, 3.0)]), lambda: Scaled("l1", 2.0), lambda: Separable(3)])
def test_what_is_no_penalty(call):
    with pytest.raises(TypeError, match=r"'parts' parameter|'penalty' must be None or have methods"):
        call()
