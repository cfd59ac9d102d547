"""The six penalties of all doors: the core's compiled loops compute what their one statement says."""

import inspect

import numpy as np
import pytest

import adagrad_diff
from adagrad_diff.common import group_root
from adagrad_diff.common import six_penalties as six
from looping import looped
from prox_six import ARGUMENTS, BAD, SHAPE, STRENGTHS, make, points, prox, value

GROUPS = {"row": np.repeat(np.arange(SHAPE[0]), SHAPE[1]), "tensor": np.zeros(SHAPE[0] * SHAPE[1], int)}


def core(name, strength):
    arguments = ARGUMENTS[name](strength)
    if name.startswith("GroupL2"):
        arguments["groups"] = GROUPS[arguments.pop("over", "row")]
    return getattr(adagrad_diff, name.split()[0])(**arguments)


@looped("strength", STRENGTHS)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_prox_and_value_are_those_of_the_statement(name, strength):
    penalty, stated = core(name, strength), make(six, name, strength)
    for size, z, step in points():
        expected = prox(stated, z, step)
        flat, steps = z.ravel(), step.ravel()
        np.testing.assert_allclose(penalty.prox(flat, steps).reshape(SHAPE), expected, rtol=1e-13, atol=1e-14 * size)
        both = penalty.prox(np.stack([flat, flat], 1), steps)  # in columns, by other loops
        for column in both.T:
            np.testing.assert_allclose(column.reshape(SHAPE), expected, rtol=1e-13, atol=1e-14 * size)
        np.testing.assert_allclose(penalty.value(expected.ravel()), value(stated, expected), rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("over", GROUPS)
def test_the_group_root_solves_its_equation(over, dtype):
    """The statement itself: sum (z / (h + a))^2 = 1 for h = ||x||, or x = 0 and that sum is at most 1 for h = 0."""
    digits, zeros = np.finfo(dtype).eps, 0
    axes = tuple(range(1 if over == "row" else 0, 2))
    for strength in STRENGTHS:
        for z, step in ((z.astype(dtype), step.astype(dtype)) for _, z, step in points()):
            x, a = prox(six.GroupL2(strength, over), z, step), (dtype(strength) * step).astype(float)
            assert x.dtype == dtype
            h = np.sqrt(np.sum(x.astype(float) ** 2, axes, keepdims=True))
            q = np.sum((z / (h + a)) ** 2, axes)
            zero = h.reshape(q.shape) == 0
            zeros += zero.sum()
            assert (q[zero] <= 1 + 10 * digits).all()
            np.testing.assert_allclose(q[~zero], 1, rtol=50 * digits)
    assert zeros


def test_the_start_is_below_the_root_and_no_square_above_one():
    for _, z, step in points():
        low = group_root.start(np, z, step, "row")
        x = prox(six.GroupL2(1.0), z, step)
        assert (low <= np.linalg.norm(x, axis=1, keepdims=True) * (1 + 1e-12)).all()
        assert (np.abs(z) <= (low + step) * (1 + 1e-12)).all()


def test_nan_in_a_group_is_not_hidden():
    z = np.array([[1.0, np.nan], [3.0, 4.0]])
    x = prox(six.GroupL2(1.0), z, np.ones((2, 2)))
    assert np.isnan(x[0]).all()
    np.testing.assert_allclose(x[1], [2.4, 3.2], rtol=1e-14)


@pytest.mark.parametrize("name", ["L1", "Ridge", "ElasticNet", "Box", "NonNegative"])
def test_parameters_and_reprs_are_those_of_the_statement(name):
    def parameters(kind):
        return [(p.name, p.default) for p in inspect.signature(kind).parameters.values()]

    assert parameters(getattr(adagrad_diff, name)) == parameters(getattr(six, name))
    assert repr(core(name, 0.5)) == repr(make(six, name, 0.5))


@looped(("name", "arguments", "message"), BAD)
def test_bad_parameters_have_one_sentence(name, arguments, message):
    for module in (adagrad_diff, six):
        with pytest.raises(ValueError, match=message):
            getattr(module, name)(**arguments)
