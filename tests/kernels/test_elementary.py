"""Exponential and logarithm as the compiled losses compute them, against the mathematical library.

They are looked at through the logistic loss, compiled as it always is: with one sample per coordinate the gradient is made of
exp(-z), and with one sample the value is log(1 + exp(-z)).
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from adagrad_diff import Logistic
from looping import looped

SMALLEST = -708.0  # where exp becomes subnormal; the loss takes it for zero below
GRID = -np.concatenate([np.linspace(0.0, 50.0, 200_001), np.geomspace(1e-300, 690.0, 61_001)])  # fewer than 2^18
MANY = Logistic(sparse.identity(2**18, format="csr"), np.ones(2**18))  # a power of two: the weights are exact
ONE = Logistic([[1.0]], [1.0])


def slopes(t):
    """exp(t) / (1 + exp(t)), one per number."""
    z = np.zeros(2**18)
    z[: len(t)] = np.negative(t)
    return -(MANY.value_and_grad(z)[1] * 2.0**18)[: len(t)]  # the gradient is a mean: times 2^-18 it must still be normal


def values(t, width=8):
    """log(1 + exp(t)), one per number, `width` trajectories at a time: from 8 on other loops compute them."""
    z = np.zeros((1, -(-len(t) // width) * width))
    z[0, : len(t)] = np.negative(t)
    return np.concatenate([ONE.value_and_grad(z[:, k : k + width])[0] for k in range(0, z.size, width)])[: len(t)]


def logistic(t):
    small = np.exp(t)
    return small / (1.0 + small), np.log1p(small)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(SMALLEST, 0.0), min_size=1, max_size=50), st.sampled_from([1, 3, 8]))
def test_any_numbers(t, width):
    assert values(t, width) == pytest.approx(logistic(t)[1], rel=2e-15, abs=0)


@pytest.mark.parametrize("width", [1, 7, 1000])
def test_dense_grid(width):
    """The sums that a kernel may reorder must not lose the digits that the argument's reduction keeps."""
    assert np.abs(slopes(GRID) / logistic(GRID)[0] - 1.0).max() < 1.5e-15
    part = GRID[:: 1 + 10_000 // width]
    assert np.abs(values(part, width) / logistic(part)[1] - 1.0).max() < 2e-15


def test_ends():
    t = [-0.0, 0.0, -1e-320, -709.0, -1e4, -1e300]
    assert slopes(t).tolist() == [0.5, 0.5, 0.5, 0.0, 0.0, 0.0]
    assert values(t).tolist() == [pytest.approx(math.log(2.0), rel=1e-15)] * 3 + [0.0] * 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array])
@looped("columns", [None, 1, 3, 7, 9])
def test_what_is_not_finite_is_kept(dtype, layout, columns):
    z = np.array([np.nan, np.inf, -np.inf, 1e4, -1e4, 0.0], dtype)
    loss, answers = Logistic(layout(np.ones((1, 1), dtype)), [1.0]), []
    for number in z:
        x = np.full(1 if columns is None else (1, columns), number, dtype)
        value, slope = loss.value_and_grad(x)
        answers.append((np.ravel(value)[-1], slope.flat[-1]))
    value, slope = np.array(answers).T
    np.testing.assert_allclose(value, [np.nan, 0.0, np.inf, 0.0, 1e4, math.log(2.0)], rtol=1e-6)
    np.testing.assert_allclose(slope, [np.nan, 0.0, -1.0, 0.0, -1.0, -0.5], rtol=1e-6)


def test_python_and_compiled_agree():
    z = np.linspace(-40.0, 40.0, 1001)
    value, slope = np.array([Logistic.scalar(v, 1.0, 0.0) for v in z]).T
    np.testing.assert_allclose(values(-z), value, rtol=1e-14)
    np.testing.assert_allclose(-slopes(-z), slope, rtol=1e-14)
