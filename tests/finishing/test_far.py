"""Newton's method for rows that live elsewhere: what one fold says of a point is what many products say of it."""

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff.finishing.curvature import LinearCurvature
from adagrad_diff.finishing.curvature_far import FarCurvature
from looping import looped
from loss_zoo import LINEAR, make, named

SMOOTH = [kind for kind in LINEAR if kind.curvature is not None]
CODES = np.arange(60) * 7 % 11


def entries():
    A = np.random.default_rng(0).standard_normal((60, 5)) + 0.5
    A[np.abs(A) < 0.4] = 0.0
    return A


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("intercept", [False, True])
@looped("form", [np.asarray, sparse.csr_array, np.float32])
@pytest.mark.parametrize("kind", SMOOTH, ids=named)
def test_as_near(kind, form, intercept):
    loss, rng = make(kind, form(entries()), CODES, intercept=intercept, sample_weight=True), np.random.default_rng(1)
    far, near = FarCurvature(loss), LinearCurvature(loss)
    x, v = 0.1 * rng.standard_normal((2, near.size))
    some = np.array([0, 2, 4, 5][: 3 + intercept])
    for damping in (0.0, 0.5):
        for model in (far, near):
            model.damping = damping
            model.start(x)
        for index in (np.arange(near.size), some):
            close(far.hessian(index), near.hessian(index))
            close(far.product(index, v[index]), near.product(index, v[index]))
            for model in (far, near):
                model.along(index, 0.1 * v[index])
            for t in (1.0, 0.5):
                close(far.at(t), near.at(t))
            for model in (far, near):
                model.move(0.5)
            close(far.value, near.value)
            close(far.gradient, near.gradient)
            close(far.noise(), near.noise())
        np.testing.assert_allclose(far.diagonal(), near.diagonal(), rtol=1e-6)  # squares are in the precision of A
        slopes = [loss.weight * model.slopes(far.here.x) for model in (far, near)]  # without a weight, any
        close(*slopes)


def test_a_step_is_one_fold():
    """Also for coordinates that come and go: those that were asked for before are looked at again."""
    loss = make(SMOOTH[-1], entries(), CODES)
    far, folds = FarCurvature(loss), []
    one = far._pass.fold
    far._pass.fold = lambda *call: folds.append(call[0].__name__) or one(*call)
    far.start(np.zeros(5))
    for index in (np.arange(5), np.array([1, 3]), np.array([3])):
        far.hessian(index)
        far.along(index, np.full(index.size, 0.1))
        far.at(1.0)
        far.move(1.0)
    assert folds == ["_point"] * 4
    far.hessian(np.array([2, 4]))
    assert folds == ["_point"] * 5
