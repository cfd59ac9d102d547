"""The exponential and the logarithm of compiled losses, against the mathematical library.

They are seen through the logistic loss. With one sample per coordinate the gradient consists of
exp(-z) / (1 + exp(-z)), and with one sample the value is log(1 + exp(-z)).
"""

import math

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import Logistic

SAMPLES = 2**15  # a power of two, so the weights are exact
GRID = -np.concatenate([np.linspace(0.0, 50.0, 20_001), np.geomspace(1e-300, 690.0, 12_001)])
ONE = Logistic([[1.0]], [1.0])


def slopes(t):
    """Return exp(t) / (1 + exp(t)) for each number."""
    z = np.zeros(SAMPLES)
    z[: len(t)] = np.negative(t)
    loss = Logistic(sparse.identity(SAMPLES, format="csr"), np.ones(SAMPLES))
    return -(loss.value_and_grad(z)[1] * SAMPLES)[: len(t)]


def values(t, width=8):
    """Return log(1 + exp(t)), from `width` trajectories at a time. From 8 on loops differ."""
    z = np.zeros((1, -(-len(t) // width) * width))
    z[0, : len(t)] = np.negative(t)
    return np.concatenate(
        [ONE.value_and_grad(z[:, k : k + width])[0] for k in range(0, z.size, width)]
    )[: len(t)]


@pytest.mark.parametrize("width", [1, 7, 1000])
def test_values_on_a_grid(width):
    part = GRID[:: 1 + 1000 // width]
    assert np.abs(values(part, width) / np.log1p(np.exp(part)) - 1.0).max() < 2e-15


def test_slopes_on_a_grid():
    """Reordered sums must not lose the digits that the reduction of the argument keeps."""
    assert np.abs(slopes(GRID) / (np.exp(GRID) / (1.0 + np.exp(GRID))) - 1.0).max() < 1.5e-15


def test_limits():
    t = [-0.0, 0.0, -1e-320, -709.0, -1e4, -1e300]
    np.testing.assert_allclose(slopes(t), [0.5, 0.5, 0.5, 0.0, 0.0, 0.0], rtol=1e-15, atol=1e-307)
    expected = [math.log(2.0)] * 3 + [0.0] * 3
    np.testing.assert_allclose(values(t), expected, rtol=1e-15, atol=1e-307)
