"""Compiled inner loops: sums of squares in double precision, and no mix-up of compiled functions on disk.

What the loops compute is tested where it is used: in tests/losses, tests/penalties, tests/rules and tests/solve.
"""

import inspect

import numpy as np
import pytest

from adagrad_diff import AdaGrad, AdaGradDiff, Quadratic, minimize
from adagrad_diff.linalg.block import compiled_residuals
from adagrad_diff.linalg.dense import dense_pass, dense_pass_of_few
from loss_zoo import SCALAR
from pairwise import pairwise


@pairwise(
    rule=[AdaGrad, AdaGradDiff],
    blocks=[None, "all", [0, 1, 0, 1]],
    trajectories=[None, 3],
    exponent=[60, -70],
)
def test_squares_neither_overflow_nor_vanish_in_single_precision(
    rule, blocks, trajectories, exponent
):
    """If the loss and eps are multiplied by a power of two, the iterates stay the same."""
    rng = np.random.default_rng(0)
    B, c = rng.standard_normal((6, 4)), rng.standard_normal(4)
    x0 = np.ones((4, *([trajectories] if trajectories else [])), np.float32)
    runs = [
        minimize(
            Quadratic((factor * (B.T @ B)).astype(np.float32), (factor * c).astype(np.float32)),
            x0,
            rule=rule(0.5, eps=1e-4 * factor, blocks=blocks),
            max_iter=20,
        )
        for factor in (1.0, 2.0**exponent)
    ]
    assert np.abs(runs[0].x - 1.0).max() > 0.1
    np.testing.assert_allclose(runs[1].x, runs[0].x, rtol=1e-5)


@pytest.mark.parametrize("template", [compiled_residuals, dense_pass, dense_pass_of_few])
def test_no_two_losses_share_a_symbol(template):
    """The contract of `_numba.specialized`: a kernel and its inner function have a name of their own for each loss.

    Numba identifies compiled functions by their name and a number that depends on the process. Without a name of its own,
    Poisson's kernel was once taken for that of the hinge loss.
    """
    functions = [template(kind.scalar).py_func for kind in SCALAR]
    inner = [inspect.getclosurevars(function).nonlocals for function in functions]
    names = [f.__qualname__ for f in functions]
    names += [
        f.__qualname__
        for cells in inner
        for f in cells.values()
        if callable(f) and f.__module__ == "adagrad_diff.linalg._numba"
    ]
    assert len(set(names)) == len(names) == 2 * len(SCALAR)
