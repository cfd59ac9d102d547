"""The six penalties of the torch and optax integrations agree with those of the core."""

import numpy as np
import pytest

import adagrad_diff
import prox_six
from adagrad_diff.penalties import six_penalties as six
from prox_six import ARGUMENTS, SHAPE, STRENGTHS, make, points

GROUPS = {
    "row": np.repeat(np.arange(SHAPE[0]), SHAPE[1]),
    "tensor": np.zeros(SHAPE[0] * SHAPE[1], int),
}


def core(name, strength):
    arguments = ARGUMENTS[name](strength)
    if name.startswith("GroupL2"):
        arguments["groups"] = GROUPS[arguments.pop("over", "row")]
    return getattr(adagrad_diff, name.split()[0])(**arguments)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_prox_and_value(name):
    for strength in STRENGTHS:
        penalty, stated = core(name, strength), make(six, name, strength)
        for size, z, step in points():
            expected = penalty.prox(z.ravel(), step.ravel()).reshape(SHAPE)
            np.testing.assert_allclose(
                prox_six.prox(stated, z, step), expected, rtol=1e-13, atol=1e-14 * size
            )
            np.testing.assert_allclose(
                prox_six.value(stated, expected), penalty.value(expected.ravel()), rtol=1e-13
            )
