"""Exponential and logarithm of compiled loops against the mathematical library."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from adagrad_diff import Logistic, kernels
from adagrad_diff._elementary import SMALLEST, decay, log1p_unit


@njit
def exponentials(t, out):
    for i in range(t.size):
        out[i] = decay(t[i])


@njit
def logarithms(u, out):
    for i in range(u.size):
        out[i] = log1p_unit(u[i])


def evaluate(function, values):
    out = np.empty(len(values))
    function(np.array(values, np.float64), out)
    return out


@settings(deadline=None)
@given(st.lists(st.floats(SMALLEST, 0.0), min_size=1, max_size=50))
def test_exponential(t):
    assert evaluate(exponentials, t) == pytest.approx(np.exp(t), rel=1e-15, abs=0)


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=50))
def test_logarithm(u):
    # atol: below the smallest normal number, s = u / 2 may lose the last bit
    np.testing.assert_allclose(evaluate(logarithms, u), np.log1p(u), rtol=1e-15, atol=5e-324)


def test_dense_grid():
    t = -np.concatenate([np.linspace(0.0, 50.0, 200_001), np.geomspace(1e-300, 708.0, 100_001)])
    assert np.abs(evaluate(exponentials, t) / np.exp(t) - 1.0).max() < 1e-15
    u = np.concatenate([np.linspace(0.0, 1.0, 200_001)[1:], np.geomspace(1e-300, 1.0, 100_001)])
    assert np.abs(evaluate(logarithms, u) / np.log1p(u) - 1.0).max() < 1e-15


def test_ends():
    assert evaluate(exponentials, [-0.0, 0.0, -1e-320, -709.0, -1e4, -np.inf]).tolist() == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert np.isnan(evaluate(exponentials, [np.nan])).all()
    assert evaluate(logarithms, [0.0, 1.0]).tolist() == [0.0, pytest.approx(math.log(2.0), rel=1e-15)]
    assert np.isnan(evaluate(logarithms, [np.nan])).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [None, 1, 7])
def test_logistic_keeps_what_is_not_finite(dtype, columns):
    z = np.array([np.nan, np.inf, -np.inf, 1e4, -1e4, 0.0], dtype)
    b, weight = np.ones(6, dtype), np.ones(6, dtype)
    values = []
    for j in range(6):
        r, out = (z.copy(), np.zeros(1)) if columns is None else (np.repeat(z[:, None], columns, axis=1), np.zeros(columns))
        kernels.residuals(Logistic.scalar)(r, b, weight, 0.0, j, j + 1, out)
        values.append((out[-1], r.reshape(6, -1)[j, -1]))
    value, slope = np.array(values).T
    np.testing.assert_allclose(value, [np.nan, 0.0, np.inf, 0.0, 1e4, math.log(2.0)], rtol=1e-6)
    np.testing.assert_allclose(slope, [np.nan, 0.0, -1.0, 0.0, -1.0, -0.5], rtol=1e-6)


def test_python_and_compiled_agree():
    z = np.linspace(-40.0, 40.0, 1001)
    r, out = z[:, None].copy(), np.zeros(1)
    kernels.residuals(Logistic.scalar)(r, np.ones(1001), np.ones(1001), 0.0, 0, 1001, out)
    values, slopes = np.array([Logistic.scalar(v, 1.0, 0.0) for v in z]).T
    assert out[0] == pytest.approx(values.sum(), rel=1e-14)
    np.testing.assert_allclose(r[:, 0], slopes, rtol=1e-14)
